"""A study that infers a file with dynamic ranges in several batches, and then in one more."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.study

STUDY = """
name: ranges
limits: {seconds: 300, memory_mb: 4000}
models: {models: [mlp], exporters: [torchscript]}
infer:
  max_seconds: 0.05
  grids:
    - {workloads: [mlp], runtimes: [python], batches: [1, 32], precisions: [int8-dynamic]}
"""


def test_each_batch_is_held_beside_its_own_outputs(place):
    study = place.folder / "ranges.yaml"
    study.write_text(STUDY)
    run = place.make("ranges.yaml", report=False)
    assert run.returncode == 0, run.stderr

    def records(stage: str) -> dict[int, dict]:
        found = place.records("ranges", stage).values()
        assert {record["status"] for record in found} == {"ok"}, found
        return {record["cell"].get("batch", 0): record for record in found}

    first, told = records("infer"), records("convert")[0]["details"]["by_batch"]
    assert first.keys() == {1, 32} and told.keys() == {"1", "32"}
    for batch, record in first.items():
        assert record["details"]["mean_tolerance"] == told[str(batch)]["mean_tolerance"]
    study.write_text(STUDY.replace("[1, 32]", "[1, 8, 32]"))
    run = place.make("ranges.yaml", report=False)
    assert run.returncode == 0, run.stderr
    again = records("infer")
    assert again.keys() == {1, 8, 32}
    assert records("convert")[0]["details"]["by_batch"].keys() == {"1", "8", "32"}
    # What was right stays: only its own outputs count.
    assert {batch: again[batch] for batch in first} == first
