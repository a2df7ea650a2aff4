"""What clients keep from turn to turn: what of it the server learns, what it takes, and where it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from federations import data_folder, make_reference
from test_methods import BIAS, PLAIN, cell_of, made

from transect.federated.aggregations import AGGREGATIONS
from transect.federated.engines import ENGINES, Turn
from transect.federated.flat import flat_of
from transect.federated.methods import METHODS, Terms
from transect.federated.rounds import simulate


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return data_folder(tmp_path_factory.mktemp("data"))


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


def test_what_a_client_keeps_holds_no_other_clients_in_memory(data: Path) -> None:
    """Nor does it lie in an array of a whole update's: with few at once, all would be there as long as one of them."""
    found, *_ = made(data, cell_of("ditto", rounds=2))
    assert found[-1].kept and all(own.base is None for own in found[-1].kept.values())


def test_a_clients_own_model_that_flies_off_has_no_path(tmp_path: Path, data: Path) -> None:
    cell = cell_of("ditto", method_options=(("mu", 1000.0),))
    record = (make_reference(tmp_path, cell, data, **PLAIN) / "record.json").read_text()
    assert '"cause": "diverged"' in record
    assert "in float64: the change of what a client keeps has a number that is not finite, or not below 1024" in record


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
