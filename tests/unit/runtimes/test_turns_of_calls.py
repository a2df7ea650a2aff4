"""The calls of a runner that took turns: medians turn by turn, and metrics of what was quiet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cell_jobs import make_job
from factories import infer_cell
from transect.domain.errors import BadInput
from transect.engine.heat import laps_of
from transect.engine.stage import RUNNERS
from transect.runtimes.times import SAMPLES_OF_TURNS, of_turns, run_samples, run_values

# The first call of each turn is cold; in the second turn another program took a time slice.
RUN_NS = [90, 10, 12, 700, 500, 510, 5200, 30]
RECORD = {"run_ns": RUN_NS, "bind_ns": [1] * 8, "copy_ns": [2] * 8, "session_ns": 5}


def given(*quiet: bool, counts: tuple[int, ...] = (3, 4, 1)) -> dict[str, Any]:
    return {"heat": "h", "counts": list(counts), "quiet": list(quiet)}


def test_a_turn_is_the_median_of_its_calls_without_the_first() -> None:
    _, told = of_turns(RECORD, given(True, False, True))
    assert told["seconds"] == pytest.approx([11e-9, 510e-9, 30e-9])
    assert told["end_to_end_seconds"] == pytest.approx([14e-9, 513e-9, 33e-9])
    assert (told["counts"], told["quiet"]) == ([2, 3, 1], [True, False, True])
    assert (told["heat"], told["metric"]) == ("h", "latency")


@pytest.mark.parametrize(
    ("quiet", "kept"), [((True, False, True), [10, 12, 30]), ((False, False, False), [10, 12, 500, 510, 5200, 30])]
)
def test_metrics_are_of_quiet_turns_where_there_are_any(quiet: tuple[bool, ...], kept: list[int]) -> None:
    record, _ = of_turns(RECORD, given(*quiet))
    assert record["run_ns"] == kept and len(record["bind_ns"]) == len(record["copy_ns"]) == len(kept)
    assert run_values(record, 1)["latency"] == pytest.approx(np.median(kept) * 1e-9)


@pytest.mark.parametrize(
    "turns",
    [
        given(True, True, counts=(3, 4)),
        given(True, True, True, counts=(3, 4, 2)),
        given(True, True, True, True, counts=(3, 4, 0, 1)),
        given(True, True),
        given(counts=()),
    ],
)
def test_turns_of_another_run_are_refused(turns: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="8 iterations were timed, and the turns are of"):
        of_turns(RECORD, turns)


def test_of_many_calls_an_even_choice_is_kept(tmp_path: Path) -> None:
    amount = 50 * SAMPLES_OF_TURNS
    record = {"run_ns": list(range(amount)), "bind_ns": [0] * amount, "copy_ns": [7] * amount}
    found = run_samples(record, tmp_path, SAMPLES_OF_TURNS)
    values = np.array(found["latency"]["values"]) * 1e9
    assert found["latency"]["count"] == len(values) == SAMPLES_OF_TURNS
    assert (values[0], values[-1]) == pytest.approx((0, amount - 1))
    assert np.diff(values) == pytest.approx(50, abs=1.5)
    # Where inputs go round in a circle of 50, all of them are among the choice.
    assert len(set(values.round().astype(int) % 50)) == 50
    whole = np.array(found["end_to_end_time"]["values"]) * 1e9
    assert whole - values == pytest.approx(7)


def test_a_study_s_least_number_of_calls_holds_in_turns_too(tmp_path: Path) -> None:
    cell = infer_cell("c", 0)
    plan = RUNNERS.get("infer").turns(make_job(tmp_path, cell, limits={"min_runs": 200}))
    assert plan is not None
    for seconds in (1e-6, 0.001, 2.0):
        laps, counts = laps_of([plan], [seconds])
        # The first of each turn is left out.
        assert laps * (counts[0] - 1) >= 200
