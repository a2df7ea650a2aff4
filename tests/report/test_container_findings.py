"""What is said of containers: SYNTHETIC records, the same cells with and without."""

from __future__ import annotations

import functools
import random
from typing import Any

from said_of_records import Made, findings, prose

from factories import bench_cell, make_record, train_cell
from transect.analysis.groups import group_records
from transect.domain.record import Cause, LogPoint, MetricValue, Record, Status
from transect.report.engine.finding import Finding
from transect.report.topics.containers import ContainerCost, container_costs
from transect.stats.verdicts import Answer

mlp_cell = functools.partial(train_cell, workload="digits-mlp", batch=64)


def records(
    *, later: float = 0.2, step: float = 1.0, noise: float = 0.004, repeats: int = 6, **axes: object
) -> list[Record]:
    """One cell with and without podman: `later` s to start, `step` times the step, and its noise."""
    rng, found = random.Random(5), []
    over = bool(axes.pop("over", False))
    for repeat in range(repeats):
        for container in (None, "podman"):
            inside = container is not None
            # What a repeat's seed does, it does to both.
            seed = 1 + 0.05 * repeat
            values = {
                "startup_time": 2 * seed * (1 + rng.gauss(0, noise)) + later * inside,
                "step_time": 1e-3 * seed * (1 + rng.gauss(0, noise)) * (step if inside else 1),
                "input_time": 4e-4 * seed * (1 + rng.gauss(0, noise)),
            }
            cell = mlp_cell(repeat=repeat, container=container, **axes)
            found.append(make_record(cell, values, details={"over_subscribed": over}))
    return found


def sweep(factor: float) -> list[Record]:
    """An all-reduce of two sizes with and without; the small one takes `factor` times in a container."""
    rng, found = random.Random(7), []
    for repeat in range(6):
        for container in (None, "podman"):
            at = bench_cell(
                "message-sweep", {"test": "allreduce"}, ranks_per_node=2, container=container, repeat=repeat
            )
            inside = factor if container else 1.0
            noise = [1 + rng.gauss(0, 0.004) for _ in range(2)]
            times = {4: 2e-6 * inside * noise[0], 1024: 7e-6, 1048576: 3e-4 * noise[1]}
            values = [
                MetricValue.of(
                    "collective_time", time, f"avg_latency {size}", LogPoint(series="avg_latency", size=size)
                )
                for size, time in times.items()
            ]
            found.append(make_record(at, values))
    return found


def costs(made: list[Record]) -> dict[tuple[str, int | None], ContainerCost]:
    groups = group_records(made)
    return {(cost.contrast.metric, cost.size): cost for cost in container_costs(groups)}


def written_findings(made: list[Record]) -> list[Finding]:
    return [finding for of_kind in findings(*made).values() for finding in of_kind]


SETS = {
    "a later start": [*records(later=0.2), *sweep(3.0)],
    "surely within 5 %": records(step=1.03, noise=0.001),
    "shared cores": records(later=5, over=True),
    "loud": records(noise=0.2),
    "little": records(noise=0.002),
    "not little": records(step=1.2),
    "three pairs": records(repeats=3),
}


def test_prose(snapshot: Any) -> None:
    version = {"environment": {"wrapper_version": "0.31"}}
    sets = SETS | {"a version": [run.model_copy(update={"provenance": version}) for run in records()]}
    absent = make_record(
        mlp_cell(container="enroot"),
        status=Status.SKIPPED,
        cause=Cause.MISSING_DEPENDENCY,
        message="enroot is not on PATH <b>",
    )
    sections = {"section": Made("containers", *records(later=0.2), absent).prose}
    # Noise that hides nothing, some, and all: in between a row is provisional before it is open.
    noises = (0.004, 0.05, 0.3)
    sections |= {f"noise {n}": Made("containers", *records(later=0.2, step=1.1, noise=n)).prose for n in noises}
    assert prose(sets, "container") | sections == snapshot


def test_costs_keep_to_the_studys_margin():
    groups = group_records(records())
    plain, strict = (
        next(cost for cost in container_costs(groups, margin=margin) if cost.contrast.metric == "step_time").contrast
        for margin in (0.05, 0.001)
    )
    assert plain.answer is Answer.SAME and plain.comparison.margin == 0.05
    assert strict.answer is not Answer.SAME and strict.comparison.margin == 0.001


def test_the_seeds_of_repeats_are_no_noise_of_the_container():
    # Repeats differ by 25 %, pairs by 8 %.
    assert costs(records(step=1.08, noise=0.001))["step_time", None].contrast.shown
    # A cost that is surely there and surely within 5 % is told as that, with its interval.
    made = SETS["surely within 5 %"]
    step = costs(made)["step_time", None]
    assert step.contrast.answer is Answer.SAME and 1.02 < step.ratio.low < step.ratio.value < step.ratio.high < 1.04


def test_a_container_without_its_twin_costs_nothing_that_is_known():
    assert costs([run for run in records() if run.cell.container]) == {}
    unlike = [run for run in records() if run.cell.container] + [
        run for run in records(batch=128) if not run.cell.container
    ]
    assert costs(unlike) == {}


def disturbed(made: list[Record], *repeats: int, slower: float = 1.0) -> list[Record]:
    """The same with others at work during some repeats, of which those inside of the container suffer."""
    found = []
    for run in made:
        loud = run.cell.repeat in repeats
        times = slower if loud and run.cell.get("container") else 1.0
        values = [MetricValue.of(m.name, m.value * times) for m in run.metrics]
        found.append(run.model_copy(update={"metrics": values, "details": run.details | {"disturbed": loud}}))
    return found


def test_a_disturbed_pair_is_left_out() -> None:
    [plain, loud] = [costs(disturbed(records(repeats=7), *which, slower=3.0)) for which in ((), (6,))]
    step = loud["step_time", None].contrast
    assert (step.pairs, step.left_out, step.quiet) == (6, 1, True)
    assert step.ratio.value < 1.01 and plain["step_time", None].contrast.pairs == 7


def test_the_most_that_is_shown_is_not_said_to_be_the_most() -> None:
    # A small cost that is sure, and a larger one that is not.
    made = [*records(step=1.08, noise=0.001), *records(step=1.5, noise=0.6, batch=128)]
    [found] = [f for f in written_findings(made) if f.kind == "container" and f.topic == "step"]
    assert "; the most that is shown of 2 comparisons" in found.claim
