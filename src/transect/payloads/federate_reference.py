"""The path that every engine of one federation must follow, and how far it may stray.

Each client is trained by numpy in float64, one after another. The tolerance is measured as that of a training is
(`payloads/reference.py`: Monte Carlo arithmetic): the simulation runs again a few times, and in every step of every
client stored weights err by u z, what is computed with and gradients by u sqrt(K) z, and gradients also by what float32
makes of them at the start. After each of the server's updates the mean loss of its turns and the model, all weights in
one vector and with it what the update's clients keep, are held to the path: within SAFETY times the largest deviation of any perturbed run up to there, plus SAFETY
times what one step's sums err by.

Leaves `federation.npz` (`federated/plan_file.py`) and `path.npz`: `loss` (rounds,), `kept` (numbers of the updates whose
models are there), `models` (kept, d), for each precision `tolerance_P` of the losses and `models_tolerance_P`, and
single updates from its own models (`federated/restarts.py`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.axes.federate import FederateReferenceCell
from transect.domain.errors import WrongResult
from transect.domain.precisions import find_precision
from transect.federated.engines import Session, Turn, Turned, no_federation
from transect.federated.exchange import Exchange
from transect.federated.flat import arrays_of, distances, flat_of, trained_part
from transect.federated.partitions import Clients
from transect.federated.plan_file import FEDERATION, PATH, plan_of, training_rows, write_plan
from transect.federated.restarts import points, restart_arrays, stored
from transect.federated.rounds import Plan, Round, Standing, simulate, update
from transect.measure.provenance import available_cores
from transect.onnx_models.results import result
from transect.training.frameworks import FRAMEWORKS, ModelPlan, TrainingState
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.inputs import load_weights
from transect.training.sharpness import SHARP, blind_from
from transect.training.tolerance import PERTURBED_RUNS, SAFETY, loss_rounding, rule
from transect.training.workloads import WORKLOADS, Parameters, model_of

# Of all models that are kept together.
_MAX_BYTES = 2**28
_PROBED_ERROR = 1e-3
# Of how many clients' rows gradients are computed in float32 to see what rounding does.
_ROUNDED_BATCHES = 3


class Perturbed(Session):
    """Clients one after another in float64; stored weights err by `unit`, sums and gradients by `noise`, relatively.

    Without these it is exact. `rate` multiplies the learning rate; each number of a gradient errs by `unit` times its
    `rounding` as well (d trained,).
    """

    def __init__(
        self,
        plan: ModelPlan,
        x: np.ndarray,
        y: np.ndarray,
        unit: float,
        noise: float,
        seed: int,
        rate: float,
        rounding: np.ndarray,
    ) -> None:
        self._trainer, self._x, self._y = NumpyTrainer(plan), x, y
        self._unit, self._noise, self._rounding = unit, noise, rounding
        self._generator = np.random.default_rng(seed)
        self._rate = plan.parameters.learning_rate * rate
        self._model, self._trained = plan.model, trained_part(plan.model)
        self._rest = self._trainer.state().states

    def turns(self, turns: Iterable[Turn]) -> Iterator[Turned]:
        """Train them one after another."""
        for turn in turns:
            weights = arrays_of(self._model, turn.given)
            self._trainer.resume(TrainingState(weights=weights, states=self._rest, updates=0))
            losses = [self._step(turn, rows, int(seed)) for rows, seed in zip(turn.rows, turn.seeds, strict=True)]
            trained = flat_of(self._model, self._trainer.weights())
            yield Turned(weights=trained[None], losses=np.array([np.mean(losses)]))

    def _step(self, turn: Turn, rows: np.ndarray, seed: int) -> float:
        trainer, draw = self._trainer, self._generator.standard_normal
        flat, gradient = trainer.flat_weights, trainer.flat_gradient
        if self._noise:
            flat *= 1 + self._unit * draw(flat.size)
            kept = flat.copy()
            flat *= 1 + self._noise * draw(flat.size)
        trainer.seed(seed)
        loss = trainer.forward_backward(self._x[rows], self._y[rows])
        if self._noise:
            flat[...] = kept
            gradient *= 1 + self._noise * draw(gradient.size)
            gradient += self._unit * self._rounding * draw(gradient.size) * (gradient != 0)
        if turn.extended:
            gradient += turn.added(flat, self._trained)
        trainer.update(self._rate)
        return loss


def gradient_rounding(plan: ModelPlan, clients: Clients, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return by how much a float32 gradient at the start differs from that in float64, over float32's roundoff.

    Why: `payloads/reference_path.py`. Of the first few clients' rows the largest.
    """
    found = []
    for precision in ("fp64", "fp32"):
        trainer, gradients = NumpyTrainer(replace(plan, precision=precision)), []
        for client in range(min(_ROUNDED_BATCHES, len(clients))):
            rows = np.resize(clients.of(client), plan.batch)
            trainer.load(plan.weights)
            trainer.seed(0)
            trainer.forward_backward(*trainer.batch(x[rows], y[rows]))
            gradients.append(trainer.flat_gradient.astype(np.float64))
        found.append(np.stack(gradients))
    difference: np.ndarray = np.abs(found[0] - found[1]).max(axis=0)
    return difference / find_precision("fp32").unit_roundoff


