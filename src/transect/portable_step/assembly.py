"""`step.onnx` and `accumulate.onnx`: the graph of the gradients, and what is done with them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from transect.onnx_models.graph_writer import GraphWriter, value_info
from transect.portable_step.manifest import StateTensor
from transect.portable_step.optimisers import Group, Optimiser
from transect.portable_step.updates import UPDATES

if TYPE_CHECKING:
    from onnx import ModelProto

# The counter of micro-batches since the last update. No prefix: no parameter can have this name.
ACCUMULATED = "accumulated"
# From so many on it takes fewer nodes to update vectors together than one by one.
MIN_VECTORS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """What is done with gradients before the update. `clip`: None, `norm` or `value`."""

    accumulation: bool
    clip: str | None
    proximal: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A step's parts; `gradients` has the outputs loss, metrics, `gradient.*`, `next.*`."""

    gradients: ModelProto
    optimiser: Optimiser
    options: Options
    state: tuple[StateTensor, ...]
    metrics: tuple[str, ...]
    hyper: tuple[str, ...]


def step_model(plan: Plan) -> ModelProto:
    """Return the graph that updates the parameters."""
    model, writer, tensors = _begin(plan)
    for name in plan.hyper:
        writer.input(name, "float64", ())
    updates = writer.node("Add", "step", writer.constant(1, "int64"))
    made = {"step": updates}
    gradients = _final_gradients(writer, plan, tensors)
    for group in plan.optimiser.groups:
        # LAMB looks at each tensor as a whole.
        alone = plan.optimiser.rule == "lamb"
        bundles = [(name,) for name in group.parameters] if alone else _bundles(group.parameters, tensors)
        for names in bundles:
            made |= _updated(writer, plan, group, names, tensors, gradients, updates)
    if plan.options.accumulation:
        made[ACCUMULATED] = writer.constant(0, "int64")
        for tensor in tensors.values():
            if tensor.role == "accumulator" and tensor.name != ACCUMULATED:
                made[tensor.name] = _zeros(writer, tensor)
    return _finish(model, writer, plan, made)


def _bundles(parameters: Sequence[str], tensors: Mapping[str, StateTensor]) -> list[tuple[str, ...]]:
    """Return what is updated together: vectors, which are many and short, and each other tensor alone."""
    vectors: dict[str, list[str]] = {}
    for name in parameters:
        if len(tensors[name].shape) == 1:
            vectors.setdefault(tensors[name].dtype, []).append(name)
    together = [tuple(names) for names in vectors.values() if len(names) >= MIN_VECTORS]
    bundled = set(itertools.chain(*together))
    return together + [(name,) for name in parameters if name not in bundled]


def _updated(
    writer: GraphWriter,
    plan: Plan,
    group: Group,
    names: Sequence[str],
    tensors: Mapping[str, StateTensor],
    gradients: Mapping[str, str],
    updates: str,
) -> dict[str, str]:
    """Write the update of some parameters at once; return next values by name of the state."""

    def joined(values: Sequence[str]) -> str:
        return writer.node("Concat", *values, axis=0) if len(values) > 1 else values[0]

    states = {
        kind: [f"optimiser.{kind}.{name.removeprefix('model.')}" for name in names]
        for kind in group.states(plan.optimiser.rule)
    }
    weight, gradient = joined(names), joined([gradients[name] for name in names])
    before = {kind: joined(members) for kind, members in states.items()}
    dtype = tensors[names[0]].dtype
    rule = UPDATES[plan.optimiser.rule]
    weight, after = rule(writer, group, weight, gradient, before, dtype, updates)
    made: dict[str, str] = {}
    for value, members in ((weight, names), *((after[kind], states[kind]) for kind in after)):
        sizes = [tensors[name].shape[0] for name in names] if len(names) > 1 else []
        parts = writer.split(value, sizes) if sizes else [value]
        made |= dict(zip(members, parts, strict=True))
    return made


def accumulate_model(plan: Plan) -> ModelProto:
    """Return the graph that adds one micro-batch's gradients to the accumulators."""
    model, writer, tensors = _begin(plan)
    made = {ACCUMULATED: writer.node("Add", ACCUMULATED, writer.constant(1, "int64"))}
    for name, tensor in tensors.items():
        if tensor.role == "accumulator" and name != ACCUMULATED:
            short = name.removeprefix("accumulated.")
            made[name] = writer.node("Add", name, f"gradient.model.{short}")
    return _finish(model, writer, plan, made)


