"""Every strategy x framework x 1, 2, 3, 4, 8 ranks x 1 to 8 micro-batches follows the float64 reference.

One start of mpiexec for each framework and number of ranks, in which every case trains: losses of each
step, weights, predictions, and losses after going on from the middle. All of it takes an hour where
libraries compile; so by default numpy takes every case, the others take some, each number of ranks
other ones, and of MPI a third of these a day. `pytest --exhaustive tests/unit/training/test_equality_matrix.py` takes all.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from matrix_cases import MICRO_BATCHES, cases, chosen

from checkouts import ROOT, environment_python
from thirds import THIRD
from transect.launch.launchers.mpiexec import mpiexec_prefix
from transect.training.strategies import STRATEGIES

pytestmark = pytest.mark.env
RANKS = (1, 2, 3, 4, 8)
# Framework: its environment, what kind of cases, and of how many it takes one at each number of ranks.
# Odd numbers: the models of cases alternate. Eight ranks divide a model as four do, whatever computes it.
ROWS: list[tuple[str, str, str, dict[int, int]]] = [
    ("numpy", "base", "mpi", {1: 1, 2: 1, 3: 1, 4: 1, 8: 3}),
    ("torch", "torch", "mpi", {1: 7, 2: 7, 3: 7, 4: 9}),
    ("torch", "torch", "gloo", {1: 1, 2: 9, 3: 11, 4: 21}),
    ("mxnet", "mxnet", "mpi", {1: 7, 2: 7, 3: 7}),
    ("tensorflow", "tensorflow", "mpi", {2: 25, 3: 29}),
    ("keras-jax", "keras-jax", "mpi", {2: 41, 3: 47}),
    ("jax", "keras-jax", "mpi", {2: 29, 3: 41}),
    ("keras-torch", "torch", "mpi", {2: 29}),
    ("keras-tensorflow", "tensorflow", "mpi", {2: 41}),
    ("keras-2", "horovod-tensorflow", "mpi", {3: 41}),
]


def starts() -> Iterator[Any]:
    """Return what numpy takes, today's samples of the others, and, to be asked for, all cases of these."""
    for row, (framework, environment, kind, steps) in enumerate(ROWS):
        for number, ranks in enumerate(RANKS):
            given = framework, environment, kind, ranks
            if sample := steps.get(ranks):
                today = framework == "numpy" or kind == "gloo" or (row + number) % 3 == THIRD
                yield pytest.param(*given, sample, marks=() if today else pytest.mark.exhaustive)
            if sample != 1:
                yield pytest.param(*given, 1, marks=pytest.mark.exhaustive)


# What torch's schedules and divisions of layers do not take.
REFUSED = r"schedule \S+ takes |have no rows|cannot be cut|not even the first|has no two linear layers"


def train(framework: str, python: str, kind: str, ranks: int, step: int) -> list[dict[str, Any]]:
    here = Path(__file__).parent
    start = [*mpiexec_prefix(str(Path(python).parent / "mpiexec")), "-n", str(ranks)]
    variables = {
        "PYTHONPATH": f"{ROOT / 'src'}:{here}",
        "OMP_NUM_THREADS": "1",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "OMPI_MCA_mpi_yield_when_idle": "1",
    }
    program = [python, str(here / "matrix_steps.py"), framework, str(step), str(ranks), kind]
    done = subprocess.run(
        [*start, "--map-by", ":OVERSUBSCRIBE", *program],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=7200,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.timeout(7300)
@pytest.mark.parametrize(("framework", "environment", "kind", "ranks", "step"), [*starts()])
def test_every_way_to_divide_a_training_follows_the_reference(framework, environment, kind, ranks, step, tmp_path):
    found = train(framework, environment_python(environment, tmp_path), kind, ranks, step)
    expected = chosen(cases(ranks, kind), step, ranks)
    assert [tuple(row["case"]) for row in found] == [tuple(row) for row in expected]
    trained = [row for row in found if "off" in row]
    for row in found:
        if "reason" in row:
            assert kind == "gloo" and re.search(REFUSED, row["reason"]), row
    assert trained
    for row in trained:
        assert set(row["off"]) == {"loss", "weights", "predict", "resumed"}
        # Also false for NaN.
        assert all(value <= 1e-12 for value in row["off"].values()), row


def test_the_cases_are_those_that_were_promised():
    for ranks in RANKS:
        every = cases(ranks)
        strategies = {case.strategy for case in every}
        ours = {name for name in STRATEGIES if name.startswith("mpi-")}
        assert strategies - {"single", "async"} == ours, ranks
        assert ("single" in strategies) == (ranks == 1) == ("async" not in strategies)
        pipelines = [case for case in every if case.strategy == "mpi-pipeline"]
        stages = [n for n in range(1, ranks + 1) if ranks % n == 0]
        had = {(o.options["stages"], o.options["schedule"], o.options["micro_batches"]) for o in pipelines}
        assert had == {(s, n, m) for s in stages for n in ("gpipe", "1f1b") for m in MICRO_BATCHES}
        assert {case.share for case in every} == {8, 11}
    every = cases(4, "gloo")
    torch_strategies = {"ddp-gloo", "fsdp", "spatial", "tensor-parallel", "torch-pipeline"}
    assert {case.strategy for case in every} == torch_strategies
    schedules = {o.options["schedule"] for o in every if o.strategy == "torch-pipeline"}
    assert len(schedules) == 7
