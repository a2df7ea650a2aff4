"""Flower's strategies come to the same models, where they follow the same papers."""

from __future__ import annotations

import os
import subprocess
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from checkouts import environment_python
from transect.domain.options import settings
from transect.federated.aggregations import AGGREGATIONS, Updates

ROUNDS, CLIENTS, SIZE = 4, 11, 300
QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
RULES = ["fedavg", "median", "trimmed-mean", "krum", "multi-krum", "bulyan"]
OPTIMISERS = {
    "fedavgm": {"server_rate": 0.7, "momentum": 0.9},
    "fedadagrad": {"server_rate": 0.1, "tau": 0.01},
    "fedadam": {"server_rate": 0.1, "tau": 0.01},
    "fedyogi": {"server_rate": 0.1, "tau": 0.01},
}


@pytest.fixture(scope="module")
def given() -> dict[str, np.ndarray]:
    random = np.random.default_rng(3)
    return {
        "updates": random.normal(size=(ROUNDS, CLIENTS, SIZE)) * 0.1,
        "counts": random.integers(1, 200, (ROUNDS, CLIENTS)),
        "model": random.normal(size=SIZE),
    }


@pytest.fixture(scope="module")
def flower(given, tmp_path_factory) -> dict[str, np.ndarray]:
    folder = tmp_path_factory.mktemp("flower")
    np.savez(folder / "in.npz", **given)
    worker = Path(__file__).with_name("flower_worker.py")
    command = [environment_python("flower", folder), str(worker), str(folder / "in.npz"), str(folder / "out.npz")]
    done = subprocess.run(command, env=os.environ | QUIET, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(np.load(folder / "out.npz"))


def updates_of(given: dict[str, np.ndarray], number: int) -> Updates:
    return Updates(
        vectors=given["updates"][number], counts=given["counts"][number], staleness=np.zeros(CLIENTS, np.int64)
    )


@pytest.mark.env
@pytest.mark.parametrize("name", RULES)
def test_aggregates_are_those_of_flower(name, given, flower):
    rule = AGGREGATIONS.get(name)
    chosen = settings(rule.options, (("attackers", 2),) if "attackers" in rule.options else ())
    found = rule.combine(chosen, updates_of(given, 0), {})
    np.testing.assert_allclose(found, flower[name], rtol=0, atol=1e-14)
    if name == "multi-krum":
        # Its newer function, by norms and inner products: equal where updates are as large as their differences.
        np.testing.assert_allclose(found, flower["multi-krum of records"], rtol=0, atol=1e-14)


@pytest.mark.env
@pytest.mark.parametrize("name", OPTIMISERS)
def test_models_are_those_of_flower(name, given, flower):
    rule, model, chosen = AGGREGATIONS.get(name), given["model"], settings(AGGREGATIONS.get(name).options, ())
    chosen |= OPTIMISERS[name]
    # In Flower v begins at 0.
    state = {} if name == "fedavgm" else {"second": np.zeros(SIZE)}
    for number, expected in enumerate(flower[name]):
        now = chosen
        if name == "fedadam":
            # Flower corrects the bias, in the first round as if it were the second.
            power = number + 2
            rate = 0.1 * sqrt(1 - chosen["beta_2"] ** power) / (1 - chosen["beta_1"] ** power)
            now = chosen | {"server_rate": rate}
        model = rule.step(now, model, rule.combine(now, updates_of(given, number), state), state)
        np.testing.assert_allclose(model, expected, rtol=0, atol=1e-12)
