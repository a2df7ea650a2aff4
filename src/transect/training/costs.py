"""Operations, bytes and messages that a training step cannot do without: the bounds' side."""

from __future__ import annotations

from transect.domain.precisions import find_precision

# What models count with, by their names: who asks for costs runs again when these are edited.
from transect.training import _encoder_costs, operations  # noqa: F401
from transect.training.layout import Layout
from transect.training.models import Model
from transect.training.optimisers import OPTIMISERS, arrays_kept
from transect.training.workloads import Parameters


def run_costs(model: Model, parameters: Parameters, batch: int, precision: str = "fp32") -> dict[str, int]:
    """Return `flops_per_run` and `bytes_per_run` of one forward pass over a batch.

    Bytes are the least traffic: weights that are needed and inputs read once, outputs written once,
    activations kept in cache.
    """
    costs = model.costs(parameters)
    numbers = costs.prediction_weights + batch * (costs.inputs + costs.outputs)
    return {
        "flops_per_run": batch * costs.prediction_flops,
        "bytes_per_run": find_precision(precision).bytes_per_number * numbers,
    }


def step_costs(model: Model, parameters: Parameters, batch: int, layout: Layout, precision: str) -> dict[str, int]:
    """Return the least that one rank must do in one step on its share of the global `batch`.

    Ranks that share a replica share its work and its parameters equally; what they must say to
    each other depends on how the model is cut and is not counted.

    `flops_per_step`: the model's operations for each sample, forwards and backwards
    (`training.operations` says what is one), and the optimiser's for each parameter.
    `bytes_per_step`: parameters, gradients, the optimiser's states and the average of the parameters read and written once each,
    activations written in the forward pass and read in the backward pass.
    `communication_bytes_per_step`: what each rank must at least send in an all-reduce over the p
    replicas, 2 (p-1)/p of its gradient (Patarasuk and Yuan, "Bandwidth optimal all-reduce", 2009).
    `messages_per_step`: at least 2 ceil(log2 p) of them one after the other.
    """
    costs, optimiser = model.costs(parameters), OPTIMISERS.get(parameters.optimiser)
    parts, replicas = layout.model_parts, layout.replicas
    local, weights = batch // replicas, costs.parameters
    size = find_precision(precision).bytes_per_number
    # Of an average two products and a sum.
    per_weight = optimiser.operations(parameters) + 3 * (parameters.ema is not None)
    flops = local * costs.training_flops + per_weight * weights
    passes = 2 * (2 + arrays_kept(parameters))
    numbers = passes * weights + local * (costs.inputs + 2 * costs.activations)
    return {
        "flops_per_step": round(flops / parts),
        "bytes_per_step": round(size * numbers / parts),
        "communication_bytes_per_step": round(2 * (replicas - 1) / replicas * weights * size / parts),
        "messages_per_step": 2 * (replicas - 1).bit_length(),
    }
