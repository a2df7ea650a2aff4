"""Methods: their papers in plain numpy, engines and ranks that agree, and what never leaves a client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from federations import SEED, a_cell, data_folder, make_reference, parameters, run
from method_papers import PAPERS, RATE, STEPS

from transect.domain.axes.federate import FederateCell
from transect.federated.aggregations import AGGREGATIONS
from transect.federated.engines import ENGINES, Session, Task, Turn, Turned
from transect.federated.exchange import Exchange
from transect.federated.flat import flat_of
from transect.federated.methods import METHODS, Terms
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


@pytest.mark.parametrize("method", [name for name in METHODS if METHODS.get(name).meets])
def test_the_servers_mean_is_that_of_all_clients_by_their_rows(data: Path, method: str) -> None:
    cell = cell_of(method, rounds=6)
    found, plan, task = made(data, cell)
    with ENGINES.get("loop").session(task) as session:
        *_, last = simulate(plan, flat_of(task.model, task.weights), session, keep=[5])
    assert last.before is not None
    rows = plan.clients.sizes
    assert len(set(rows.tolist())) > 1
    mean = sum(rows[client] * own.astype(np.float64) for client, own in found[4].kept.items()) / rows.sum()
    np.testing.assert_allclose(last.before.server, mean, rtol=0, atol=1e-12)
    assert np.abs(mean).max() > 1e-3


@pytest.mark.parametrize("method", [name for name in METHODS if METHODS.get(name).meets])
def test_running_statistics_are_no_part_of_what_corrects(method: str) -> None:
    """The reference goes by the same rule as engines, and would not tell."""
    rule, trained = METHODS.get(method), np.array([True, False, True, False])
    options = {name: option.default for name, option in rule.options.items()}
    terms = Terms(settings=options, rate=0.1, steps=2, trained=trained, personal=~trained & False)
    rest, given = np.zeros(4), np.arange(4.0)
    turn = Turn(client=0, number=0, given=given, rows=np.zeros((2, 1), np.int64), seeds=np.zeros(2, np.int64))
    kept = rule.kept(terms, turn, given + 1, rest, rest)
    assert (kept[trained] != 0).all() and not kept[~trained].any()


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
    engine = type(ENGINES.get("loop"))
    whole = engine.session

    @contextmanager
    def session(self: Any, task: Task) -> Iterator[Session]:
        with whole(self, task) as right:
            yield _Deaf(right, fault)

    monkeypatch.setattr(engine, "session", session)
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


def test_what_a_client_keeps_holds_no_other_clients_in_memory(data: Path) -> None:
    """Nor does it lie in an array of a whole update's: with few at once, all would be there as long as one of them."""
    found, *_ = made(data, cell_of("ditto", rounds=2))
    assert found[-1].kept and all(own.base is None for own in found[-1].kept.values())


def test_a_clients_own_model_that_flies_off_has_no_path(tmp_path: Path, data: Path) -> None:
    cell = cell_of("ditto", method_options=(("mu", 1000.0),))
    record = (make_reference(tmp_path, cell, data, **PLAIN) / "record.json").read_text()
    assert '"cause": "diverged"' in record
    assert "in float64: the change of what a client keeps has a number that is not finite, or not below 1024" in record


def test_dittos_server_learns_what_plain_clients_teach_it(data: Path) -> None:
    plain, ditto = (made(data, cell_of(name))[0] for name in ("plain", "ditto"))
    assert [one.model.tobytes() for one in ditto] == [one.model.tobytes() for one in plain]


@pytest.mark.parametrize("aggregation", ["fedavg", "fedadam", "krum"])
def test_personal_tensors_never_leave(data: Path, aggregation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither an update nor the server's model has anything of them, and each client goes on with its own."""
    seen: list[np.ndarray] = []
    rule = type(AGGREGATIONS.get("krum"))
    from transect.federated import rounds

    add, change = rounds.ExactSum.add, rule.change

    def added(self: Any, vectors: np.ndarray, weights: np.ndarray) -> None:
        seen.extend(vectors.copy())
        add(self, vectors, weights)

    def changed(self: Any, settings: Any, updates: Any, state: Any) -> np.ndarray:
        seen.extend(updates.vectors.copy())
        return change(self, settings, updates, state)

    monkeypatch.setattr(rounds.ExactSum, "add", added)
    monkeypatch.setattr(rule, "change", changed)
    given: list[Turn] = []
    turns = type(METHODS.get("fedper")).turn

    def noted(self: Any, *arguments: Any) -> Turn:
        given.append(turns(self, *arguments))
        return given[-1]

    monkeypatch.setattr(type(METHODS.get("fedper")), "turn", noted)
    options = (("attackers", 0),) if aggregation == "krum" else ()
    found, _, task = made(data, cell_of("fedper", aggregation=aggregation, options=options, rounds=5))
    start = flat_of(task.model, task.weights)
    assert len(seen) >= 5 * 3
    for vector in seen:
        assert not vector[BIAS].any() and vector[: BIAS.start].any()
    for one in found:
        assert one.model[BIAS].tobytes() == start[BIAS].tobytes()
        assert (one.model[: BIAS.start] != start[: BIAS.start]).any()
    last = {client: own[BIAS] for client, own in found[-1].kept.items()}
    assert len({own.tobytes() for own in last.values()}) == len(last) > 3
    # A client's second turn begins with what its first one made of them.
    for client in last:
        mine = [turn for turn in given if turn.client == client]
        assert mine[0].given[BIAS].tobytes() == start[BIAS].tobytes()
        assert all((later.given[BIAS] != start[BIAS]).any() for later in mine[1:])


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
