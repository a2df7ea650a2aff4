"""Federated learning in the shared study: engines on one and on three ranks, programs in two languages, what is skipped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from checkouts import edited

pytestmark = [pytest.mark.study, pytest.mark.timeout(7200)]

FILE = "shared.yaml"


@pytest.fixture(scope="module")
def federations(shared: Any) -> dict[str, dict]:
    """The records of simulations by id."""
    return {name.split("/")[1]: record for name, record in shared.records("shared", "federate").items()}


def of(federations: dict[str, dict], **axes: Any) -> dict[str, dict]:
    return {
        name: record
        for name, record in federations.items()
        if all(record["cell"].get(axis) == value for axis, value in axes.items())
    }


def test_every_engine_follows_the_reference(federations):
    ok = [record for record in federations.values() if record["status"] == "ok"]
    assert len(ok) == 7, {name: record["message"] for name, record in federations.items()}
    for record in ok:
        values = {metric["name"]: metric["value"] for metric in record["metrics"]}
        assert max(values["equality_ratio"], values["weights_equality_ratio"]) < 1
        assert record["details"]["checked_rounds"] == record["details"]["checked_models"] == 3


@pytest.mark.parametrize("aggregation", ["fedavg", "median"])
def test_ranks_change_no_bit(shared, federations, aggregation):
    folders = [
        shared.folder / "results/shared/federate" / name
        for name in of(federations, engine="stacked", aggregation=aggregation)
    ]
    assert len(folders) == 2
    models = [dict(np.load(folder / "model.npz")) for folder in folders]
    for name, array in models[0].items():
        assert array.tobytes() == models[1][name].tobytes()
    losses = [np.load(folder / "samples.npz")["loss"] for folder in folders]
    np.testing.assert_array_equal(*losses)


def test_what_cannot_run_is_skipped_and_says_why(federations):
    skipped = {record["message"]: record["cause"] for record in federations.values() if record["status"] == "skipped"}
    assert set(skipped.values()) == {"unsupported"}
    told = sorted(skipped)
    assert [message.split(" ")[0] for message in told] == ["4", "go", "programs"], told


def test_an_edited_aggregation_runs_its_own_simulations_again(shared, federations):
    file = shared.folder / "src/transect/federated/aggregations/median.py"
    before = {name: record["started"] for name, record in federations.items()}
    with edited(file, "updates.vectors, axis=0", "updates.vectors.copy(), axis=0"):
        run = shared.transect("run", FILE, "federate")
        after = shared.records("shared", "federate")
    assert shared.transect("run", FILE, "federate").returncode == 0
    assert run.returncode == 0, run.stderr
    # What is skipped is asked again in each run.
    again = {
        name.split("/")[1]
        for name, record in after.items()
        if record["status"] == "ok" and record["started"] != before[name.split("/")[1]]
    }
    assert again == set(of(federations, aggregation="median"))
