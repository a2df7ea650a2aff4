"""A trainer in C, without any library, trains iris-mlp and is held to the float64 reference."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from program_cells import program_cell
from rank_runs import Training, arrays

from transect.training.raw_arrays import describe_npz, read_array, write_array

SOURCE = Path(__file__).resolve().parents[2] / "data" / "trainers" / "mlp.c"
PLUGINS = '''
from transect.training.frameworks import FRAMEWORKS, ProgramFramework


@FRAMEWORKS.register("c")
class InC(ProgramFramework):
    """Sigmoids, half the squared distance and SGD, on one rank in float32."""

    environment = "base"
    program = "PROGRAM"

    def supports(self, cell):
        if cell.precision != "fp32" or cell.device != "cpu" or cell.strategy != "single":
            return "the trainer in C runs on one CPU rank, in fp32"
        return None

    def command(self, files):
        return [self.program, str(files.plan)]

'''


@pytest.fixture(scope="module")
def training(base_python, tmp_path_factory) -> Training:
    folder = tmp_path_factory.mktemp("trainer")
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc to compile the trainer in C with")
    program = folder / "mlp"
    flags = ("-O2", "-Wall", "-Wextra", "-Werror")
    subprocess.run([compiler, *flags, "-o", program, SOURCE, "-lm"], check=True)
    rule = {"batch": 16, "epochs": 30, "learning_rate": 0.5, "momentum": 0.5, "weight_decay": 1e-3, "loss": "mse"}
    made = Training(
        python=base_python,
        folder=folder / "training",
        workload="iris-mlp",
        rule=rule,
        plugins=PLUGINS.replace("PROGRAM", str(program)),
    )
    made.prepare(repeats=2)
    return made


@pytest.fixture(scope="module")
def reference(training) -> Path:
    return training.reference(repeat=1)


def run_cell(training: Training, reference: Path, *damage: str, rule=None, **axes) -> dict:
    cell = {"framework": "c", "strategy": "single", "batch": 16, "repeat": 1, **axes}
    return program_cell(training, reference, *damage, rule=rule, **cell)


def test_it_follows_the_float64_reference(training, reference):
    result = run_cell(training, reference)
    assert (result["status"], result["message"]) == ("ok", "")
    assert 0 < result["metrics"]["equality_ratio"] <= 1
    assert 0 < result["metrics"]["weights_equality_ratio"] <= 1
    # It asks for none of the reference's states, and the record says so.
    assert result["details"]["restarts"] == []
    assert "a program of its own" in result["details"]["restarts_not_checkable"]
    assert result["metrics"]["parameters"] == 4 * 30 + 30 + 30 * 20 + 20 + 20 * 3 + 3
    metrics = json.loads((reference / "result.json").read_text())["metrics"]
    accuracy = {metric["name"]: metric["value"] for metric in metrics}["accuracy"]
    assert result["metrics"]["accuracy"] == accuracy > 0.5
    assert list(result["libraries"]) == ["c"]
    # As with any trainer: series and weights, and no rank's own files.
    assert {"samples.npz", "weights.npz", "trainer-plan.json"} <= set(result["files"])
    assert not [name for name in result["files"] if name.startswith("rank-")]
    weights = arrays(Path(result["folder"]) / "weights.npz")
    assert weights["0.weight"].shape == (30, 4) and list(weights)[-1] == "4.bias"


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("(job.folder / 'rank-000.json').write_text('{')", "rank 0 left no result"),
        ("open(job.folder / 'rank-000.bin', 'r+b').truncate(100)", "100 bytes hold no float64"),
        (
            "p = job.folder / 'rank-000.json'; p.write_text(p.read_text().replace('\"2.bias\"', '\"b\"'))",
            "its 'weights' are",
        ),
    ],
)
def test_what_breaks_the_contract_is_named_in_the_record(training, reference, damage, words):
    result = run_cell(training, reference, damage)
    assert (result["status"], result["cause"]) == ("failed", "crash")
    assert words in result["message"]


def test_a_wrong_trainer_is_a_wrong_result(training, reference):
    """It is told a learning rate that is not the reference's."""
    result = run_cell(training, reference, rule={"learning_rate": 0.51})
    assert (result["status"], result["cause"]) == ("failed", "wrong-result")


def test_arrays_are_found_in_what_numpy_has_written(tmp_path):
    given = {"x": np.arange(12.0).reshape(3, 4), "y": np.arange(5), "b": np.arange(7, dtype=np.uint8)}
    np.savez(tmp_path / "some.npz", **given)
    entries = describe_npz(tmp_path / "some.npz")
    assert entries.keys() == given.keys()
    for name, entry in entries.items():
        assert np.array_equal(read_array(entry, tmp_path), given[name]), name
        again = write_array(tmp_path / "raw.bin", given[name])
        assert np.array_equal(read_array(again, Path("/")), given[name]), name
    np.savez_compressed(tmp_path / "small.npz", **given)
    with pytest.raises(ValueError, match="compressed"):
        describe_npz(tmp_path / "small.npz")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"file": "raw.bin", "dtype": "float64", "shape": [4]}, "24 bytes hold no float64"),
        ({"file": "raw.bin", "dtype": "complex64", "shape": [1]}, "expected one of float64"),
        ({"file": "raw.bin", "shape": [1]}, "given by file, dtype, shape"),
    ],
)
def test_an_array_that_does_not_fit_its_file_is_refused(tmp_path, entry, words):
    (tmp_path / "raw.bin").write_bytes(bytes(24))
    with pytest.raises(ValueError, match=words):
        read_array(entry, tmp_path)
