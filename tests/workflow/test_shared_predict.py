"""A study's classifier, applied to the tickets that it was tested with, tells what it told there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = [pytest.mark.study, pytest.mark.timeout(7200)]


def test_new_tickets_are_told_as_those_of_the_test_were(shared: Any) -> None:
    records = shared.records("shared", "classify")
    assert len(records) == 3
    for record in records.values():
        folder = shared.folder / "results" / "shared" / "classify" / record["cell_id"]
        pipeline = json.loads((folder / "pipeline.json").read_text())
        assert (pipeline["signatures"], pipeline["redact"]) == ("keep", True)
        assert pipeline["view"] == record["cell"]["view"]
        done = shared.transect("predict", str(folder), "own.jsonl", "--top", str(len(pipeline["classes"])))
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        stage, cell_id = json.loads((folder / "spec.json").read_text())["inputs"]["encode"]
        rows = np.load(shared.folder / "results" / "shared" / stage / cell_id / "rows_test.npy")
        _compare(lines, rows, folder, pipeline["classes"])


def _compare(lines: list[dict[str, Any]], rows: np.ndarray, folder: Path, classes: list[str]) -> None:
    assert [line["id"] for line in lines] == [f"ticket {number}" for number in range(len(lines))]
    with np.load(folder / "probabilities.npz") as file:
        tested = file["test"]
    assert len(tested) == len(rows) > 100
    for row, expected in zip(rows, tested, strict=True):
        likeliest = dict(map(tuple, lines[row]["likeliest"]))
        found = [likeliest[name] for name in classes]
        np.testing.assert_allclose(found, expected, atol=2e-6)
    # No row could take the place of another.
    assert len(np.unique(np.round(tested, 4), axis=0)) > len(tested) / 2
