"""Operations, bytes and messages that a training step cannot do without: the bounds' side."""

from __future__ import annotations

from math import prod

from transect.domain.precisions import find_precision
from transect.training.layers import Layer, Shape, forward_flops, shapes, walk, weight_shapes
from transect.training.layout import Layout

__all__ = ["activation_count", "parameter_count", "run_costs", "step_costs"]


def parameter_count(layers: tuple[Layer, ...]) -> int:
    """Count the trainable numbers."""
    return sum(prod(one.shape) for one in weight_shapes(layers) if one.trained)


def activation_count(layers: tuple[Layer, ...], sample: Shape) -> int:
    """Count the numbers that one sample's forward pass writes."""
    return sum(prod(placed.after) for placed in walk(layers, sample))


def run_costs(
    layers: tuple[Layer, ...], sample: Shape, batch: int, precision: str = "fp32"
) -> dict[str, int]:
    """Return `flops_per_run` and `bytes_per_run` of one forward pass over a batch.

    Bytes are the least traffic: weights and inputs read once, outputs written once,
    activations kept in cache.
    """
    ends = prod(sample) + prod(shapes(layers, sample)[-1])
    return {
        "flops_per_run": batch * forward_flops(layers, sample),
        "bytes_per_run": find_precision(precision).bytes_per_number
        * (parameter_count(layers) + batch * ends),
    }


def step_costs(
    layers: tuple[Layer, ...], sample: Shape, batch: int, layout: Layout, precision: str
) -> dict[str, int]:
    """Return what one rank must do in one step on its share of the global `batch`.

    Ranks that share a replica share its work and its parameters equally; what they must say to
    each other depends on how the model is cut and is not counted.

    `flops_per_step`: the backward pass does the work of two forward passes (gradients of the
    inputs and of the weights), and SGD with momentum four operations per parameter.
    `bytes_per_step`: parameters, gradients and momentum read and written once each (six
    passes), activations written in the forward pass and read in the backward pass.
    `communication_bytes_per_step`: what each rank must at least send in an all-reduce over the p
    replicas, 2 (p-1)/p of its gradient (Patarasuk and Yuan, "Bandwidth optimal all-reduce", 2009).
    `messages_per_step`: at least 2 ceil(log2 p) of them one after the other.
    """
    local, parts, replicas = batch // layout.replicas, layout.model_parts, layout.replicas
    parameters = parameter_count(layers)
    size = find_precision(precision).bytes_per_number
    return {
        "flops_per_step": round(
            (3 * local * forward_flops(layers, sample) + 4 * parameters) / parts
        ),
        "bytes_per_step": round(
            size
            * (6 * parameters + local * (prod(sample) + 2 * activation_count(layers, sample)))
            / parts
        ),
        "communication_bytes_per_step": round(
            2 * (replicas - 1) / replicas * parameters * size / parts
        ),
        "messages_per_step": 2 * (replicas - 1).bit_length(),
    }
