"""A simulation beside its reference: what follows it, what does not, and what the record says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from federations import AXES, a_cell, data_folder, make_reference, run, spoil

from transect.domain.errors import WrongResult
from transect.federated.aggregations import AGGREGATIONS
from transect.federated.engines import ENGINES, Session, Task, Turn, Turned
from transect.federated.exchange import Exchange
from transect.federated.partitions import grouped
from transect.federated.plan_file import FEDERATION, PATH, read_plan
from transect.federated.rounds import simulate
from transect.payloads.federate_reference import gradient_rounding
from transect.training.frameworks import ModelPlan
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.layered import LayeredModel
from transect.training.layers import BatchNorm2d, Conv2d, Flatten, Linear, ReLU
from transect.training.workloads import WORKLOADS


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return data_folder(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Path:
    return make_reference(tmp_path_factory.mktemp("reference"), a_cell(), data)


def values(found: dict[str, Any]) -> dict[str, float]:
    return {metric["name"]: metric["value"] for metric in found["metrics"]}


def test_a_right_engine_follows_the_reference_in_each_update(tmp_path: Path, data: Path, course: Path) -> None:
    found, out = run(tmp_path, a_cell(), data, course)
    numbers = values(found)
    assert found["status"] == "ok", found["message"]
    assert 0 < numbers["equality_ratio"] < 0.5 and 0 < numbers["weights_equality_ratio"] < 0.5
    assert found["details"]["checked_rounds"] == found["details"]["checked_models"] == AXES["rounds"]
    with np.load(out / "samples.npz") as samples:
        assert samples["accuracy"].shape == samples["round_time"].shape == (AXES["rounds"],)
        assert samples["loss"][-1] < samples["loss"][0]
        assert (samples["turns_time"] <= samples["round_time"]).all()
    assert numbers["sent_bytes"] == 2 * AXES["cohort"] * 650 * 4
    with np.load(out / "model.npz") as model:
        assert {name: array.dtype for name, array in model.items()} == {"1.weight": np.float32, "1.bias": np.float32}


def test_worst_clients_are_scored_in_their_own_mix(tmp_path: Path, data: Path, course: Path) -> None:
    found, out = run(tmp_path, a_cell(), data, course)
    numbers, of_clients = values(found), np.load(out / "samples.npz")["client_score"]
    assert len(of_clients) == AXES["clients"] and len(set(of_clients)) > 1
    # A tenth of six clients is one.
    assert numbers["worst_clients_score"] == pytest.approx(min(of_clients), abs=1e-6)


class _Wrong(Session):
    """Errs in one way."""

    def __init__(self, right: Session, fault: str) -> None:
        self.right, self.fault = right, fault

    def turns(self, turns: Sequence[Turn]) -> Iterator[Turned]:
        turns = list(turns)
        if self.fault == "order":
            turns = [
                Turn(client=t.client, number=t.number, given=t.given, rows=t.rows[::-1], seeds=t.seeds) for t in turns
            ]
        if self.fault == "steps":
            turns = [
                Turn(client=t.client, number=t.number, given=t.given, rows=t.rows[:-1], seeds=t.seeds[:-1])
                for t in turns
            ]
        for made in self.right.turns(turns):
            weights, losses = made.weights, made.losses
            if self.fault == "one number":
                weights = weights.copy()
                weights[0, 7] += np.float32(1e-3)
            if self.fault == "late" and turns[0].number > AXES["cohort"]:
                weights = weights * np.float32(1.01)
            if self.fault == "losses":
                losses = losses * 1.001
            if self.fault == "not finite":
                losses = losses * np.nan
            yield Turned(weights=weights, losses=losses)


def test_updates_from_the_references_own_models_are_sharp(tmp_path: Path, data: Path, course: Path) -> None:
    found, _ = run(tmp_path, a_cell(), data, course)
    restarts = found["details"]["restarts"]
    assert [restart["step"] for restart in restarts] == [0, 2, 3]
    assert all(restart["sharp"] and restart["ratio"] < 0.5 for restart in restarts)
    assert values(found)["restart_ratio"] == max(restart["ratio"] for restart in restarts)


def test_what_is_wrong_from_some_update_on_is_seen_though_the_path_tells_nothing(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = a_cell()
    blind = make_reference(tmp_path, cell, data)
    with np.load(blind / PATH) as file:
        arrays = dict(file)
    for name in ("tolerance_fp32", "models_tolerance_fp32"):
        arrays[name][1:] = np.inf
    np.savez(blind / PATH, **arrays)
    spoil(monkeypatch, lambda right: _Wrong(right, "late"))
    found, _ = run(tmp_path / "cell", cell, data, blind)
    assert (found["status"], found["cause"]) == ("failed", "wrong-result")
    assert found["message"].startswith("update 2 from the float64 reference's models deviates by")


@pytest.mark.parametrize("fault", ["order", "steps", "one number", "losses"])
def test_a_wrong_engine_is_a_wrong_result(
    tmp_path: Path, data: Path, course: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch, lambda right: _Wrong(right, fault))
    found, _ = run(tmp_path, a_cell(), data, course)
    assert (found["status"], found["cause"]) == ("failed", "wrong-result")
    assert "float64 reference" in found["message"]


def test_a_loss_that_is_not_finite_is_said_so(
    tmp_path: Path, data: Path, course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch, lambda right: _Wrong(right, "not finite"))
    found, _ = run(tmp_path, a_cell(), data, course)
    assert (found["status"], found["cause"]) == ("failed", "diverged")
    assert "not finite at update 0" in found["message"]


def test_a_federation_that_diverges_has_no_path(tmp_path: Path, data: Path) -> None:
    target = make_reference(tmp_path, a_cell(rounds=8), data, learning_rate=1e200)
    assert '"cause": "diverged"' in (target / "record.json").read_text()


def test_a_short_reference_checks_the_first_updates(tmp_path: Path, data: Path) -> None:
    cell = a_cell(rounds=5)
    found, _ = run(tmp_path / "cell", cell, data, make_reference(tmp_path, cell, data, reference_steps=4))
    # Four steps of a client are the first two updates, each of three.
    assert found["details"]["checked_rounds"] == found["details"]["checked_models"] == 2


@pytest.mark.parametrize("axes", [{"buffer": 2, "slowness": 1.0}, {"cohort": 6, "partition": "iid"}, {"batch": 40}])
def test_other_federations_follow_theirs(tmp_path: Path, data: Path, axes: dict[str, Any]) -> None:
    cell = a_cell(**axes)
    found, _ = run(tmp_path / "cell", cell, data, make_reference(tmp_path, cell, data))
    assert found["status"] == "ok", found["message"]
    assert (found["details"]["staleness"]["most"] > 0) == ("buffer" in axes)


def test_clients_that_the_data_set_names(tmp_path: Path) -> None:
    owners = np.repeat(np.arange(3), [20, 30, 40])
    generator = np.random.default_rng(2)
    device = {"x_device": generator.normal(size=(90, 1, 8, 8)), "y_device": np.arange(90) % 10}
    folder = data_folder(tmp_path / "data", **device, client_device=owners)
    cell = a_cell(partition="as-given", clients=3, cohort=2)
    found, _ = run(tmp_path / "cell", cell, folder, make_reference(tmp_path, cell, folder))
    assert found["status"] == "ok" and found["details"]["rows_of_clients"] == {"least": 20, "most": 40}


class _OneOf(Exchange):
    """A rank of several that are computed one after another: sums are taken from a list of all ranks' arrays."""

    def __init__(self, rank: int, size: int, said: list[list[np.ndarray]], hears: bool) -> None:
        self.rank, self.size, self._said, self._hears, self._turn = rank, size, said, hears, 0

    def total(self, array: np.ndarray) -> np.ndarray:
        if self._hears:
            array = np.sum([mine[self._turn] for mine in self._said], axis=0)
        else:
            self._said[self.rank].append(array.copy())
        self._turn += 1
        return array


