"""The plan's format: what is written is read, golden files stay readable, and what is none is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from checkouts import ROOT
from transect.domain.errors import BadInput
from transect.runtimes.plan_file import Entry, Level, Plan, Role, plan_bytes, read_plan, write_plan

GOLDEN = ROOT / "tests" / "data" / "plans"


def latency() -> Plan:
    """A plan of each kind of entry that serving has."""
    plan = Plan(level=Level.LATENCY, batch=2, rows=7, warmup=3, min_runs=20, max_ns=250_000_000, sessions=1)
    plan.add(Entry(role=Role.PROVIDER, text="cpu"))
    plan.add(Entry(role=Role.OUT, text="/out"))
    plan.add(Entry(role=Role.OPTION, name="intra_op_num_threads", text="1"))
    plan.add(Entry(role=Role.OPTION, name="session.intra_op.allow_spinning", text="1"))
    plan.add(Entry(role=Role.MODEL, text="/models/Ω.onnx"))
    plan.add(Entry(role=Role.OUTPUTS, text="/out/outputs"))
    plan.add(Entry(role=Role.INPUT, name="x", text="/in/x.bin", dtype="float32", shape=(7, 4), size=112))
    plan.add(Entry(role=Role.INPUT, name="words", text="/in/words.bin", dtype="string", shape=(7,), size=41))
    plan.add(Entry(role=Role.OUTPUT, name="y", dtype="bfloat16"))
    plan.add(Entry(role=Role.OUTPUT, name="s", text="sequence(tensor(float32))"))
    plan.add(Entry(role=Role.PROFILE, text="/out/profile"))
    return plan


def train() -> Plan:
    """A plan of each kind of entry that training has."""
    plan = Plan(level=Level.TRAIN, batch=4, rows=40, first_step=9, steps=3, checkpoint_every=2, accumulate=2, seed=7)
    plan.state_bytes = 72
    plan.add(Entry(role=Role.OUT, text="/out"))
    block, schedule = "/out/begin.bin", "/out/schedule.bin"
    counter = plan.add(Entry(role=Role.STATE, name="step", text=block, dtype="int64", size=8))
    weight = Entry(role=Role.STATE, name="w", text=block, dtype="float32", shape=(2, 1), offset=64, size=8)
    first = plan.add(weight)
    rate = plan.add(Entry(role=Role.HYPER, name="lr", text=schedule, dtype="float64", shape=(3,), size=24))
    loss = plan.add(Entry(role=Role.METRIC, name="loss", dtype="float32"))
    plan.add(Entry(role=Role.ORDER, text="/out/order.bin", dtype="int64", shape=(3, 2, 4), size=192))
    plan.add(Entry(role=Role.GRAPH, name="step", text="/step/step.onnx"))
    for name, link in (("step", counter), ("w", first), ("lr", rate)):
        plan.add(Entry(role=Role.TAKES, name=name, link=link))
    for name, link in (("w_next", first), ("step_next", counter), ("loss", loss)):
        plan.add(Entry(role=Role.GIVES, name=name, link=link))
    return plan


MADE: dict[str, Callable[[], Plan]] = {"latency": latency, "train": train}


@pytest.mark.parametrize("name", MADE)
def test_golden_files_are_what_is_written_and_read(name: str) -> None:
    # Written anew, they are another version: programs and this number change together.
    path = GOLDEN / f"{name}-1.bin"
    assert path.read_bytes() == plan_bytes(MADE[name]())
    assert read_plan(path) == MADE[name]()


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (Entry(role=Role.INPUT, name="x", dtype="float32", shape=(1,) * 8, size=4), "8 axes, a plan's tensors"),
        (Entry(role=Role.INPUT, name="a\0b"), "zero byte"),
        (Entry(role=Role.INPUT, name="x", dtype="float32", shape=(2**63,)), "no such number"),
    ],
)
def test_what_a_plan_cannot_hold_is_refused(tmp_path: Path, entry: Entry, words: str) -> None:
    with pytest.raises(BadInput, match=re.escape(words)):
        write_plan(tmp_path / "plan", Plan(level=Level.LATENCY, entries=[entry]))
    assert not (tmp_path / "plan").exists()


def _with(place: int, value: int, size: int = 4) -> bytes:
    raw = plan_bytes(latency())
    return raw[:place] + value.to_bytes(size, "little") + raw[place + size :]


FIRST = 192
SPOILT = {
    "level": (_with(24, 9), "9 is not a valid Level"),
    "entries": (_with(28, 10**6), "too few for 1000000 entries"),
    "role": (_with(FIRST, 99), "99 is not a valid Role"),
    "type": (_with(FIRST + 8, 77), "of the type 77"),
    "axes": (_with(FIRST + 12, 8), "8 axes"),
    "link": (_with(FIRST + 16, 11), "entry 0 links to entry 11 of 11"),
    "name": (_with(FIRST + 24, 2**40, 8), "has no end"),
    "length of a text": (_with(FIRST + 48, 4, 8), "has no end"),
    "size of a tensor": (_with(FIRST + 6 * 128 + 64, 111, 8), "'x' holds 111 bytes"),
}


@pytest.mark.parametrize("what", SPOILT)
def test_a_plan_that_does_not_hold_together_is_refused(tmp_path: Path, what: str) -> None:
    raw, words = SPOILT[what]
    path = tmp_path / "plan"
    path.write_bytes(raw)
    with pytest.raises(BadInput, match=re.escape(f"{path}: ") + ".*" + re.escape(words)):
        read_plan(path)
