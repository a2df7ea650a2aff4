"""Activations are computed again in the backward pass, segment by segment.

T. Chen et al., "Training deep nets with sublinear memory cost", 2016.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.domain.precisions import find_precision
from transect.training.layered import LayeredModel
from transect.training.memory import MEMORIES, Activations, Memory
from transect.training.memory._runs import Run, compute_in_runs, layers_of
from transect.training.memory.plain import PlainActivations
from transect.training.saved_tensors import SavedTensors, saved_tensors

if TYPE_CHECKING:
    from transect.training.frameworks import ModelPlan


def segments(saved: SavedTensors) -> list[Run]:
    """Cut layers so that what is kept between segments and the largest segment take the least memory.

    For each of 64 sizes that a segment may have it is filled greedily, and the best size wins. The
    last segment is kept: its backward pass follows at once.
    """
    layer_bytes = _own_bytes(saved)
    if not any(layer_bytes):
        return [Run("keep", 0, len(layer_bytes))]
    best: tuple[tuple[int, int], list[Run]] | None = None
    for room in np.geomspace(max(layer_bytes), sum(layer_bytes), 64):
        runs, first, filled = [], 0, 0
        for index, size in enumerate(layer_bytes):
            if filled + size > room and index > first:
                runs.append(Run("recompute", first, index))
                first, filled = index, 0
            filled += size
        runs.append(Run("recompute", first, len(layer_bytes)))
        inputs = {saved.layers[run.first].before for run in runs} - {0}
        largest = max(sum(layer_bytes[run.first : run.last]) for run in runs)
        found = (sum(saved.sizes[tensor] for tensor in inputs) + largest, len(runs))
        if best is None or found < best[0]:
            best = found, runs
    assert best is not None
    *others, last = best[1]
    return [*others, last._replace(action="keep")]


def _own_bytes(saved: SavedTensors) -> list[int]:
    seen, layer_bytes = {0}, []
    for layer in saved.layers:
        layer_bytes.append(sum(saved.sizes[tensor] for tensor in set(layer.saved) - seen))
        seen |= set(layer.saved)
    return layer_bytes


@MEMORIES.register("recompute")
class Recompute(Memory):
    """Keeps the inputs of segments, and computes each segment a second time before its backward pass.

    Segments of a list of layers are cut where they hold the least together; of any other model each
    layer of its list is one.
    """

    def arrange(self, model: Any, plan: ModelPlan) -> Activations:
        """Compute in segments."""
        layers, _ = layers_of(model)
        if isinstance(plan.model, LayeredModel):
            size = find_precision(plan.precision).bytes_per_number
            runs = segments(saved_tensors(plan.model.layers, plan.model.sample, plan.batch, size))
        else:
            runs = [Run("recompute", index, index + 1) for index in range(len(layers))]
        compute_in_runs(model, runs, nullcontext)
        return RecomputedActivations(runs)


class RecomputedActivations(PlainActivations):
    """Says which layers are."""

    def __init__(self, runs: list[Run]) -> None:
        self._runs = runs

    def facts(self) -> dict[str, Any]:
        """Return the runs as [action, first layer, layer after the last]."""
        return {"runs": [list(run) for run in self._runs]}
