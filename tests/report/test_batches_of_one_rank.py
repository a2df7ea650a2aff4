"""Batches of one training on one rank, side by side: which learns soonest, and what is not said."""

from __future__ import annotations

from typing import Any

import pytest
from make_framework_records import train_record
from said_of_records import context, findings

from transect.domain.record import Record
from transect.report.engine.collect import make_findings
from transect.report.engine.parts import all_parts
from transect.stats.comparisons import Confidence


def repeats(batch: int, seconds: float | None, *, noise: float = 0.002, **fields: Any) -> list[Record]:
    """Return three runs with a time to the target in steps of the batch's own, or without one."""

    def told(repeat: int) -> dict[str, Any]:
        if seconds is None:
            return {"drop": ("time_to_quality",)}
        # The slowest is another one for each batch: seeds do not pair what has nothing in common.
        own = 1 + (repeat * batch % 3) * noise
        return {"changes": {"time_to_quality": seconds * own, "steps_to_quality": 4000 / batch}}

    return [train_record("numpy", "single", 1, r, batch=batch, **fields, **told(r)) for r in range(3)]


def test_the_batch_that_learns_soonest_is_named_and_the_next_one_beside_it():
    [said] = findings(*repeats(1, 4.0), *repeats(16, 2.0), *repeats(114, None))["batch"]
    assert "batch 16 reaches" in said.claim and "soonest, in 2" in said.claim
    assert "batch 1 takes 2 times" in said.claim and said.claim.endswith("with batch 114 not every run does.")
    [pair] = said.contrasts
    assert pair.times.value == pytest.approx(2, rel=0.01)
    assert {group.global_batch for group in said.groups} == {1, 16, 114}
    assert said.confidence is not Confidence.INCONCLUSIVE


def test_what_cannot_be_told_apart_is_not_told_and_what_alone_gets_there_is():
    [alike] = findings(*repeats(1, 2.0, noise=0.5), *repeats(8, 2.01, noise=0.5), *repeats(16, None))["batch"]
    assert alike.confidence is Confidence.INCONCLUSIVE and "is as fast is not known" in alike.claim
    [same] = findings(*repeats(1, 2.0), *repeats(16, 2.01))["batch"]
    assert "as fast within 5 %" in same.claim
    [alone] = findings(*repeats(1, 2.0), *repeats(16, None))["batch"]
    assert alone.claim.startswith("batch 1 alone reaches")
    [nobody] = findings(*repeats(1, None), *repeats(16, None))["batch"]
    assert nobody.claim.startswith("with none of 2 batches every run reaches")


def test_every_batch_is_beside_the_first_by_pairs_that_are_planned():
    [said] = findings(*repeats(1, 4.0), *repeats(16, 2.0), *repeats(64, 6.0))["batch"]
    assert "batch 1 takes 2 times as long; batch 64 takes 3 times as long" in said.claim
    made = context(*repeats(1, 4.0), *repeats(16, 2.0), asks=("training.fastest",))
    assert [pair.asked for pair in made.contrasts.of("training.batch")] == [False]
    assert said.contrasts and all(pair.asked for pair in said.contrasts)


def test_two_sweeps_are_told_apart():
    """They had one subject and one scope, and said different things."""
    sweeps = [
        run
        for precision in ("fp32", "fp64")
        for run in (*repeats(1, 4.0, precision=precision), *repeats(16, 2.0, precision=precision))
    ]
    ways = [train_record("numpy", "ddp-gloo", 1, r, batch=batch) for batch in (1, 16) for r in range(3)]
    scopes = [said.scope for said in findings(*sweeps, *ways)["batch"]]
    assert len(scopes) == len(set(scopes)) == 3


def test_nothing_is_said_of_one_batch_of_synthetic_input_or_unasked():
    assert "batch" not in findings(*repeats(16, 2.0))
    assert "batch" not in findings(*repeats(16, 2.0), *repeats(1, 2.0, input="synthetic"))
    unasked = context(*repeats(1, 4.0), *repeats(16, 2.0), asks=("training.fastest",))
    assert not [one for one in make_findings(unasked, all_parts().findings) if one.kind == "batch"]
