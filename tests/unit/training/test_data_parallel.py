"""Strategies of the frameworks' own, on real ranks: two of them do what two halves of a batch say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from checkouts import ROOT, environment_python
from transect.training.frameworks import FRAMEWORKS
from transect.training.strategies import STRATEGIES

pytestmark = [pytest.mark.env, pytest.mark.timeout(7300)]
SCRIPT = Path(__file__).with_name("data_parallel_steps.py")
CASES = ("cnn mean", "cnn sum", "residual mean")
# Each framework and each of Horovod's controllers, which know nothing of each other; by --exhaustive all pairs.
ROWS: list[Any] = [
    ("keras-torch", "ddp-gloo", CASES),
    ("keras-jax", "jax-data-parallel", CASES[1:]),
    ("jax", "jax-data-parallel", CASES),
    # Two ranks of three devices each.
    ("jax", "jax-data-parallel", ("residual mean 3", "cnn sum 3")),
    ("tensorflow", "multiworker-ring", CASES),
    # A store has the keys of one model.
    ("mxnet", "kvstore-dist-sync", CASES[:1]),
    ("mxnet", "kvstore-dist-sync", CASES[1:2]),
    ("torch", "horovod-gloo", (*CASES, "residual mean accumulated", "cnn sum accumulated")),
    ("torch", "ddp-gloo", ("residual mean accumulated", "cnn sum accumulated")),
    ("torch", "fsdp", ("cnn mean accumulated", "cnn sum accumulated")),
    ("torch", "horovod-mpi", CASES),
    ("tensorflow", "horovod-gloo", CASES),
    ("keras-2", "horovod-mpi", CASES),
    ("mxnet", "horovod-gloo", CASES),
    pytest.param("tensorflow", "horovod-mpi", CASES, marks=pytest.mark.exhaustive),
    pytest.param("keras-2", "horovod-gloo", CASES, marks=pytest.mark.exhaustive),
    pytest.param("mxnet", "horovod-mpi", CASES, marks=pytest.mark.exhaustive),
]


def launched(
    framework: str, strategy: str, folder: Path, *command: str, count: int = 2
) -> subprocess.CompletedProcess[str]:
    """Run a program of Python on ranks."""
    environment = STRATEGIES.get(strategy).environments.get(framework) or FRAMEWORKS.get(framework).environment
    # Only a labelled rank has a parent that tells how it ended.
    label = "--label" if "die" in command else "--no-label"
    asked = ["--framework", framework.replace("keras-2", "keras"), "--strategy", strategy]
    ranks = ["--ranks-per-node", str(count), "--threads", "1", label, "--"]
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "DMLC_"))}
    return subprocess.run(
        [sys.executable, "-m", "transect", "launch", *asked, *ranks, environment_python(environment, folder), *command],
        env=kept | {"PYTHONPATH": f"{ROOT / 'src'}:{SCRIPT.parent}", "TF_CPP_MIN_LOG_LEVEL": "2"},
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.parametrize(("framework", "strategy", "cases"), ROWS)
def test_ranks_learn_what_one_process_learns(framework, strategy, cases, tmp_path):
    done = launched(framework, strategy, tmp_path, str(SCRIPT), framework, strategy, *cases)
    assert done.returncode == 0, done.stderr
    ranks = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"place"')]
    # Parameter servers number the workers as they come.
    places = sorted(result["place"][: 2 if framework == "mxnet" else 3] for result in ranks)
    assert places in ([[0, 2, 0], [1, 2, 1]], [[0, 2], [1, 2]])
    limit = 2e-6 if strategy == "kvstore-dist-sync" else 1e-12
    for result in ranks:
        if strategy.startswith("horovod"):
            assert result["libraries"]["horovod controller"] == strategy.removeprefix("horovod-")
        for case in cases:
            grown = result[case].pop("grown")
            assert (framework, strategy[:7]) != ("torch", "horovod") or grown < 1 << 26
            # Also false for NaN.
            assert all(value < limit for value in result[case].values()), result


def test_a_killed_worker_ends_its_servers_too(tmp_path):
    done = launched("mxnet", "kvstore-dist-sync", tmp_path, str(SCRIPT), "mxnet", "kvstore-dist-sync", "die")
    assert done.returncode == 137, done.stderr
    assert "SIGKILL" in done.stderr
    left = [process for process in psutil.process_iter(["cmdline"]) if str(SCRIPT) in (process.info["cmdline"] or ())]
    assert not left


# Counts gathers, parameters held, and what a layer's own fault becomes.
FSDP = """
import json, sys
import numpy as np
import torch.distributed as dist
from trainer_checks import data, plan
from transect.training.departure import end_process
from transect.training.frameworks import FRAMEWORKS
from transect.training.strategies import STRATEGIES
gathers, gather = [], dist.all_gather_single
def counted(*given, **named):
    gathers.append(named["group"])
    return gather(*given, **named)
dist.all_gather_single = counted
strategy = STRATEGIES.get("fsdp")
place = strategy.join()
trainer = FRAMEWORKS.get("torch").trainer(plan("cnn"))
strategy.start(trainer)
x, y = data("cnn", 1)
strategy.predict(trainer, x)
counts = []
for _ in range(3):
    gathers.clear()
    strategy.step(trainer, *trainer.batch(x, y), 0.05)
    counts.append(len(gathers))
    strategy.predict(trainer, x)
held = sum(p.to_local().numel() for p in trainer.parameters)
sys.stdout.write(json.dumps([held, sum(a.size for a in plan("cnn").weights.values()), counts]) + "\\n")
sys.stdout.flush()
strategy.barrier()
end_process(0)
"""


def test_parameters_are_held_once_and_a_prediction_saves_the_next_step_no_gather(tmp_path):
    done = launched("torch", "fsdp", tmp_path, "-c", FSDP)
    assert done.returncode == 0, done.stderr
    (first, whole, counts), (second, *_) = (json.loads(line) for line in done.stdout.splitlines() if line[0] == "[")
    assert first + second == whole and counts == [1, 1, 1]


# Torch makes a RuntimeError of it, by which memory that ends would be none that ended.
FAULT = """
from trainer_checks import data, plan
from transect.domain.cell import Cell
from transect.training.frameworks import FRAMEWORKS
from transect.training.strategies import STRATEGIES, strategy_options
strategy = STRATEGIES.get("torch-pipeline")
place = strategy.join()
cell = Cell.of(stage="train", workload="none", framework="torch", strategy="torch-pipeline", batch=6,
               ranks_per_node=1, options=strategy_options("torch-pipeline", {}, "here"))
trainer = strategy.trainer(FRAMEWORKS.get("torch"), plan("cnn"), cell)
strategy.start(trainer)
def ends(module, inputs):
    raise MemoryError("no more for this layer")
trainer.parts[0].trainer.model.register_forward_pre_hook(ends)
strategy.step(trainer, *trainer.batch(*data("cnn", 1)), 0.05)
"""


def test_what_a_layer_raises_is_not_told_as_shapes(tmp_path):
    done = launched("torch", "fsdp", tmp_path, "-c", FAULT, count=1)
    assert re.findall(r"\w+Error: .*$", done.stderr, re.MULTILINE)[-1] == "MemoryError: no more for this layer"