@pytest.mark.parametrize("aggregation", list(AGGREGATIONS))
def test_no_bit_depends_on_the_ranks(data: Path, tmp_path: Path, aggregation: str) -> None:
    from transect.federated.flat import flat_of
    from transect.training.inputs import load_arrays, load_weights

    cell = a_cell(aggregation=aggregation, rounds=1, cohort=8, clients=9)
    course = make_reference(tmp_path, cell, data)
    model = WORKLOADS.get(AXES["workload"]).model
    plan = read_plan(cell, model, 20261120, course / FEDERATION, WORKLOADS.get(AXES["workload"]).defaults.learning_rate)
    arrays = load_arrays(data, np.float32)
    weights = {name: array.astype(np.float32) for name, array in load_weights(data, 0).items()}
    task = Task(
        cell=cell,
        model=model,
        parameters=WORKLOADS.get(AXES["workload"]).defaults,
        weights=weights,
        x=arrays["x_train"],
        y=arrays["y_train"],
    )
    models = []
    with ENGINES.get("loop").session(task) as session:
        models.append(next(simulate(plan, flat_of(model, weights), session)).model)
        for size in (2, 5):
            said: list[list[np.ndarray]] = [[] for _ in range(size)]
            for rank in range(size):
                next(simulate(plan, flat_of(model, weights), session, _OneOf(rank, size, said, hears=False)))
            heard = _OneOf(0, size, said, hears=True)
            models.append(next(simulate(plan, flat_of(model, weights), session, heard)).model)
    assert all(model.tobytes() == models[0].tobytes() for model in models)


