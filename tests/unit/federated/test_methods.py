"""Methods: their papers in plain numpy, engines and ranks that agree, and whose model is scored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from federations import SEED, a_cell, data_folder, make_reference, parameters, run, spoil
from method_papers import PAPERS, RATE, STEPS

from transect.domain.axes.federate import FederateCell
from transect.federated.engines import ENGINES, Session, Task, Turn, Turned
from transect.federated.exchange import Exchange
from transect.federated.flat import flat_of
from transect.federated.methods import METHODS
from transect.federated.plan_file import plan_of
from transect.federated.rounds import Plan, Round, simulate
from transect.training.inputs import load_arrays, load_weights
from transect.training.workloads import WORKLOADS, Parameters

# Where the defaults are not for a model of one layer.
OPTIONS: dict[str, tuple[tuple[str, Any], ...]] = {"fedper": (("tensors", "1.bias"),)}
PLAIN = {"momentum": 0.0, "learning_rate": RATE}
BIAS = slice(640, 650)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return data_folder(tmp_path_factory.mktemp("data"))


def cell_of(method: str, **axes: Any) -> FederateCell:
    return a_cell(**{"method": method, "method_options": OPTIONS.get(method, ()), **axes})


def made(data: Path, cell: FederateCell, exchange: Exchange | None = None) -> tuple[list[Round], Plan, Task]:
    """Simulate; what clients keep is copied, as each update changes it."""
    model = WORKLOADS.get(str(cell.workload)).model
    arrays = load_arrays(data, np.float64)
    dtype = np.float64 if cell.precision == "fp64" else np.float32
    weights = {name: array.astype(dtype) for name, array in load_weights(data, 0).items()}
    task = Task(
        cell=cell,
        model=model,
        parameters=Parameters.model_validate(parameters(**PLAIN)),
        weights=weights,
        x=arrays["x_train"].astype(dtype),
        y=arrays["y_train"],
    )
    plan = plan_of(cell, model, SEED, task.y, arrays, RATE)
    with ENGINES.get(cell.engine).session(task) as session:
        found = simulate(plan, flat_of(model, weights), session, exchange)
        return [replace(one, kept=dict(one.kept)) for one in found], plan, task


def test_each_method_has_its_paper() -> None:
    assert PAPERS.keys() == set(METHODS)


@pytest.mark.parametrize("method", PAPERS)
def test_a_method_is_that_of_its_paper(data: Path, method: str) -> None:
    # 90 rows: 15 for each client.
    cell = cell_of(method, partition="iid", precision="fp64", rounds=6, cohort=4)
    if method in ("fedprox", "ditto"):
        cell = cell.changed(method_options=(("mu", 0.7),))
    found, plan, task = made(data, cell)
    numbers = iter(range(24))
    rows: dict[int, np.ndarray] = {}

    def rounds() -> Iterator[list[int]]:
        from transect.federated.draws import rows_of_turns

        for clients in plan.timetable.client.tolist():
            for client in clients:
                drawn = rows_of_turns(SEED, np.array([next(numbers)]), np.array([15]), STEPS, cell.batch)[0]
                rows[client] = plan.clients.of(client)[drawn]
            yield clients

    def gradient(w: np.ndarray, client: int, step: int) -> np.ndarray:
        """That of the mean cross-entropy of a logistic regression."""
        taken = rows[client][step]
        x, y = task.x[taken].reshape(len(taken), 64), task.y[taken]
        scores = x @ w[:640].reshape(10, 64).T + w[640:]
        share = np.exp(scores - scores.max(axis=1, keepdims=True))
        share = share / share.sum(axis=1, keepdims=True) - np.eye(10)[y]
        return np.concatenate([(share.T @ x).reshape(-1), share.sum(axis=0)]) / len(taken)

    option = {name: value for name, value in plan.terms.settings.items() if isinstance(value, float)}
    start = flat_of(task.model, task.weights)
    trained: set[int] = set()
    for one, (model, kept) in zip(
        found, PAPERS[method](start, rounds(), gradient, cell.clients, **option), strict=True
    ):
        np.testing.assert_allclose(one.model, model, rtol=0, atol=1e-12)
        trained |= set(one.clients)
        assert set(one.kept) == (trained if kept else set())
        for client, own in one.kept.items():
            np.testing.assert_allclose(own, kept[client], rtol=0, atol=1e-12)
    assert len(trained) == cell.clients


@pytest.mark.parametrize("engine", ["loop", "stacked"])
@pytest.mark.parametrize("method", list(METHODS))
def test_engines_follow_the_reference(tmp_path: Path, data: Path, method: str, engine: str) -> None:
    cell = cell_of(method, engine=engine, framework="numpy" if engine == "loop" else None)
    found, _ = run(tmp_path / "cell", cell, data, make_reference(tmp_path, cell, data, **PLAIN), **PLAIN)
    assert found["status"] == "ok", found
    values = {metric["name"]: metric["value"] for metric in found["metrics"]}
    assert 0 < values["weights_equality_ratio"] < 0.5 and 0 < values["restart_ratio"] < 0.5
    assert all(restart["sharp"] for restart in found["details"]["restarts"])
    personal = ["1.bias"] if method == "fedper" else None
    assert found["details"].get("personal_tensors") == personal
    sent = 640 if personal else 650
    assert values["sent_bytes"] == 2 * cell.cohort * METHODS.get(method).vectors * sent * 4


class _Deaf(Session):
    """Ignores what is added to gradients, or errs in turns that are not sent alone."""

    def __init__(self, right: Session, fault: str) -> None:
        self.right, self.fault = right, fault

    def turns(self, turns: Iterable[Turn]) -> Iterator[Turned]:
        given = list(turns)
        if self.fault == "deaf":
            given = [replace(turn, mu=0.0, correction=None) for turn in given]
        for done in self.right.turns(given):
            if self.fault == "own" and given[0].anchor is not None:
                done.weights[0, 7] += np.float32(1e-3)
            yield done


@pytest.mark.parametrize(
    "method, fault",
    [*((name, "deaf") for name in METHODS if METHODS.get(name).pulls or METHODS.get(name).corrects), ("ditto", "own")],
)
def test_an_engine_without_what_a_method_adds_is_a_wrong_result(
    tmp_path: Path, data: Path, method: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch, lambda right: _Deaf(right, fault))
    cell = cell_of(method)
    found, _ = run(tmp_path / "cell", cell, data, make_reference(tmp_path, cell, data, **PLAIN), **PLAIN)
    assert (found["status"], found["cause"]) == ("failed", "wrong-result"), found
    assert "float64 reference" in found["message"]


class _Rank(Exchange):
    """A rank of several that are computed one after another: it hears what all said in an update before."""

    def __init__(self, rank: int, size: int, said: list[list[np.ndarray]]) -> None:
        self.rank, self.size, self._said, self._turn = rank, size, said, 0

    def total(self, array: np.ndarray) -> np.ndarray:
        if len(self._said[self.rank]) == self._turn:
            self._said[self.rank].append(array.copy())
        whole = [mine[self._turn] for mine in self._said if len(mine) > self._turn]
        self._turn += 1
        return np.sum(whole, axis=0) if len(whole) == self.size else array


@pytest.mark.parametrize("aggregation", ["fedavg", "median"])
@pytest.mark.parametrize("method", list(METHODS))
def test_no_bit_depends_on_the_ranks(data: Path, method: str, aggregation: str) -> None:
    cell = cell_of(method, aggregation=aggregation, rounds=1, cohort=5)
    (alone,), *_ = made(data, cell)
    for size in (2, 4):
        said: list[list[np.ndarray]] = [[] for _ in range(size)]
        for rank in range(size):
            made(data, cell, _Rank(rank, size, said))
        for rank in (0, size - 1):
            (found,), *_ = made(data, cell, _Rank(rank, size, said))
            assert found.whole().tobytes() == alone.whole().tobytes() and found.loss == alone.loss


@pytest.mark.parametrize("engine", ["loop", "stacked"])
@pytest.mark.parametrize("aggregation", ["fedavg", "fedbuff"])
def test_without_a_pull_it_is_plain_in_every_bit(data: Path, engine: str, aggregation: str) -> None:
    axes = {"engine": engine, "framework": None, "aggregation": aggregation}
    axes |= {"buffer": 2, "slowness": 1.0} if aggregation == "fedbuff" else {}
    plain, none, some = (
        made(data, cell_of(name, method_options=options, **axes))[0]
        for name, options in (("plain", ()), ("fedprox", (("mu", 0.0),)), ("fedprox", (("mu", 0.5),)))
    )
    assert [one.model.tobytes() for one in none] == [one.model.tobytes() for one in plain]
    assert (some[-1].model != plain[-1].model).any()


def test_dittos_server_learns_what_plain_clients_teach_it(data: Path) -> None:
    plain, ditto = (made(data, cell_of(name))[0] for name in ("plain", "ditto"))
    assert [one.model.tobytes() for one in ditto] == [one.model.tobytes() for one in plain]


def test_clients_of_their_own_models_are_scored_by_these(tmp_path: Path, data: Path) -> None:
    cell = cell_of("ditto", partition="labels-2", rounds=8, method_options=(("mu", 0.0),))
    found, out = run(tmp_path / "cell", cell, data, make_reference(tmp_path, cell, data, **PLAIN), **PLAIN)
    values = {metric["name"]: metric["value"] for metric in found["metrics"]}
    scores = np.load(out / "samples.npz")["client_score"]
    # Clients of two classes tell them apart alone; the server's model has ten.
    assert len(scores) == cell.clients and values["accuracy"] > 0.8
    assert values["worst_clients_score"] == pytest.approx(min(scores), abs=1e-6)
    # Those that have just trained are good from the first update on, when others have not trained at all.
    assert found["details"]["quality"] == {
        "metric": "accuracy", "target": 0.6, "of": "each client's own model", "reached": None,
    }  # fmt: skip
    assert not values.keys() & {"rounds_to_quality", "simulated_time_to_quality"}
    with np.load(out / "samples.npz") as samples:
        assert samples["accuracy"][0] > 0.6 and samples["accuracy"][-1] == values["accuracy"]
    plain = cell_of("plain", partition="labels-2", rounds=8)
    server, _ = run(tmp_path / "cell", plain, data, make_reference(tmp_path, plain, data, **PLAIN), **PLAIN)
    values = {metric["name"]: metric["value"] for metric in server["metrics"]}
    with np.load(out / "samples.npz") as samples:
        assert samples["accuracy"][-1] > values["accuracy"]


@pytest.mark.parametrize(
    "method, options, changes, said",
    [
        ("scaffold", (), {"momentum": 0.9}, "expected sgd with momentum 0 and clip_norm null"),
        ("scaffold", (), {"clip_norm": 1.0, "momentum": 0.0}, "expected sgd with momentum 0 and clip_norm null"),
        ("feddyn", (("alpha", 0.0),), {}, "feddyn divides by alpha: expected a number above 0, got 0"),
        (
            "fedper",
            (("tensors", "2"),),
            {},
            "tensors: '2' is no layer or tensor of the model, which has 1.weight, 1.bias",
        ),
        ("fedper", (("tensors", " "),), {}, "tensors: expected names of layers or tensors, got ' '"),
        ("fedper", (), {}, "all 2 tensors stay with clients, and none is left to learn together"),
    ],
)
def test_what_a_method_cannot_do_is_said(
    tmp_path: Path, data: Path, method: str, options: Any, changes: dict[str, Any], said: str
) -> None:
    found, _ = run(tmp_path, a_cell(method=method, method_options=options), data, tmp_path, **changes)
    assert found["status"] == "skipped" and said in found["message"]
    # What nobody follows is no path that fails either.
    course = make_reference(tmp_path, a_cell(method=method, method_options=options), data, **changes)
    assert '"status": "skipped"' in (course / "record.json").read_text()
