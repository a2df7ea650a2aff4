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
    """Return three runs with a time to the target, or without one."""
    changed = {"drop": ("time_to_quality",)} if seconds is None else {"changes": {"time_to_quality": seconds}}
    fields |= changed
    return [train_record("numpy", "single", 1, r, batch=batch, noise=1 + r * noise, **fields) for r in range(3)]


def test_the_batch_that_learns_soonest_is_named_and_the_next_one_beside_it():
    [said] = findings(*repeats(1, 4.0), *repeats(16, 2.0), *repeats(114, None))["batch"]
    assert "batch 16 reaches" in said.claim and "soonest, in 2" in said.claim
    assert "batch 1 takes 2 times" in said.claim and said.claim.endswith("with batch 114 not every run does.")
    [pair] = said.contrasts
    assert pair.ratio.value == pytest.approx(2, rel=0.01)
    assert {group.global_batch for group in said.groups} == {1, 16, 114}
    assert said.confidence is not Confidence.INCONCLUSIVE


def test_what_cannot_be_told_apart_is_not_told_and_what_alone_gets_there_is():
    [alike] = findings(*repeats(1, 2.0, noise=0.5), *repeats(16, 2.01, noise=0.5))["batch"]
    assert alike.confidence is Confidence.INCONCLUSIVE
    [alone] = findings(*repeats(1, 2.0), *repeats(16, None))["batch"]
    assert alone.claim.startswith("batch 1 alone reaches")
    [nobody] = findings(*repeats(1, None), *repeats(16, None))["batch"]
    assert nobody.claim.startswith("with none of 2 batches every run reaches")


def test_nothing_is_said_of_one_batch_of_synthetic_input_or_unasked():
    assert "batch" not in findings(*repeats(16, 2.0))
    assert "batch" not in findings(*repeats(16, 2.0), *repeats(1, 2.0, input="synthetic"))
    unasked = context(*repeats(1, 4.0), *repeats(16, 2.0), asks=("training.fastest",))
    assert not [one for one in make_findings(unasked, all_parts().findings) if one.kind == "batch"]
