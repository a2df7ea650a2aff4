"""One profile.

Leaves `profile.json` and `result.json`. Each layer is a part of its own (`training.frameworks.PartTrainer`), fed with
what the one before gave, and so is the whole model, in the same steps, turn by turn: what a layer costs alone includes
calls that a longer part does not make, so `whole` says what the layers are to add up to. Samples are drawn, not read;
the learning rate is 0, so that every step does the same.

| | |
|---|---|
| `forward_s`, `backward_s` | of a micro-batch of `batch` samples, one number for each timed step; the loss belongs to the last layer |
| `update_s` | once a step: gradients to zero, update |
| `weight_bytes`, `gradient_bytes` | of trained weights |
| `kept_bytes` | what the layer keeps until its backward pass and no earlier layer has kept; `kept`: `measured`, or `counted` where the framework does not tell |
| `out_bytes` | what it passes on |
| `trainer` | the whole as a training does it, step after step: `input_s` (a batch cut out and brought to the device), `compute_s` (forward and backward), `exchange_s` (the gradient handed out, divided and taken back, as around a reduction), `update_s`, `add_s` (a gradient added to another), and `fused_s` where the framework can do a step without an exchange in one call |

Of several ranks side by side rank 0 tells, and the others go on until it has.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from transect.domain.axes.train import ProfileCell
from transect.domain.files import write_atomic
from transect.domain.precisions import find_precision
from transect.onnx_models.results import result
from transect.planner.costs import Rates, counted_costs
from transect.training.frameworks import (
    FRAMEWORKS,
    FusedTrainer,
    ModelPart,
    ModelPlan,
    PartFramework,
    PartTrainer,
    TellsKept,
    Trainer,
)
from transect.training.models import Model
from transect.training.parts import layer_count, part_weights
from transect.training.workloads import WORKLOADS, Parameters, model_of

PROFILE = "profile.json"
_WARM_UP = 3
# Steps that another rank does at most beside rank 0.
_MAX_BESIDE = 100_000
# Any rates do: only bytes are taken of what is counted.
_RATES = Rates(1.0, 1.0)


class Series:
    """Seconds of one part's passes and update, step by step."""

    def __init__(self) -> None:
        self.forward_s: list[float] = []
        self.backward_s: list[float] = []
        self.update_s: list[float] = []

    def json(self) -> dict[str, list[float]]:
        """Return them without the steps that warmed up."""
        return {name: values[_WARM_UP:] for name, values in vars(self).items()}


class _Chain:
    """Parts one behind the other, and what each of them took."""

    def __init__(self, parts: list[PartTrainer], x: np.ndarray, y: np.ndarray) -> None:
        self.parts = parts
        self.series = [Series() for _ in parts]
        self._x = parts[0].batch(x, y)[0]
        self._y = parts[-1].batch(x, y)[1]
        self.out_bytes = [0] * len(parts)

    @staticmethod
    def _timed(part: PartTrainer, work: Callable[[], Any]) -> tuple[float, Any]:
        begin = time.perf_counter()
        given = work()
        part.finish_step()
        return time.perf_counter() - begin, given

    def _forward(self, number: int, x: Any) -> tuple[float, Any]:
        part = self.parts[number]
        if part.part.ends:
            return self._timed(part, lambda: part.loss(0, x, self._y, 1.0))
        return self._timed(part, lambda: part.forward(0, x))

    def forward(self) -> list[float]:
        """Begin a step and go forwards through all parts; return the seconds of each."""
        taken, x = [], self._x
        for number in range(len(self.parts)):
            seconds, x = self._forward(number, x)
            taken.append(seconds)
            if not self.parts[number].part.ends:
                self.out_bytes[number] = x.nbytes
        return taken

    def step(self) -> None:
        begun = [self._timed(part, part.begin_step)[0] for part in self.parts]
        for series, seconds in zip(self.series, self.forward(), strict=True):
            series.forward_s.append(seconds)
        g: np.ndarray | None = None
        for part, series in zip(reversed(self.parts), reversed(self.series), strict=True):

            def back(part: PartTrainer = part, g: np.ndarray | None = g) -> np.ndarray | None:
                return part.backward(0, g)

            seconds, g = self._timed(part, back)
            series.backward_s.append(seconds)
        for part, series, first in zip(self.parts, self.series, begun, strict=True):

            def update(part: PartTrainer = part) -> None:
                part.update(0.0)

            series.update_s.append(first + self._timed(part, update)[0])

    def kept(self) -> list[int] | None:
        """Return the bytes that each part keeps and none before it, or None where a part does not tell."""
        for part in self.parts:
            part.begin_step()
        self.forward()
        seen: set[int] = set()
        found = []
        for part in self.parts:
            if not isinstance(part, TellsKept):
                return None
            new = {place: size for place, size in part.kept(0).items() if place not in seen}
            seen |= new.keys()
            found.append(sum(new.values()))
        return found