def _begin(plan: Plan) -> tuple[ModelProto, GraphWriter, dict[str, StateTensor]]:
    from onnx import ModelProto as Model

    model = Model()
    model.CopyFrom(plan.gradients)
    writer = GraphWriter(model.graph)
    for tensor in plan.state:
        writer.input(tensor.name, tensor.dtype, tensor.shape)
    return model, writer, {tensor.name: tensor for tensor in plan.state}


def _final_gradients(writer: GraphWriter, plan: Plan, tensors: Mapping[str, StateTensor]) -> dict[str, str]:
    """Mean over micro-batches, then the proximal term, then clipping."""
    options, gradients, dtypes = plan.options, {}, {}
    for group in plan.optimiser.groups:
        for name in group.parameters:
            short, dtypes[name] = name.removeprefix("model."), tensors[name].dtype
            value = f"gradient.{name}"
            if options.accumulation:
                kept = f"accumulated.{short}"
                value = mean_gradient(writer, value, kept, ACCUMULATED, dtypes[name])
            if options.proximal:
                value = proximal(writer, value, name, f"anchor.{short}", "mu", dtypes[name])
            gradients[name] = value
    if options.clip:
        clip = clip_by_norm if options.clip == "norm" else clip_by_value
        gradients = clip(writer, gradients, "clip", dtypes)
    return gradients


def _zeros(writer: GraphWriter, tensor: StateTensor) -> str:
    zero = writer.constant(0, tensor.dtype)
    return writer.node("Expand", zero, writer.constant(tensor.shape, "int64"))


def _finish(model: ModelProto, writer: GraphWriter, plan: Plan, made: Mapping[str, str]) -> ModelProto:
    """Set the outputs: metrics first, then the next state."""
    graph = model.graph
    declared = {value.name: value for value in graph.output}
    del graph.output[:]
    graph.output.extend(declared[name] for name in plan.metrics)
    values = {}
    for tensor in plan.state:
        name = f"next.{tensor.name}"
        if tensor.name in made:
            values[name] = made[tensor.name]
        if tensor.name in made or (tensor.next and name in declared):
            graph.output.append(value_info(name, tensor.dtype, tensor.shape))
    writer.name_outputs(values)
    return model


# Added to the norm that a gradient is divided by, as torch.nn.utils.clip_grad_norm_ does.
NORM_EPSILON = 1e-6


def mean_gradient(writer: GraphWriter, gradient: str, accumulated: str, count: str, dtype: str) -> str:
    """(accumulated + gradient) / (count + 1); `count`: the micro-batches before this one."""
    number = writer.node("Add", count, writer.constant(1, "int64"))
    total = writer.node("Add", accumulated, gradient)
    return writer.node("Div", total, writer.cast(number, dtype))


def proximal(writer: GraphWriter, gradient: str, weight: str, anchor: str, mu: str, dtype: str) -> str:
    """Gradient of the loss and of mu/2 |w - anchor|^2 (Li et al., FedProx, arXiv:1812.06127)."""
    pull = writer.node("Mul", writer.cast(mu, dtype), writer.node("Sub", weight, anchor))
    return writer.node("Add", gradient, pull)


def clip_by_value(
    writer: GraphWriter, gradients: Mapping[str, str], bound: str, dtypes: Mapping[str, str]
) -> dict[str, str]:
    """Each number between -bound and bound."""
    clipped = {}
    for name, gradient in gradients.items():
        high = writer.cast(bound, dtypes[name])
        clipped[name] = writer.node("Clip", gradient, writer.node("Neg", high), high)
    return clipped


def clip_by_norm(
    writer: GraphWriter, gradients: Mapping[str, str], bound: str, dtypes: Mapping[str, str]
) -> dict[str, str]:
    """All gradients times min(1, bound / (norm + 1e-6)), the norm that of all numbers together.

    Squares of float16 overflow from 256 on: they are taken in float32.
    """
    squares = []
    for name, gradient in gradients.items():
        wide = writer.cast(gradient, "float32") if dtypes[name] == "float16" else gradient
        squares.append(writer.cast(writer.node("ReduceSumSquare", wide, keepdims=0), "float64"))
    norm = writer.node("Sqrt", writer.node("Sum", *squares))
    shifted = writer.node("Add", norm, writer.constant(NORM_EPSILON, "float64"))
    ratio = writer.node("Div", bound, shifted)
    factor = writer.node("Min", ratio, writer.constant(1.0, "float64"))
    return {
        name: writer.node("Mul", gradient, writer.cast(factor, dtypes[name])) for name, gradient in gradients.items()
    }
