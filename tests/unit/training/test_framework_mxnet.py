"""MXNet with its parameter servers; one rank's steps: test_trainers.py."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from checkouts import ROOT, environment_python
from transect.domain.cell import Cell
from transect.training.frameworks.mxnet_ import MxnetFramework
from transect.training.strategies.kvstore import KvstoreDistSync
from warm import ended, warm

MODELS = f"""
import json, os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import numpy as np
from transect.training.frameworks._mxnet_trainer import MxnetTrainer
from transect.training.layers import is_statistic
from trainer_checks import data, plan
"""

WORKER = """
from transect.training.strategies.kvstore import KvstoreDistSync

strategy = KvstoreDistSync()
strategy.operation = sys.argv[2]
place = strategy.join()
trainer = MxnetTrainer(plan("residual", "cross-entropy", "fp32", seed=place.rank))
strategy.start(trainer)
strategy.barrier()
started = trainer.weights()
x, y = trainer.batch(*data("residual", 10 + place.rank))
trainer.forward_backward(x, y)
local = trainer.gradient().copy()
strategy.reduce(trainer)
common = trainer.gradient().copy()
if len(sys.argv) > 3 and place.rank == 1:
    os.kill(os.getpid(), 9)
for rate in (0.05, 0.1, 0.1):
    parts = strategy.step(trainer, x, y, rate)
    assert parts.communication > 0 and parts.compute > 0
strategy.barrier()
np.savez(
    f"{sys.argv[1]}/worker-{place.rank}.npz", place=[place.rank, place.world_size],
    local=local, common=common,
    **{f"started {name}": one for name, one in started.items()},
    **{f"ended {name}": one for name, one in trainer.weights().items() if not is_statistic(name)},
)
strategy.leave()
"""


@pytest.fixture(scope="session")
def mxnet_python(tmp_path_factory):
    return environment_python("mxnet", tmp_path_factory.mktemp("environment"))


def environment(**more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DMLC_", "PYTHON", "SLURM_"))}
    return kept | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"} | more


def test_refuses_what_it_cannot_do():
    cell = Cell.of(stage="train", workload="iris-mlp", framework="mxnet", strategy="single", batch=16)
    framework, strategy = MxnetFramework(), KvstoreDistSync()
    assert framework.supports(cell) is None
    assert "cpu" in framework.supports(cell.model_copy(update={"device": "cuda"}))
    assert "bf16" in framework.supports(cell.model_copy(update={"precision": "bf16"}))
    assert strategy.supports(cell) is None
    assert "float32" in strategy.supports(cell.model_copy(update={"precision": "fp64"}))
    assert "torch" in strategy.supports(cell.model_copy(update={"framework": "torch"}))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("operation", ["mean", "sum"])
def test_two_workers_and_a_server(mxnet_python, tmp_path, operation):
    import numpy as np

    meet = {
        "DMLC_PS_ROOT_URI": "127.0.0.1",
        "DMLC_PS_ROOT_PORT": str(free_port()),
        "DMLC_NUM_WORKER": "2",
        "DMLC_NUM_SERVER": "1",
        "DMLC_NODE_HOST": "127.0.0.1",
    }
    program = "-c", MODELS + WORKER, str(tmp_path), operation
    # In these two the library serves while it is loaded.
    serving = [
        subprocess.Popen(
            [mxnet_python, *program],
            env=environment(**meet, DMLC_ROLE=role),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for role in ("scheduler", "server")
    ]
    workers = [warm(mxnet_python).start(*program, env=meet | {"DMLC_ROLE": "worker"}) for _ in "ab"]
    try:
        done = ended(workers, 120)
        said = [one.communicate(timeout=600)[0] for one in serving]
    finally:
        for one in serving:
            one.kill()
            one.wait()
    assert [one.returncode for one in done] == [0, 0], [one.stderr for one in done]
    assert [one.returncode for one in serving] == [0, 0], said
    first, second = (np.load(tmp_path / f"worker-{rank}.npz") for rank in (0, 1))
    assert first["place"].tolist() == [0, 2] and second["place"].tolist() == [1, 2]
    assert np.abs(first["local"] - second["local"]).max() > 0.01
    expected = (first["local"] + second["local"]) / (2 if operation == "mean" else 1)
    # Two terms are added with one rounding, wherever that is done.
    assert np.array_equal(first["common"], expected)
    names = [name for name in first.files if name.startswith(("started", "ended", "common"))]
    assert len(names) > 20
    for name in names:
        assert np.array_equal(first[name], second[name]), name
    assert not np.array_equal(first["ended 0.weight"], first["started 0.weight"])


def test_killed_worker_ends_all(mxnet_python, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(MODELS + WORKER)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "transect",
            "launch",
            "--framework",
            "mxnet",
            "--strategy",
            "kvstore-dist-sync",
            "--ranks-per-node",
            "2",
            "--",
            mxnet_python,
            str(script),
            str(tmp_path),
            "mean",
            "die",
        ],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 137, done.stderr
    assert "SIGKILL" in done.stderr
    assert not list(Path(tmp_path).glob("worker-*"))
    left = [one.pid for one in psutil.process_iter() if str(script) in _arguments(one)]
    assert not left


def _arguments(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
