"""Which cells enter the verdict on a claim: none that should tell against it is lost, and a choice among many counts."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from test_claims_decided import BASE, CLAIMS, HOLDS, OPEN, decided, runs, work_of

from transect.analysis.claim_cells import matches
from transect.domain.claims import Measured
from transect.domain.record import Cause, Status

GOOD = runs(101, strategy="ddp-gloo")
LOST = {
    "failed": runs(101, strategy="ddp-nccl", fields={"status": Status.FAILED, "cause": Cause.CRASH, "message": "why"}),
    "wrong": [
        *runs(101, strategy="ddp-nccl", amount=5),
        *runs(
            101, strategy="ddp-nccl", fields={"status": Status.FAILED, "cause": Cause.WRONG_RESULT, "message": "wrong"}
        )[-1:],
    ],
    "without its like": runs(50, strategy="ddp-nccl", batch=512),
}


@pytest.mark.parametrize("name", LOST)
def test_no_effect_holds_only_where_each_has_a_result(name: str) -> None:
    assert decided(work_of("no effect"), *BASE, *GOOD).verdict is HOLDS
    found = decided(work_of("no effect"), *BASE, *GOOD, *LOST[name])
    assert found.verdict is OPEN and "ddp-nccl" in found.reason


def test_what_is_skipped_is_not_lacking() -> None:
    skipped = runs(
        101,
        strategy="ddp-nccl",
        fields={"status": Status.SKIPPED, "cause": Cause.UNSUPPORTED, "message": "no such library"},
    )
    assert decided(work_of("no effect"), *BASE, *GOOD, *skipped).verdict is HOLDS


def test_the_best_of_many_counts_for_as_many() -> None:
    wide = (0.9, 1.1, 0.95, 1.05, 1.0, 1.02)
    many = [run for n in range(8) for run in runs(104 - n, 2, sway=wide, strategy=f"way-{n}")]
    every = {"cells": {"ranks": [1, 2, 4]}}
    one = decided(work_of("order", measured=every), *BASE, *runs(104, 2, sway=wide), *runs(300, 4))
    best = decided(work_of("order", measured=every), *BASE, *many, *runs(300, 4))
    assert [each.n_comparisons for each in one.contrasts] == [1, 1, 1]
    assert max(each.n_comparisons for each in best.contrasts) == 4.5
    value = work_of("value", published=100.0, rule={"test": "at least", "factor": 1}, measured={"cells": {"ranks": 2}})
    alone, chosen = decided(value, *runs(104, 2, sway=wide)), decided(value, *many)
    assert alone.points[0].here.low > chosen.points[0].here.low  # type: ignore[union-attr]


@pytest.mark.parametrize("margin", [0.01, 0.05, 0.25])
def test_an_order_is_decided_by_its_own_rule_whatever_the_study_calls_the_same(margin: float) -> None:
    two = work_of("order", published={1: 100, 2: 120})
    assert decided(two, *BASE, *runs(115, 2), margin=margin).verdict is HOLDS


@pytest.mark.parametrize("wanted", [{"strategy": {"nott": "single"}}, {"strategy": {"not": "single", "and": "x"}}])
def test_a_selector_is_a_value_several_or_not(wanted: dict) -> None:
    with pytest.raises(ValidationError, match="expected a value"):
        Measured.model_validate({"study": "s", "metric": "step_time", "cells": wanted})


def test_a_pattern_is_no_missing_value_and_true_is_not_one() -> None:
    [run] = runs(100, amount=1)
    assert not matches(run.cell, {"network": "*"}) and not matches(run.cell, {"ranks": True})
    assert matches(run.cell, {"ranks": 1, "network": None, "strategy": "sing*"})


def test_other_hyperparameters_are_no_cells_of_a_claim_that_does_not_name_them() -> None:
    [run] = runs(100, amount=1)
    changed = run.cell.model_copy(update={"hyperparameters": (("learning_rate", 0.5),)})
    assert matches(run.cell, {"strategy": "single"}) and not matches(changed, {"strategy": "single"})
    assert matches(changed, {"strategy": "single", "hyperparameters": {"not": ()}})


@pytest.mark.parametrize("study", ["../../etc", "/tmp", "a/b", ""])
def test_a_study_is_a_name(study: str) -> None:
    with pytest.raises(ValidationError):
        Measured.model_validate({"study": study, "metric": "step_time"})


@pytest.mark.parametrize(
    ("kind", "changes", "why"),
    [
        ("order", {"published": {1: 100, 2: 101}}, "further apart"),
        (
            "order",
            {"published": [100.0, 200.0], "measured": {"along": {"axis": "ranks", "values": [2, 2]}}},
            "each once",
        ),
        ("shape", {"measured": {"along": {"axis": "ranks", "values": [1, 2]}}}, "as many"),
        ("order", {"measured": {"replicas": 4}}, "expected a ratio"),
        ("ratio", {"measured": {"replicas": 4, "cells": {"ranks": 2}}}, "neither"),
    ],
)
def test_what_could_never_be_decided_is_refused(kind: str, changes: dict, why: str) -> None:
    given = {"measured": CLAIMS[kind]["measured"] | changes.pop("measured", {})} | changes
    with pytest.raises(ValidationError, match=why):
        work_of(kind, **given)
