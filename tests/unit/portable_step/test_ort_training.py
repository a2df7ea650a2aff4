"""ONNX Runtime training 1.19.2: what its artefacts and its checkpoints need."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from checkouts import ROOT, environment_python

pytestmark = pytest.mark.env


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("ort-training")
    python = environment_python("ort-training", folder)
    helper = Path(__file__).with_name("ort_training_checks.py")
    paths = [str(ROOT / "src" / "runners" / name) for name in ("ort-training", "python")]
    done = subprocess.run(
        [python, str(helper), str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    results: dict[str, Any] = json.loads(done.stdout)
    return results


def test_an_exported_graph_is_repaired_and_trains(found: dict[str, Any]) -> None:
    assert found["repaired"] == {"Dropout": 1, "LayerNormalization": 1, "CastLike": 1} and found["unrepaired"]
    assert found["losses"][-1] < 0.9 * found["losses"][0]
    # PyTorch's form of AdamW.
    assert found["adam_mode"] == 0
    assert found["lacking"].endswith("model.onnx: parameter 'gone' is not there")


def test_averages_of_a_checkpoint_are_read_and_written(found: dict[str, Any]) -> None:
    assert found["moments"] == [
        [kind, name] for kind in ("exp_avg", "exp_avg_sq") for name in ("b", "scale", "shift", "w")
    ]
    assert found["written"] and found["trained"] == ["b", "scale", "w"]
    assert "('exp_avg', " in found["foreign"]
    assert "no step" in found["unstepped"]
