"""Claims held beside made-up records: what each kind becomes, what it takes, and what decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from factories import make_record, train_cell
from transect.analysis.claim_cells import matches
from transect.analysis.claim_verdicts import Verdict
from transect.analysis.claims import Decided, Evidence, decide_claim
from transect.analysis.groups import Floors, group_records
from transect.domain.claims import Claim, Work, rule_id
from transect.domain.record import Record
from transect.domain.until import MARGIN

HOLDS, DIRECTION, FAILS, OPEN = Verdict.HOLDS, Verdict.DIRECTION, Verdict.FAILS, Verdict.OPEN
OLD, YOUNG = "2000-01-01T00:00:00+00:00", "2026-06-01T00:00:00+00:00"
SWAY = (1.0, 1.001, 0.999, 1.002, 0.998, 1.0005)


def runs(rate: float, ranks: int = 1, *, amount: int = 6, sway: Iterable[float] = SWAY, **how: Any) -> list[Record]:
    """Make runs of a cell around a rate, which differ by a thousandth each."""
    strategy = how.pop("strategy", "single" if ranks == 1 else "mpi-allreduce")
    details, fields = how.pop("details", {}), how.pop("fields", {})
    return [
        make_record(
            train_cell("torch", repeat, strategy=strategy, ranks_per_node=ranks, **how),
            {"samples_per_second": rate * shift, "step_time": 64 / (rate * shift)},
            details=details,
            **fields,
        )
        for repeat, shift in zip(range(amount), sway, strict=False)
    ]


CLAIMS: dict[str, dict[str, Any]] = {
    "ratio": {
        "kind": "ratio",
        "published": 2.0,
        "rule": {"test": "within", "factor": 1.25},
        "measured": {"cells": {"ranks": 2}, "over": {"ranks": 1, "strategy": "single"}},
    },
    "value": {"kind": "value", "published": 100.0, "rule": {"test": "within", "factor": 1.25}, "measured": {}},
    "order": {
        "kind": "order",
        "published": {1: 100, 2: 180, 4: 300},
        "rule": {"test": "order", "factor": 1.05},
        "measured": {"along": {"axis": "ranks"}, "equal": ["workload", "batch"]},
    },
    "shape": {
        "kind": "shape",
        "published": {1: 10.0, 2: 5.0, 4: 4.0},
        "anchor": 1,
        "rule": {"test": "within", "factor": 1.25},
        "measured": {"metric": "step_time", "along": {"axis": "ranks"}, "equal": ["workload", "batch"]},
    },
    "no effect": {
        "kind": "no effect",
        "published": 1.0,
        "rule": {"test": "within", "factor": 1.05},
        "measured": {"cells": {"strategy": ["ddp-gloo", "ddp-nccl"]}, "over": {"strategy": "single"}},
    },
}


def work_of(kind: str, *, more: Iterable[dict[str, Any]] = (), measured: dict[str, Any] | None = None, **changes: Any):
    """Return a work with one claim of a kind, changed by `changes`; `measured` changes its cells, `more` are tried later."""
    given = CLAIMS[kind] | changes
    first = {"study": "s", "metric": "samples_per_second"} | given["measured"] | (measured or {})
    claim = Claim.model_validate({"key": "c", "says": "c", "where": "w"} | given | {"measured": [first, *more]})
    return Work(title="W", short="W", cite="W", hardware="laptop", conditions={}, claims=[claim])


def decided(
    work: Work, *records: Record, since: str | None = OLD, asked: bool = True, study: str = "s", margin: float = MARGIN
) -> Decided:
    """Decide the claim of a work by records; its rule is of `since`, or nothing tells of when."""
    [claim] = work.claims
    groups = group_records(records)
    rules = None if since is None else {rule_id(work, claim): since}
    of: Callable[[str], list[Any]] = lambda stage: [group for group in groups if group.cell.stage == stage]  # noqa: E731
    return decide_claim(
        work, claim, Evidence(study=study, groups=of, floors=Floors(groups, margin), since=rules, asked=asked)
    )


BASE = runs(100)
WIDE = (0.3, 2.1, 0.9, 1.7, 0.5, 1.2)
BESIDE: dict[str, tuple[str, list[Record], Verdict]] = {
    "a ratio within": ("ratio", [*BASE, *runs(210, 2)], HOLDS),
    "a ratio on its edge": ("ratio", [*BASE, *runs(250, 2)], OPEN),
    "a smaller ratio": ("ratio", [*BASE, *runs(130, 2)], DIRECTION),
    "a larger ratio": ("ratio", [*BASE, *runs(400, 2)], DIRECTION),
    "no ratio": ("ratio", [*BASE, *runs(100, 2)], FAILS),
    "the other way": ("ratio", [*BASE, *runs(50, 2)], FAILS),
    "a ratio of wild runs": ("ratio", [*BASE, *runs(200, 2, sway=WIDE)], OPEN),
    "a value within": ("value", runs(110), HOLDS),
    "a value far off": ("value", runs(300), FAILS),
    "a value on its edge": ("value", runs(125), OPEN),
    "an order": ("order", [*BASE, *runs(150, 2), *runs(200, 4)], HOLDS),
    "an order of which one pair is not so": ("order", [*BASE, *runs(150, 2), *runs(140, 4)], DIRECTION),
    "an order the other way": ("order", [*BASE, *runs(90, 2), *runs(80, 4)], FAILS),
    "an order of wild runs": ("order", [*BASE, *runs(105, 2, sway=WIDE), *runs(300, 4)], OPEN),
    "an order of two points": ("order", [*BASE, *runs(150, 2)], OPEN),
    "a shape": ("shape", [*BASE, *runs(200, 2), *runs(240, 4)], HOLDS),
    "a steeper shape": ("shape", [*BASE, *runs(200, 2), *runs(390, 4)], DIRECTION),
    "a shape that rises": ("shape", [*BASE, *runs(200, 2), *runs(90, 4)], FAILS),
    "a shape of two points": ("shape", [*BASE, *runs(200, 2)], OPEN),
    "no effect": ("no effect", [*BASE, *runs(101, strategy="ddp-gloo")], HOLDS),
    "an effect": ("no effect", [*BASE, *runs(90, strategy="ddp-gloo")], FAILS),
    "an effect that may be none": ("no effect", [*BASE, *runs(100, strategy="ddp-gloo", sway=WIDE)], OPEN),
    "no effect in one of two": (
        "no effect",
        [*BASE, *runs(101, strategy="ddp-gloo"), *runs(80, strategy="ddp-nccl")],
        FAILS,
    ),
    "no effect in both": ("no effect", [*BASE, *runs(101, strategy="ddp-gloo"), *runs(99, strategy="ddp-nccl")], HOLDS),
}


@pytest.mark.parametrize("name", BESIDE)
def test_each_kind_is_decided(name: str) -> None:
    kind, records, verdict = BESIDE[name]
    found = decided(work_of(kind), *records)
    assert found.verdict is verdict, found.reason
    assert found.points and found.firm is (verdict is not OPEN)


def test_a_verdict_is_tentative_where_nobody_asked_or_runs_were_disturbed() -> None:
    runs_of = [*BASE, *runs(210, 2)]
    assert decided(work_of("ratio"), *runs_of, asked=False).firm is False
    loud = [*BASE, *runs(210, 2, details={"disturbed": True})]
    found = decided(work_of("ratio"), *loud)
    assert (found.verdict, found.firm) == (OPEN, False)
    found = decided(work_of("value"), *runs(110, details={"disturbed": True}))
    assert (found.verdict, found.firm) == (HOLDS, False)
    assert decided(work_of("value"), *runs(110), asked=False).firm is False


def test_the_gap_is_how_far_an_interval_reaches() -> None:
    narrow, wide = (
        decided(work_of("ratio"), *BASE, *runs(210, 2, sway=sway)) for sway in (SWAY, (0.9, 1.1, 0.95, 1.05, 1, 1))
    )
    [point] = wide.points
    assert point.here is not None and wide.gap is not None and narrow.gap is not None
    assert (1 + wide.gap) ** 2 == pytest.approx((point.here.high / point.here.low) ** (1 + 0.8416 / 1.96))
    assert 0 < narrow.gap < 0.02 < wide.gap


def test_more_is_as_good_where_it_is_at_least_and_one_of_several_is_enough() -> None:
    least = work_of("ratio", rule={"test": "at least", "factor": 1})
    assert decided(least, *BASE, *runs(400, 2)).verdict is HOLDS
    assert decided(least, *BASE, *runs(150, 2)).verdict is DIRECTION
    assert decided(least, *BASE, *runs(90, 2)).verdict is FAILS
    other = [*runs(100, batch=128), *runs(210, 2, batch=128)]
    found = decided(least, *BASE, *runs(150, 2), *other)
    assert found.verdict is HOLDS and len(found.points) == 2
    # Within: all of them have to.
    assert decided(work_of("ratio"), *BASE, *runs(130, 2), *other).verdict is DIRECTION


def test_each_of_several_comparisons_is_decided_at_its_share_of_the_level() -> None:
    sway = (0.9, 1.1, 0.95, 1.05, 1.0, 1.0)
    one = decided(work_of("ratio"), *BASE, *runs(200, 2, sway=sway))
    many = [
        record for batch in (32, 64, 128) for record in [*runs(100, batch=batch), *runs(200, 2, batch=batch, sway=sway)]
    ]
    several = decided(work_of("ratio"), *many)
    assert len(several.points) == 3
    [first] = one.points
    for point in several.points:
        assert point.here is not None and first.here is not None
        assert point.here.level == pytest.approx(1 - 0.05 / 3) and point.here.level > first.here.level


def test_the_best_of_several_is_held_to_the_level_of_one_of_them() -> None:
    several = [*BASE, *runs(200, 2), *runs(150, 2, strategy="mpi-sendrecv"), *runs(160, 2, strategy="ddp-gloo")]
    one, best = (decided(work_of("ratio"), *records).points[0].here for records in ([*BASE, *runs(200, 2)], several))
    assert one is not None and best is not None
    # Of four groups, three of them rivals for the best: as two pairs.
    assert (one.level, best.level) == pytest.approx((0.95, 0.975))
    assert best.value == pytest.approx(one.value) and best.low < one.low < one.high < best.high


def test_numbers_that_were_published_close_are_not_claimed() -> None:
    close = work_of("order", published={1: 100, 2: 103, 4: 300})
    # 2 ranks are slower than one, which nobody claimed.
    assert decided(close, *BASE, *runs(80, 2), *runs(300, 4)).verdict is HOLDS
    assert decided(work_of("order"), *BASE, *runs(80, 2), *runs(300, 4)).verdict is DIRECTION


def test_of_an_order_most_pairs_may_be_right() -> None:
    four = work_of("order", published={1: 100, 2: 180, 4: 300, 8: 500})
    found = decided(four, *BASE, *runs(150, 2), *runs(200, 4), *runs(180, 8))
    assert found.verdict is DIRECTION and "4" in found.reason


@pytest.mark.parametrize("kind", ["ratio", "value", "order", "shape", "no effect"])
def test_who_shares_cores_and_one_run_a_side_decide_nothing(kind: str) -> None:
    sides = [(100, 1, {}), (200, 2, {}), (240, 4, {}), (101, 1, {"strategy": "ddp-gloo"})]
    wanted = sides[:1] if kind == "value" else sides
    crowded = [r for rate, ranks, how in wanted for r in runs(rate, ranks, details={"over_subscribed": True}, **how)]
    single = [r for rate, ranks, how in wanted for r in runs(rate, ranks, amount=1, **how)]
    cells = {"cells": {"batch": 16}} if kind in ("value", "order", "shape") else {}
    work = work_of(kind, measured=cells)
    assert decided(work, *crowded).verdict is OPEN
    assert decided(work, *single).verdict is OPEN
    # Many runs of other cells tell the noise, and still one run tells no outlier from the rest.
    known = [*single, *runs(500, 8, batch=512), *runs(700, 8, batch=1024)]
    found = decided(work, *known)
    assert found.verdict is OPEN, found.reason


def test_a_rule_younger_than_the_runs_decides_nothing() -> None:
    records = [*BASE, *runs(210, 2)]
    young = decided(work_of("ratio"), *records, since=YOUNG)
    assert (young.verdict, young.firm, young.edited) == (OPEN, False, True) and "2026-06-01" in young.reason
    later = [*records[:-1], *runs(210, 2, fields={"started": "2026-07-01T00:00:00Z"})[-1:]]
    assert decided(work_of("ratio"), *later, since=YOUNG).edited
    unknown = decided(work_of("ratio"), *records, since=None)
    assert (unknown.verdict, unknown.firm, unknown.edited) == (OPEN, False, True)


def test_an_edited_claim_is_another_rule() -> None:
    work, edited = work_of("ratio"), work_of("ratio", published=2.1)
    reworded = work_of("ratio", says="in other words")
    assert rule_id(work, work.claims[0]) != rule_id(edited, edited.claims[0])
    assert rule_id(work, work.claims[0]) == rule_id(reworded, reworded.claims[0])


def test_other_hyper_parameters_are_other_work() -> None:
    work = work_of("ratio", measured={"parameters": {"epochs": 100}})
    for epochs, verdict in ((100, HOLDS), (5, Verdict.NOT_COMPARABLE)):
        made = {"fields": {"parameters": {"epochs": epochs}}}
        found = decided(work, *runs(100, **made), *runs(210, 2, **made))
        assert found.verdict is verdict
    assert "epochs 5 here, 100 published" in found.reason and not found.firm
    unstated = decided(work, *BASE, *runs(210, 2))
    assert unstated.verdict is Verdict.NOT_COMPARABLE and "epochs not stated here" in unstated.reason


def test_cells_are_told_by_value_list_pattern_and_what_they_are_not() -> None:
    cell = train_cell("torch", strategy="mpi-allreduce", ranks_per_node=2, nodes=2)
    yes: list[dict[str, Any]] = [
        {"strategy": "mpi-*"},
        {"strategy": ["single", "mpi-*"]},
        {"strategy": {"not": ["single", "ddp-*"]}},
        {"ranks": 4},
        {"ranks": [2, 4], "framework": "torch"},
        {"stages": None},
        {},
    ]
    no: list[dict[str, Any]] = [{"strategy": "mpi"}, {"strategy": {"not": "mpi-*"}}, {"ranks": 2}, {"stages": 2}]
    assert [matches(cell, wanted) for wanted in yes] == [True] * len(yes)
    assert [matches(cell, wanted) for wanted in no] == [False] * len(no)


def test_the_first_measurement_that_has_results_decides() -> None:
    later = {"study": "s", "metric": "samples_per_second", "cells": {"ranks": 4}, "over": {"ranks": 1}}
    later["equal"] = ["workload", "batch"]
    work = work_of("ratio", more=[later])
    # By the first it would hold, by the second not.
    both = [*BASE, *runs(210, 2), *runs(900, 4)]
    assert decided(work, *both).verdict is HOLDS
    second = decided(work, *BASE, *runs(900, 4))
    assert second.verdict is DIRECTION and second.measured is not None and second.measured.cells == {"ranks": 4}
    nothing = decided(work, *BASE)
    assert nothing.verdict is OPEN and "ranks 2" in nothing.reason and "ranks 4" in nothing.reason


def test_what_nothing_can_measure_says_why() -> None:
    claim = Claim.model_validate(
        {"key": "c", "says": "c", "where": "w", "kind": "value", "published": 3, "not_comparable": "no such machine"}
    )
    work = Work(title="W", short="W", cite="W", hardware="cluster", conditions={}, claims=[claim])
    found = decided(work, *BASE)
    assert (found.verdict, found.reason) == (Verdict.NOT_COMPARABLE, "no such machine")
