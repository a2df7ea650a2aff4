"""Shares of a gain and effects of factors, where the right answer is known."""

from __future__ import annotations

import statistics

import pytest

from transect.analysis.groups import Group
from transect.domain.axes.retrain import RetrainCell
from transect.report.topics.retraining.facts import Design, attribution, designs, effects, points

BASE, ALL = ("sgd", "old", "torch-eager"), ("adamw", "new", "python")


def design(scores) -> Design:
    levels = {"optimiser": ("sgd", "adamw"), "rate": ("old", "new"), "runtime": ("torch-eager", "python")}
    return Design(groups=(), levels=levels, absent=(), scores={0: scores}, lacking=0)


def every(score) -> dict:
    return {
        (o, r, t): score(o == "adamw", r == "new", t == "python")
        for o in ("sgd", "adamw")
        for r in ("old", "new")
        for t in ("torch-eager", "python")
    }


def parts(scores) -> dict[str, float]:
    share = attribution(design(scores), BASE, ALL)
    assert share is not None
    assert sum(map(statistics.median, share.parts.values())) == pytest.approx(share.gain.median)
    return {name: statistics.median(part) for name, part in share.parts.items()}


@pytest.mark.parametrize(
    ("score", "shares"),
    [
        (lambda o, r, t: 0.4 + 0.2 * o + 0.1 * r, (0.2, 0.1, 0.0)),
        # What works together only, or alone as well, is halved.
        (lambda o, r, t: 0.3 * (o and r), (0.15, 0.15, 0.0)),
        (lambda o, r, t: 0.3 * (o or r), (0.15, 0.15, 0.0)),
        (lambda o, r, t: 0.3 * (o and r and t), (0.1, 0.1, 0.1)),
    ],
)
def test_each_factor_gets_what_it_does(score, shares):
    assert parts(every(score)) == pytest.approx(dict(zip(("optimiser", "rate", "runtime"), shares, strict=True)))


def test_a_combination_that_lacks_on_the_way_leaves_no_share():
    scores = every(lambda o, r, t: 0.5)
    del scores["sgd", "new", "python"]
    assert attribution(design(scores), BASE, ALL) is None
    # Those that are not on the way do no harm.
    assert attribution(design(scores), BASE, ("adamw", "new", "torch-eager")) is not None


def test_effects_are_means_over_what_both_levels_have():
    scores = every(lambda o, r, t: 0.2 * o + 0.1 * r * (not o) + 0.05 * t)
    found = {(e.factor, e.after, *e.given.get("optimiser", ())): e for e in effects(design(scores))}
    assert found["optimiser", "adamw"].summary.median == pytest.approx(0.15)
    assert found["rate", "new"].summary.median == pytest.approx(0.05)
    assert found["rate", "new", "sgd"].summary.median == pytest.approx(0.1)
    assert found["rate", "new", "adamw"].summary.median == pytest.approx(0.0)
    assert found["runtime", "python"].summary.median == pytest.approx(0.05)
    for levels in [combination for combination in scores if combination[0] == "sgd" and combination[2] == "python"]:
        del scores[levels]
    found = {e.factor: e for e in effects(design(scores)) if not e.apart}
    assert found["runtime"].given == {"optimiser": ("adamw",)}
    assert found["optimiser"].given == {"runtime": ("torch-eager",)}


def groups(*runtimes, **axes) -> list[Group]:
    given = {"workload": "w", "provider": "cpu", "optimiser": "sgd", "steps": 4, "batch": 2, **axes}
    return [Group(cell=RetrainCell(runtime=name, **given), records=()) for name in runtimes]


def test_the_point_of_most_runtimes_comes_first_and_relays_are_no_points():
    few, many = groups("c", rate="new"), groups("c", "python", "c>python")
    assert [[g.cell.runtime for g in members] for members in points([*few, *many])] == [["c", "python"], ["c"]]


def test_runtimes_alone_are_no_design():
    assert not list(designs(groups("c", "python")))
    assert list(designs([*groups("c", "go"), *groups("c", "go", rate="new")]))
