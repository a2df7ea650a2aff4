"""What passes between stages: whole arrays in their order, and a fault where sizes do not fit."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from checkouts import ROOT
from transect.launch.launchers.mpiexec import mpiexec_prefix


@pytest.fixture(scope="module")
def found(base_python: str) -> dict[str, list]:
    program = str(Path(base_python).parent / "mpiexec")
    script = str(Path(__file__).with_name("lane_messages.py"))
    run = subprocess.run(
        [*mpiexec_prefix(program), "-n", "2", "--map-by", ":OVERSUBSCRIBE", base_python, script],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    return dict(json.loads(run.stdout))


def test_arrays_arrive_whole_and_in_order_through_few_buffers(found):
    assert found["right"] == [[True] * 10] * 6


def test_a_message_of_another_size_is_a_fault_that_names_it(found):
    shorter, longer = found["wrong"]
    expected = "expected gradients (3, 4) of micro-batch 0 from stage 0, 96 bytes"
    assert shorter == f"{expected}, got 72 bytes"
    assert longer.startswith(f"{expected}: MPI_ERR_TRUNCATE")
