"""What a simulation of federated learning came to: its series, its numbers, and whether it followed the reference."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.axes.federate import FederateCell
from transect.domain.metrics import Direction, metric
from transect.domain.precisions import find_precision
from transect.domain.record import Cause, Status, read_record
from transect.federated.flat import distances
from transect.federated.plan_file import PATH
from transect.federated.restarts import Restart, read_restarts
from transect.federated.rounds import Plan, Round
from transect.onnx_models.results import result
from transect.payloads.federate_scores import Scores
from transect.training.divergence import divergence
from transect.training.workloads import Parameters

# Updates that are not timed: in the first one arrays are made, and programs found.
WARMUP = 1
# Clients are told apart by the worst tenth of them.
_WORST = 0.1


class Course:
    """The reference's path, and how far a simulation is from it."""

    def __init__(self, folder: Path, precision: str) -> None:
        dtype = find_precision(precision).stored
        with np.load(folder / PATH) as file:
            self.loss, self.tolerance = file["loss"], file[f"tolerance_{precision}"]
            self._kept = {int(number): place for place, number in enumerate(file["kept"])}
            self._models, self._allowed = file["models"], file[f"models_tolerance_{precision}"]
            self.restarts = list(read_restarts(file, precision, dtype))
        details = read_record(folder / "record.json").details
        self.rule = details["rules"][precision]
        self.not_checkable_from = details["not_checkable_from"][precision]
        # By update: how far the model is, and how far it may be.
        self.distance: dict[int, tuple[float, float]] = {}
        # By update from the reference's own models: how far loss and model are, as shares of their tolerances.
        self.restarted: dict[int, float] = {}

    def see(self, number: int, model: np.ndarray) -> None:
        """Compare what an update has made (`Round.whole`), where the reference has kept its own."""
        if (place := self._kept.get(number)) is not None:
            far = float(distances(model[None].astype(np.float64), self._models[place : place + 1])[0])
            self.distance[number] = far, float(self._allowed[place])

    def see_restart(self, restart: Restart, made: Round) -> None:
        """Compare an update from the reference's own models."""
        loss = abs(made.loss - restart.loss) / restart.loss_tolerance
        far = float(distances(made.whole()[None].astype(np.float64), restart.model[None])[0]) / restart.model_tolerance
        self.restarted[restart.number] = max(loss, far)

    def values(self, loss: np.ndarray) -> dict[str, float]:
        """Return the metrics of the comparison, given the losses of all updates."""
        off = np.abs(loss[: len(self.loss)] - self.loss)
        return {
            "equality_ratio": float((off / self.tolerance[: len(off)]).max()),
            "loss_deviation": float(off.max()),
            "weights_deviation": max(far for far, _ in self.distance.values()),
            "weights_equality_ratio": max(far / allowed for far, allowed in self.distance.values()),
            "sharp_steps": len(self.loss) if self.not_checkable_from is None else self.not_checkable_from,
            "restart_ratio": max(self.restarted.values()),
        }

    def fault(self, loss: np.ndarray) -> str:
        """Say where the simulation leaves the reference, or nothing."""
        off = np.abs(loss[: len(self.loss)] - self.loss)
        if len(outside := np.flatnonzero(~(off <= self.tolerance[: len(off)]))):
            at = int(outside[0])
            return (
                f"the loss leaves the float64 reference at update {at}: it deviates by {off[at]:.3g}, allowed are "
                f"{self.tolerance[at]:.3g}"
            )
        for number, (far, allowed) in sorted(self.distance.items()):
            if not far <= allowed:
                return (
                    f"after update {number} the model deviates from the float64 reference by {far:.3g}, allowed are "
                    f"{allowed:.3g}"
                )
        for number, ratio in self.restarted.items():
            if not ratio <= 1:
                return (
                    f"update {number} from the float64 reference's models deviates by {ratio:.3g} times its tolerance"
                )
        return ""


@dataclass(kw_only=True, slots=True)
class Run:
    """A simulation as it goes on."""

    scoring: Scores
    course: Course
    startup_s: float = 0.0
    losses: list[float] = field(default_factory=list)
    seconds: list[tuple[float, float]] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    last: Round = field(init=False)
    peak_memory_bytes: list[int] = field(default_factory=list)

    def see(self, made: Round) -> None:
        """Take in an update."""
        self.course.see(len(self.losses), made.whole())
        self.losses.append(made.loss)
        self.seconds.append((made.seconds, made.turn_seconds))
        self.scores.append(self.scoring.after(made))
        self.last = made