def _drawn(model: Model, cell: ProfileCell, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a batch x (n, …) and y (n, …) of random samples, in the precision's array type."""
    generator = np.random.default_rng([seed, cell.repeat])
    drawn = [model.draw(generator) for _ in range(cell.batch)]
    x, y = (np.stack(rows) for rows in zip(*drawn, strict=True))
    if model.inputs == "float":
        x = x.astype(find_precision(cell.precision).array)
    return x, y


def _plan(cell: ProfileCell, parameters: Parameters, seed: int) -> ModelPlan:
    model = model_of(WORKLOADS.get(cell.workload))
    return ModelPlan(
        model=model,
        parameters=parameters,
        weights=model.initial_weights(seed),
        batch=cell.batch,
        precision=cell.precision,
        device=cell.device,
        threads=cell.threads,
    )


def _as_trained(
    plan: ModelPlan, trainer: Trainer, x: np.ndarray, y: np.ndarray, samples: int
) -> dict[str, list[float]]:
    """Time whole steps one after another, without anything between them that a training has not."""
    found: dict[str, list[float]] = {}
    clock = time.perf_counter

    def note(name: str, begin: float) -> float:
        trainer.finish_step()
        now = clock()
        found.setdefault(name, []).append(now - begin)
        return now

    order = np.random.default_rng(0).permutation(len(y))
    for _ in range(_WARM_UP + samples):
        now = clock()
        inputs, targets = trainer.batch(x[order], y[order])
        now = note("input_s", now)
        trainer.forward_backward(inputs, targets)
        now = note("compute_s", now)
        flat = trainer.gradient()
        flat /= 2
        trainer.set_gradient(flat)
        now = note("exchange_s", now)
        trainer.update(0.0)
        if plan.parameters.ema is not None:
            trainer.average()
        now = note("update_s", now)
        flat += flat
        note("add_s", now)
    for _ in range(_WARM_UP + samples if isinstance(trainer, FusedTrainer) else 0):
        assert isinstance(trainer, FusedTrainer)
        inputs, targets = trainer.batch(x[order], y[order])
        now = clock()
        trainer.step(inputs, targets, 0.0)
        note("fused_s", now)
    return {name: values[_WARM_UP:] for name, values in found.items()}


def _until_written(work: Callable[[], object], profile_file: Path) -> None:
    """Repeat the same work until rank 0 has written its profile: it measures what it shares with others."""
    for _ in range(_MAX_BESIDE):
        if profile_file.exists():
            return
        work()


def layer_rows(
    framework: PartFramework, plan: ModelPlan, x: np.ndarray, y: np.ndarray, samples: int
) -> tuple[list[dict[str, Any]], dict[str, list[float]], str]:
    """Time every layer of a plan's model and the whole of it, on one batch.

    Returns the `layers` and `whole` of profile.json, and whether what is kept was `measured` or `counted`.
    """
    model, count = plan.model, layer_count(plan.model)
    places = [ModelPart(index, index + 1, count) for index in range(count)]
    layers = _Chain([framework.part_trainer(plan, place) for place in places], x, y)
    whole = _Chain([framework.part_trainer(plan, ModelPart(0, count, count))], x, y)
    for _ in range(_WARM_UP + samples):
        layers.step()
        whole.step()
    kept = layers.kept()
    counted = counted_costs(model, plan.parameters, len(y), plan.precision, _RATES)
    precision = find_precision(plan.precision)
    size = np.dtype(precision.array).itemsize
    rows = []
    for index, place in enumerate(places):
        trained = sum(int(np.prod(w.shape)) for w in part_weights(model, place) if w.trained)
        rows.append(
            {
                "name": str(index),
                **layers.series[index].json(),
                "weight_bytes": precision.bytes_per_number * trained,
                "gradient_bytes": size * trained,
                "kept_bytes": counted[index].kept_bytes if kept is None else kept[index],
                "out_bytes": layers.out_bytes[index],
            }
        )
    return rows, whole.series[0].json(), "counted" if kept is None else "measured"


def run(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any] | None:
    """Profile one cell; return its result. Another rank than the first has none."""
    cell = ProfileCell.of(**spec["cell"])
    parameters = Parameters.model_validate(spec["parameters"])
    if os.environ.get("RANK", "0") != "0":
        beside(cell, parameters, spec["seed"], out / PROFILE)
        return None
    found, libraries = profile(cell, parameters, spec["samples"], spec["seed"])
    write_atomic(out / PROFILE, json.dumps(found, indent=1) + "\n")
    layers, whole = found["layers"], found["whole"]
    passes = ("forward_s", "backward_s")
    alone = sum(median(layer[key]) for layer in layers for key in passes)
    series = [(f"{name}_time", whole[f"{name}_s"]) for name in ("forward", "backward")]
    return result(
        metrics=[{"name": name, "value": median(values)} for name, values in series],
        samples={name: {"unit": "s", "values": values} for name, values in series},
        details={
            "layers": len(layers),
            "kept": found["kept"],
            "kept_bytes": sum(layer["kept_bytes"] for layer in layers),
            "weight_bytes": sum(layer["weight_bytes"] for layer in layers),
            "layers_over_whole": alone / sum(median(whole[key]) for key in passes),
        },
        libraries=libraries | {"numpy": np.__version__},
    )


def profile(
    cell: ProfileCell, parameters: Parameters, samples: int, seed: int
) -> tuple[dict[str, Any], dict[str, str]]:
    """Profile a cell; return profile.json and the versions of what computed."""
    framework = FRAMEWORKS.get(cell.framework)
    assert isinstance(framework, PartFramework)
    plan = _plan(cell, parameters, seed)
    x, y = _drawn(plan.model, cell, seed)
    rows, whole, kept = layer_rows(framework, plan, x, y, samples)
    as_trained = _as_trained(plan, FRAMEWORKS.get(cell.framework).trainer(plan), x, y, samples)
    axes = ("workload", "framework", "batch", "threads", "precision", "device")
    measured = {"kept": kept, "layers": rows, "whole": whole, "trainer": as_trained}
    return {axis: getattr(cell, axis) for axis in axes} | measured, framework.libraries()


def beside(cell: ProfileCell, parameters: Parameters, seed: int, profile_file: Path) -> None:
    """Do the steps of another rank until rank 0 has written its profile."""
    plan = _plan(cell, parameters, seed)
    trainer = FRAMEWORKS.get(cell.framework).trainer(plan)
    x, y = _drawn(plan.model, cell, seed)

    def step() -> None:
        trainer.forward_backward(*trainer.batch(x, y))
        trainer.update(0.0)
        trainer.finish_step()

    _until_written(step, profile_file)