def test_a_change_of_a_rules_own_is_not_passed_over(
    tmp_path: Path, data: Path, course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = type(AGGREGATIONS.get("fedavg"))
    monkeypatch.setattr(rule, "change", lambda self, settings, updates, state: np.zeros(updates.vectors.shape[1]))
    _, out = run(tmp_path, a_cell(), data, course)
    start = WORKLOADS.get(AXES["workload"]).model.initial_weights(3)
    with np.load(out / "model.npz") as model:
        np.testing.assert_array_equal(model["1.weight"], start["1.weight"].astype(np.float32))


@pytest.mark.parametrize("member", ["change", "step"])
def test_no_number_is_spread_over_a_model(
    tmp_path: Path, data: Path, course: Path, member: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(AGGREGATIONS.get("fedavg")), member, lambda *given: np.zeros(1))
    with pytest.raises(WrongResult, match=rf"`{member}` of the aggregation: expected \(650,\), got \(1,\)"):
        run(tmp_path, a_cell(), data, course)


def test_what_a_sum_that_cancels_is_rounded_by_is_known() -> None:
    # The bias before a batch norm has no gradient but rounding, which Adam makes as large as any other.
    model = LayeredModel((Conv2d(1, 3, 3), BatchNorm2d(3), ReLU(), Flatten(), Linear(12, 3)), (1, 4, 4))
    generator = np.random.default_rng(3)
    x, y = generator.normal(size=(20, 1, 4, 4)), generator.integers(0, 3, 20)
    plan = ModelPlan(
        model=model,
        parameters=WORKLOADS.get(AXES["workload"]).defaults,
        weights=model.initial_weights(5),
        batch=8,
        precision="fp64",
        device="cpu",
        threads=1,
    )
    found = gradient_rounding(plan, grouped(np.arange(20) % 4, 4), x, y)
    trainer = NumpyTrainer(plan)
    trainer.forward_backward(x[:8], y[:8])
    nothing = np.abs(trainer.flat_gradient) < 1e-15
    assert np.count_nonzero(nothing) >= 3 and found.shape == nothing.shape
    assert found[nothing].max() * 2.0**-24 > 1e-10
