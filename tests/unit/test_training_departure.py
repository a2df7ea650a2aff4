"""A rank's result is on disk before its libraries can take it along."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from checkouts import ROOT
from transect.launch.launchers.mpiexec import mpiexec_prefix

PLUGINS = '''
import atexit, ctypes, os

from transect.training.frameworks import FRAMEWORKS
from transect.training.frameworks.numpy_ import NumpyFramework
from transect.training.strategies import STRATEGIES
from transect.training.strategies.single import Single


@FRAMEWORKS.register("aborts-at-exit")
class AbortsAtExit(NumpyFramework):
    """What gloo's threads do when the C++ runtime takes them apart."""

    def trainer(self, plan):
        atexit.register(os.abort)
        return super().trainer(plan)


@FRAMEWORKS.register("prints-in-c")
class PrintsInC(NumpyFramework):
    def trainer(self, plan):
        ctypes.CDLL(None).printf(b"said by a library in C")
        return super().trainer(plan)


@STRATEGIES.register("aborts-when-it-leaves")
class Aborts(Single):
    def leave(self):
        os.abort()


@STRATEGIES.register("raises-when-it-leaves")
class Raises(Single):
    def leave(self):
        raise ConnectionError("the peer has gone")
'''
RULE = {"batch": 10, "epochs": 1, "learning_rate": 0.1, "quality_target": 0.5}
DATA = {
    "workload": "iris-mlp-ce", "seed": 1, "repeats": 1,
    "parameters": {"batch": 10, "epochs": 1, "test_fraction": 0.25, "dataset_options": {}},
}  # fmt: skip


@pytest.fixture(scope="module")
def prepared(base_python, tmp_path_factory):
    """The data stage's folder, and the environment of ranks."""
    folder = tmp_path_factory.mktemp("prepared")
    (folder / "plugins").mkdir()
    (folder / "plugins" / "faults.py").write_text(PLUGINS)
    (folder / "data.json").write_text(json.dumps(DATA))
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1",
        "TRANSECT_PLUGINS": str(folder / "plugins"), "TRANSECT_STARTED_AT": str(time.time()),
    }  # fmt: skip
    command = [base_python, "-m", "transect.training.prepare", "--spec", folder / "data.json",
               "--out", folder / "data"]  # fmt: skip
    subprocess.run(command, env=environment, check=True)
    return folder / "data", environment


def train(python, prepared, out, framework="numpy", strategy="single", ranks=1, start=()):
    data, environment = prepared
    cell = {"stage": "train", "workload": "iris-mlp-ce", "framework": framework,
            "strategy": strategy, "batch": 10, "ranks_per_node": ranks}  # fmt: skip
    (out / "spec.json").write_text(json.dumps({"cell": cell, "parameters": RULE}))
    command = [*start, python, "-m", "transect.training.worker", "--spec", out / "spec.json",
               "--data", data, "--out", out]  # fmt: skip
    return subprocess.run(
        list(map(str, command)), env=environment, cwd=out, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def check_files(out, ranks=1):
    expected = {f"rank-{rank:03d}.{kind}" for rank in range(ranks) for kind in ("npz", "json")}
    files = {path.name for path in out.iterdir()}
    assert files == expected | {"weights.npz", "checked.npz", "spec.json"}
    for rank in range(ranks):
        with np.load(out / f"rank-{rank:03d}.npz") as series:
            steps = len(series["loss"])
        assert steps == json.loads((out / f"rank-{rank:03d}.json").read_text())["steps_per_epoch"]


def test_a_library_that_aborts_at_exit_costs_no_result(base_python, prepared, tmp_path):
    run = train(base_python, prepared, tmp_path, framework="aborts-at-exit")
    assert run.returncode == 0, run.stdout
    check_files(tmp_path)


def test_everything_is_written_before_a_rank_parts(base_python, prepared, tmp_path):
    run = train(base_python, prepared, tmp_path, strategy="aborts-when-it-leaves")
    assert run.returncode == -6, run.stdout
    check_files(tmp_path)


def test_a_fault_while_parting_is_told_and_costs_no_result(base_python, prepared, tmp_path):
    run = train(base_python, prepared, tmp_path, strategy="raises-when-it-leaves")
    assert run.returncode == 0, run.stdout
    assert "the peer has gone" in run.stdout
    assert not list(tmp_path.glob("*.error.json"))
    check_files(tmp_path)


def test_what_a_library_has_printed_in_c_is_not_lost(base_python, prepared, tmp_path):
    run = train(base_python, prepared, tmp_path, framework="prints-in-c")
    assert "said by a library in C" in run.stdout
    check_files(tmp_path)


@pytest.mark.parametrize("strategy", ["mpi-allreduce", "mpi-sendrecv"])
def test_mpi_ranks_end_in_order(base_python, prepared, tmp_path, strategy):
    program = Path(base_python).parent / "mpiexec"
    start = [*mpiexec_prefix(str(program)), "-n", "2", "--map-by", ":OVERSUBSCRIBE"]
    run = train(base_python, prepared, tmp_path, strategy=strategy, ranks=2, start=start)
    assert run.returncode == 0, run.stdout
    assert "abort" not in run.stdout.lower() and "finalize" not in run.stdout.lower()
    check_files(tmp_path, ranks=2)
