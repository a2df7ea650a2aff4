"""What each layer of a model costs: counted from its definition, or measured by a `profile` cell.

All costs are those of one micro-batch on one device. A layer is a top-level one of a `LayeredModel`, with
all that lies inside.

**Counted.** A pass takes as long as its operations or its bytes need, whichever is more (S. Williams et al.,
"Roofline", 2009): `training.operations` says what is an operation; bytes are the numbers that a layer reads and
writes, once each. Kept between the passes is what each layer's gradient is made of, each array once: its input of
a linear layer, a convolution, a batch norm and a pooling (with an int64 place for each maximum), its output
of a ReLU and a sigmoid.

**Measured.** Medians of samples. Between two profiled batch sizes, and beyond them, a time is a + b n, by least
squares over all sizes that were profiled, never below 0; from one size it is taken in proportion to n.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from transect.domain.errors import BadInput
from transect.domain.precisions import find_precision
from transect.training.layered import LayeredModel
from transect.training.layers import (
    BatchNorm2d,
    Branches,
    Conv2d,
    Flatten,
    Layer,
    LayerNorm,
    Linear,
    MaxPool2d,
    ReLU,
    Shape,
    Sigmoid,
    inner,
    shapes,
    weight_shapes,
)
from transect.training.losses import LOSSES
from transect.training.models import Model, called
from transect.training.operations import layer_operations
from transect.training.optimisers import OPTIMISERS, arrays_kept
from transect.training.workloads import Parameters

# Bytes of the place of a maximum, as frameworks keep it.
_PLACE_BYTES = 8


@dataclass(frozen=True, slots=True)
class LayerCosts:
    """One layer's costs for one micro-batch on one device, in seconds and bytes.

    `weight_bytes`: its trained weights, once. `kept_bytes`: what it keeps of one micro-batch until its
    backward pass. `out_bytes`: what it passes on, and so the size of the gradient that comes back.
    `update_s`: its share of the update, once a step.
    """

    name: str
    forward_s: float
    backward_s: float
    weight_bytes: int
    kept_bytes: int
    out_bytes: int
    update_s: float = 0.0

    @property
    def compute_s(self) -> float:
        """Forward and backward."""
        return self.forward_s + self.backward_s


class Rates(NamedTuple):
    """What a device computes and moves in a second: of counted costs."""

    flops_per_s: float
    bytes_per_s: float

    def seconds(self, flops: float, moved: float) -> float:
        """Return how long they take at least."""
        return max(flops / self.flops_per_s, moved / self.bytes_per_s)


class _Count(NamedTuple):
    """Operations, numbers moved and bytes kept; of one sample, but for the numbers of weights."""

    forward: int = 0
    backward: int = 0
    read_forward: int = 0
    read_backward: int = 0
    weights: int = 0
    kept: int = 0

    def __add__(self, other: tuple[Any, ...]) -> _Count:
        return _Count(*(a + b for a, b in zip(self, other, strict=True)))


def layers_of(model: Model) -> tuple[Layer, ...]:
    """Return the layers that a model can be cut at. Raises BadInput where it has none."""
    if not isinstance(model, LayeredModel):
        raise BadInput(f"{called(model)} is no list of layers: there is nothing to cut it at")
    return model.layers


def _keeps(layer: Layer, before: Shape, after: Shape, size: int, held: bool) -> tuple[int, bool]:
    """Return the bytes that a layer keeps of a sample, and whether its output is kept by then.

    `held`: whether its input is kept already.
    """
    own_input = 0 if held else size * prod(before)
    match layer:
        case Linear() | Conv2d() | BatchNorm2d() | LayerNorm():
            return own_input, False
        case MaxPool2d():
            return own_input + _PLACE_BYTES * prod(after), False
        case ReLU() | Sigmoid():
            return size * prod(after), True
        case Flatten():
            return 0, held
    return 0, False


def _count(layer: Layer, before: Shape, after: Shape, size: int, needed: bool, held: bool) -> tuple[_Count, bool]:
    """Count one layer with all inside; return whether its output is kept too."""
    operations = layer_operations(layer, before, after)
    read, written = prod(before), prod(after)
    within, chains = _Count(), inner(layer).values()
    for chain in chains:
        shape, inside, stays = before, needed, held
        for part, to in zip(chain, shapes(chain, before)[1:], strict=True):
            counted, stays = _count(part, shape, to, size, inside, stays)
            within += counted
            shape, inside = to, inside or bool(weight_shapes((part,)))
        # The next chain finds the input kept if this one kept it.
        held = held or bool(chain)
    trained = 0 if chains else sum(prod(w.shape) for w in weight_shapes((layer,)) if w.trained)
    kept, held = _keeps(layer, before, after, size, held)
    # Branches can write where they are joined.
    moved = 0 if isinstance(layer, Flatten | Branches) else read + written
    return within + _Count(
        forward=operations.forward,
        backward=operations.weights + needed * operations.inputs,
        read_forward=moved,
        read_backward=moved + needed * read,
        weights=trained,
        kept=kept,
    ), held


def weight_copies(parameters: Parameters) -> int:
    """Return how many arrays as large as the weights a training keeps: weights, gradients, states, averages."""
    return 2 + arrays_kept(parameters)


def counted_costs(
    model: Model, parameters: Parameters, batch: int, precision: str, rates: Rates
) -> tuple[LayerCosts, ...]:
    """Count every layer of a model for micro-batches of `batch` samples.

    Raises BadInput for a model that is no list of layers.
    """
    layers = layers_of(model)
    size = find_precision(precision).bytes_per_number
    update = OPTIMISERS.get(parameters.optimiser).operations(parameters)
    copies = weight_copies(parameters)
    found: list[LayerCosts] = []
    needed = held = False
    places = shapes(layers, model.sample)
    for index, layer in enumerate(layers):
        before, after = places[index], places[index + 1]
        count, held = _count(layer, before, after, size, needed, held)
        needed = needed or bool(weight_shapes((layer,)))
        if index == len(layers) - 1:
            # Forwards and backwards in one number: the loss is a few operations.
            count += _Count(forward=LOSSES.get(parameters.loss).operations(prod(after)))
        found.append(
            LayerCosts(
                name=str(index),
                forward_s=rates.seconds(batch * count.forward, size * (batch * count.read_forward + count.weights)),
                backward_s=rates.seconds(
                    batch * count.backward, size * (batch * count.read_backward + 2 * count.weights)
                ),
                weight_bytes=size * count.weights,
                kept_bytes=batch * count.kept,
                out_bytes=batch * size * prod(after),
                # Each array is read and written once.
                update_s=rates.seconds(update * count.weights, 2 * size * copies * count.weights),
            )
        )
    return tuple(found)


def _at(batch: int, sizes: Sequence[int], values: Sequence[float]) -> float:
    if len(sizes) == 1:
        return values[0] * batch / sizes[0]
    slope, start = np.polyfit(np.asarray(sizes, float), np.asarray(values, float), 1)
    return max(0.0, float(start + slope * batch))


def measured_costs(profiles: Sequence[Mapping[str, Any]], batch: int) -> tuple[LayerCosts, ...]:
    """Return costs for micro-batches of `batch` samples from `profile.json` of one model, one for each batch size.

    Raises BadInput unless all are of the same layers.
    """
    if not profiles:
        raise BadInput("no profile: expected at least one")
    names = [[layer["name"] for layer in profile["layers"]] for profile in profiles]
    if any(layer_names != names[0] for layer_names in names):
        raise BadInput("the profiles are of different layers: expected those of one model")
    sizes = [int(profile["batch"]) for profile in profiles]
    if len(set(sizes)) != len(sizes):
        raise BadInput(f"two profiles of batch {max(sizes, key=sizes.count)}: expected one of each")

    def of(index: int, key: str) -> list[float]:
        samples = [profile["layers"][index][key] for profile in profiles]
        return [median(repeats) if isinstance(repeats, list) else float(repeats) for repeats in samples]

    return tuple(
        LayerCosts(
            name=name,
            forward_s=_at(batch, sizes, of(index, "forward_s")),
            backward_s=_at(batch, sizes, of(index, "backward_s")),
            weight_bytes=round(of(index, "weight_bytes")[0]),
            kept_bytes=round(_at(batch, sizes, of(index, "kept_bytes"))),
            out_bytes=round(_at(batch, sizes, of(index, "out_bytes"))),
            # Once a step, whatever the batch.
            update_s=median(of(index, "update_s")),
        )
        for index, name in enumerate(names[0])
    )


def whole_over_layers(profiles: Sequence[Mapping[str, Any]]) -> float:
    """Return what the whole model's passes took over the sum of its layers', the median of the profiles.

    Layers alone make calls, and copies, that a longer part does not: 1 where a profile has no `whole`.
    """
    ratios = []
    for profile in profiles:
        if "whole" in profile:
            passes = ("forward_s", "backward_s")
            apart = sum(median(layer[key]) for layer in profile["layers"] for key in passes)
            ratios.append(sum(median(profile["whole"][key]) for key in passes) / apart)
    return median(ratios) if ratios else 1.0


def scaled(costs: Sequence[LayerCosts], factor: float) -> tuple[LayerCosts, ...]:
    """Return the same costs with all times of the two passes multiplied."""
    return tuple(replace(c, forward_s=factor * c.forward_s, backward_s=factor * c.backward_s) for c in costs)