def conclude(cell: FederateCell, plan: Plan, parameters: Parameters, run: Run, out: Path) -> dict[str, Any]:
    """Write the series; return the result, without libraries."""
    loss = np.array(run.losses)
    if not np.isfinite(loss).all():
        message = f"the loss is not finite at update {len(loss) - 1}"
        return result(status=Status.FAILED, cause=Cause.DIVERGED, message=message)
    score_name, score, own = run.scoring.name, np.array(run.scores), plan.method.personalises
    seconds, turns = np.array(run.seconds).T
    series = {"round_time": seconds, "turns_time": turns, "loss": loss, score_name: score}
    series["simulated_time"] = plan.timetable.time
    model, (at_end, of_clients) = run.last.model, run.scoring.at_end(run.last)
    score[-1] = at_end
    timed = slice(WARMUP, None) if len(seconds) > WARMUP else slice(None)
    together = plan.timetable.client.shape[1]
    values = {
        "round_time": float(np.median(seconds[timed])),
        "turns_per_second": together / float(np.median(seconds[timed])),
        "server_share": float(np.median(1 - turns[timed] / seconds[timed])) if cell.ranks == 1 else None,
        "startup_time": run.startup_s,
        "final_loss": float(loss[-1]),
        score_name: at_end,
        "peak_memory": max(run.peak_memory_bytes),
        "sent_bytes": 2 * together * plan.method.vectors * int((~plan.terms.personal).sum()) * model.itemsize,
        **run.course.values(loss),
    }
    # Of clients' own models those that have just trained are scored: that these are good is no target reached by all.
    reached = None if own else _reached(score, parameters.quality_target, score_name)
    quality = {"metric": score_name, "target": parameters.quality_target, "reached": reached is not None}
    quality |= {"of": "each client's own model", "reached": None} if own else {}
    if reached is not None:
        values |= {"rounds_to_quality": reached + 1, "simulated_time_to_quality": float(plan.timetable.time[reached])}
    if of_clients is not None:
        series["client_score"] = of_clients
        worst = np.sort(of_clients)
        higher = metric(score_name).direction is Direction.HIGHER
        count = max(1, round(_WORST * len(worst)))
        values["worst_clients_score"] = float((worst[:count] if higher else worst[-count:]).mean())
    np.savez(out / "samples.npz", **series)
    staleness = np.arange(len(plan.timetable.version))[:, None] - plan.timetable.version
    diverged = divergence(loss)
    return result(
        status=Status.FAILED if diverged else Status.OK,
        cause=Cause.DIVERGED if diverged else None,
        message=diverged,
        wrong=run.course.fault(loss),
        metrics=values,
        samples={
            name: {
                "unit": "s" if name in ("round_time", "turns_time") else "1",
                "file": "samples.npz",
                "key": name,
                "count": len(series[name]),
            }
            for name in series
        },
        details={
            "quality": quality,
            "warmup_rounds": WARMUP,
            "tolerance": {"precision": cell.precision, "rule": run.course.rule},
            "not_checkable_from": run.course.not_checkable_from,
            "restarts": [
                {"step": restart.number, "ratio": run.course.restarted[restart.number], "sharp": restart.sharp}
                for restart in run.course.restarts
            ],
            "checked_rounds": len(run.course.loss),
            "checked_models": len(run.course.distance),
            "parameters": int(model.size),
            "rows_of_clients": {"least": int(plan.clients.sizes.min()), "most": int(plan.clients.sizes.max())},
            "staleness": {"median": float(np.median(staleness)), "most": int(staleness.max())},
            "rank_peak_memory_bytes": run.peak_memory_bytes,
        },
    )


def _reached(score: np.ndarray, target: float, name: str) -> int | None:
    """Return the first update whose model reaches the target, or None."""
    good = score >= target if metric(name).direction is Direction.HIGHER else score <= target
    return int(np.argmax(good)) if good.any() else None
