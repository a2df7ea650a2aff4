"""MXNet computes what numpy computes in float64, alone and with its parameter servers."""

import json
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

MODELS = """
import json, os, sys
import numpy as np
from transect.training.frameworks import ModelPlan
from transect.training.frameworks._mxnet_trainer import MxnetTrainer
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.layered import LayeredModel
from transect.training.layers import (
    BatchNorm2d, Conv2d, Flatten, GlobalAveragePool, Linear, MaxPool2d, ReLU, Residual, Sigmoid,
    initial_weights, is_statistic,
)
from transect.training.workloads import Parameters

def block(inputs, outputs, stride):
    body = (
        Conv2d(inputs, outputs, 3, 1, stride, bias=False), BatchNorm2d(outputs), ReLU(),
        Conv2d(outputs, outputs, 3, 1, bias=False), BatchNorm2d(outputs, momentum=0.3),
    )
    same = inputs == outputs and stride == 1
    cut = (Conv2d(inputs, outputs, 1, stride=stride, bias=False), BatchNorm2d(outputs))
    return Residual(body, () if same else cut)

MODELS = {
    "mlp": ((4,), (Linear(4, 30), Sigmoid(), Linear(30, 20), ReLU(), Linear(20, 3))),
    "cnn": ((1, 9, 9), (
        Conv2d(1, 16, 3, 1), ReLU(), MaxPool2d(3, 2), Conv2d(16, 32, 3, 1), ReLU(),
        MaxPool2d(2), Flatten(), Linear(128, 3),
    )),
    "residual": ((3, 17, 17), (
        Conv2d(3, 16, 7, 3, 2, bias=False), BatchNorm2d(16), ReLU(), MaxPool2d(3, 2, 1),
        block(16, 16, 1), ReLU(), block(16, 24, 2), ReLU(), GlobalAveragePool(), Linear(24, 3),
    )),
}

def plan(model, loss, precision, seed=3, momentum=0.9):
    sample, layers = MODELS[model]
    rule = Parameters(
        batch=6, epochs=1, learning_rate=0.05, momentum=momentum, weight_decay=0.01, loss=loss,
        quality_target=0.5,
    )
    return ModelPlan(
        model=LayeredModel(layers, sample), parameters=rule, weights=initial_weights(layers, seed),
        batch=6, precision=precision, device="cpu", threads=1,
    )

def data(model, seed, size=6):
    generator = np.random.default_rng(seed)
    return generator.standard_normal((size, *MODELS[model][0])), generator.integers(0, 3, size)
"""

COMPARE = """
def run(trainer, model):
    found = []
    # The last batch is smaller: a sample variance depends on its size.
    for seed, (rate, size) in enumerate([(0.05, 6), (0.05, 6), (0.1, 6), (0.02, 4)]):
        x, y = data(model, seed, size)
        loss = trainer.forward_backward(*trainer.batch(x, y))
        flat = trainer.gradient().copy()
        # What is set counts, not what was computed.
        trainer.set_gradient(1.25 * flat)
        trainer.update(rate)
        trainer.finish_step()
        found.append((loss, flat, trainer.predict(x), trainer.weights()))
    return found

def distance(a, b):
    return float(np.abs(np.asarray(a) - np.asarray(b)).max())

rows = {}
for model in MODELS:
    for loss in ("cross-entropy", "mse"):
        for momentum in (0.9, 0.0):
            expected = run(NumpyTrainer(plan(model, loss, "fp64", momentum=momentum)), model)
            for precision in ("fp64", "fp32"):
                trainer = MxnetTrainer(plan(model, loss, precision, momentum=momentum))
                row = {}
                for want, have in zip(expected, run(trainer, model)):
                    assert list(have[3]) == list(want[3])
                    assert have[1].dtype == (np.float32 if precision == "fp32" else np.float64)
                    parts = {
                        "loss": distance(want[0], have[0]),
                        "gradient": distance(want[1], have[1]),
                        "outputs": distance(want[2], have[2]),
                    } | {name: distance(want[3][name], have[3][name]) for name in want[3]}
                    row = {name: max(value, row.get(name, 0.0)) for name, value in parts.items()}
                trainer.load(expected[0][3])
                row["loaded"] = max(
                    distance(one, expected[0][3][name]) for name, one in trainer.weights().items()
                )
                rows[f"{model} {loss} {momentum} {precision}"] = row
print(json.dumps(rows))
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


@pytest.fixture(scope="module")
def deviations(mxnet_python):
    done = warm(mxnet_python).run("-c", MODELS + COMPARE)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("precision", "limit"), [("fp64", 1e-13), ("fp32", 1e-5)])
@pytest.mark.parametrize("momentum", [0.9, 0.0])
@pytest.mark.parametrize("loss", ["cross-entropy", "mse"])
@pytest.mark.parametrize("model", ["mlp", "cnn", "residual"])
def test_follows_numpy(deviations, model, loss, momentum, precision, limit):
    row = deviations[f"{model} {loss} {momentum} {precision}"]
    assert ("4.body.1.running_var" in row) == (model == "residual")
    assert all(value < limit for value in row.values()), row


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