def checked_rounds(rounds: int, local_steps: int, reference_steps: int | None) -> int:
    """Return how many of the server's updates the reference follows: a client's steps in them are `reference_steps`."""
    return rounds if reference_steps is None else min(rounds, -(-reference_steps // local_steps))


def kept_rounds(rounds: int, size: int) -> np.ndarray:
    """Return of which updates a model of `size` numbers is kept, ending with the last: all, where there is room."""
    most = max(1, _MAX_BYTES // (8 * size))
    return np.unique(np.linspace(rounds - 1, 0, min(rounds, most)).round().astype(np.int64))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Problem:
    """One federation, its plan, the float64 model to begin with, and how many updates are followed."""

    plan: Plan
    model_plan: ModelPlan
    x: np.ndarray
    y: np.ndarray
    start: np.ndarray
    rounds: int
    rounding: np.ndarray

    def session(self, unit: float = 0.0, noise: float = 0.0, seed: int = 0, rate: float = 1.0) -> Perturbed:
        """Return what computes clients, exactly or perturbed."""
        return Perturbed(self.model_plan, self.x, self.y, unit, noise, seed, rate, self.rounding)

    def kept(self) -> np.ndarray:
        """Return of which updates models are kept, and what clients keep along with them."""
        clients = self.plan.timetable.client.shape[1] if self.plan.method.keeps else 0
        return kept_rounds(self.rounds, len(self.start) * (1 + clients))

    def follow_all(self, errors: Sequence[Mapping[str, Any]]) -> list[_Path]:
        """Return a path for each of some errors, which are arguments of `session`: as many at once as there are cores."""
        if (cores := available_cores()) == 1:
            return list(map(self.follow, errors))
        with ProcessPoolExecutor(min(cores, len(errors)), get_context("fork")) as pool:
            return list(pool.map(self.follow, errors))

    def follow(self, errors: Mapping[str, Any]) -> _Path:
        """Follow all updates; the exact path remembers where it stood before those that are tried by themselves."""
        kept = set(self.kept().tolist())
        losses, models, standings = [], [], {}
        made = simulate(self.plan, self.start, self.session(**errors), keep=() if errors else points(self.rounds))
        for number, update_made in zip(range(self.rounds), made, strict=False):
            losses.append(update_made.loss)
            if number in kept:
                models.append(update_made.whole())
            if update_made.before is not None:
                standings[number] = update_made.before
        return _Path(loss=np.array(losses), models=np.stack(models), standings=standings)

    def restart(self, number: int, standing: Standing, noises: Mapping[str, float], least: Mapping[str, float]) -> Any:
        """Return what is stored of one update from where the path stands."""

        def made(**noise: Any) -> Round:
            return update(self.plan, number, copy.deepcopy(standing), self.session(**noise), Exchange())

        exact = made()
        before, after = standing.whole(number, exact.clients), exact.whole()
        moved = float(distances(before[None], after[None])[0])
        values: dict[str, Any] = {"loss": exact.loss, "after": after}
        for precision, noise in noises.items():
            unit = find_precision(precision).unit_roundoff
            others = [made(unit=unit, noise=noise, seed=seed) for seed in range(1, 1 + PERTURBED_RUNS)]
            loss = max(abs(other.loss - exact.loss) for other in others) + noise * abs(exact.loss) + least[precision]
            far = max(distances(np.stack([other.whole() for other in others]), after[None])) + noise
            values |= {
                f"loss_tolerance_{precision}": SAFETY * loss,
                f"model_tolerance_{precision}": SAFETY * far,
                f"sharp_{precision}": SAFETY * far <= SHARP * moved,
            }
        return restart_arrays(number, standing, **values)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Path:
    """Losses (rounds,), kept models (kept, d), and where it stood before the updates that were asked for."""

    loss: np.ndarray
    models: np.ndarray
    standings: Mapping[int, Standing]


def reference(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Compute the path of one federation and the tolerance of each precision."""
    try:
        return _reference(spec, folders["data"], out)
    except WrongResult as error:
        return {"status": "failed", "cause": "diverged", "message": f"in float64: {error}"}


def _reference(spec: dict[str, Any], folder: Path, out: Path) -> dict[str, Any]:
    cell = FederateReferenceCell.of(**spec["cell"])
    model = model_of(WORKLOADS.get(cell.workload or ""), folder)
    parameters = Parameters.model_validate(spec["parameters"])
    if (reason := no_federation(cell, model, parameters)) is not None:
        return result(skipped=reason)
    x, y, data = training_rows(folder)
    weights = load_weights(folder, cell.repeat)
    start = flat_of(model, weights).astype(np.float64)
    plan = plan_of(cell, model, spec["seed"], y, data, parameters.learning_rate)
    write_plan(plan, out / FEDERATION)
    rounds = checked_rounds(cell.rounds, cell.local_steps, parameters.reference_steps)
    model_plan = ModelPlan(
        model=model, parameters=parameters, weights=weights, batch=cell.batch, precision="fp64", device="cpu", threads=1
    )
    rounding = gradient_rounding(model_plan, plan.clients, x, y)
    problem = _Problem(plan=plan, model_plan=model_plan, x=x, y=y, start=start, rounds=rounds, rounding=rounding)
    terms = model.longest_sum(cell.batch)
    noises = {name: find_precision(name).unit_roundoff * np.sqrt(terms) for name in spec["precisions"]}
    seeds = range(1, 1 + PERTURBED_RUNS)
    perturbed = [
        {"unit": find_precision(name).unit_roundoff, "noise": noise, "seed": seed}
        for name, noise in noises.items()
        for seed in seeds
    ]
    exact, wrong, *others = problem.follow_all([{}, {"rate": 1 + _PROBED_ERROR}, *perturbed])
    loss, models = exact.loss, exact.models
    arrays = {"loss": loss, "kept": problem.kept(), "models": models}
    details: dict[str, Any] = {"longest_sum": terms, "rounds": rounds, "rules": {}, "not_checkable_from": {}}
    details |= {"models_tolerance": {}, "detects_learning_rate_error": {}, "restarts": points(rounds)}
    leasts = {name: loss_rounding(parameters.loss, find_precision(name).unit_roundoff) for name in noises}
    for precision, noise in noises.items():
        of_precision, others = others[:PERTURBED_RUNS], others[PERTURBED_RUNS:]
        spread = np.max([np.abs(other.loss - loss) for other in of_precision], axis=0)
        moved = np.max([distances(other.models, models) for other in of_precision], axis=0)
        allowed = SAFETY * (np.maximum.accumulate(spread) + noise * np.abs(loss) + leasts[precision])
        allowed_models = SAFETY * (np.maximum.accumulate(moved) + noise)
        arrays |= {f"tolerance_{precision}": allowed, f"models_tolerance_{precision}": allowed_models}
        seen = max(
            float((np.abs(wrong.loss - loss) / allowed).max()),
            float((distances(wrong.models, models) / allowed_models).max()),
        )
        details["rules"][precision] = rule(precision, terms)
        details["not_checkable_from"][precision] = blind_from(loss, allowed)
        details["models_tolerance"][precision] = _finite(allowed_models[-1])
        details["detects_learning_rate_error"][precision] = _finite(_PROBED_ERROR / seen) if seen else None
    for number, standing in exact.standings.items():
        arrays |= problem.restart(number, stored(standing), noises, leasts)
    np.savez(out / PATH, restarts=points(rounds), **arrays)  # type: ignore[arg-type]
    sizes = plan.clients.sizes
    details["rows_of_clients"] = {"least": int(sizes.min()), "most": int(sizes.max())}
    return {
        "metrics": [{"name": "final_loss", "value": float(loss[-1])}],
        "samples": {
            name: {"unit": "1", "file": PATH, "key": name, "count": rounds}
            for name in ("loss", *(f"tolerance_{precision}" for precision in spec["precisions"]))
        },
        "details": details,
        "libraries": FRAMEWORKS.get("numpy").libraries(),
    }


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
