"""What a manifest says of data, hyper-parameters and state, read off the module and the optimiser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from transect.domain.errors import BadInput
from transect.portable_step.assembly import ACCUMULATED, Options
from transect.portable_step.manifest import DTYPES, Data, Hyper, Output, StateTensor
from transect.portable_step.modules import ModuleStep
from transect.portable_step.optimisers import Optimiser
from transect.portable_step.simplification import resolve

if TYPE_CHECKING:
    import torch
    from onnx import ModelProto

# Defaults of the hyper-parameters that are not the optimiser's.
CLIP, MU = 1.0, 0.01


def describe_data(
    example: Sequence[torch.Tensor], names: Sequence[str] | None, dynamic: Mapping[str, Mapping[int, str]] | None
) -> tuple[Data, ...]:
    """Describe inputs and, last, the target; raises BadInput when names and example do not fit."""
    count = len(example) - 1
    if count < 1:
        raise BadInput(f"example: {len(example)} tensors, expected inputs and a target")
    inputs = ["x"] if count == 1 else [f"x{i}" for i in range(count)]
    names = list(names) if names is not None else [*inputs, "y"]
    if len(names) != count + 1:
        raise BadInput(f"names: {names} for {count + 1} tensors of the example")
    if dynamic and (strange := set(dynamic) - set(names)):
        raise BadInput(f"dynamic: {sorted(strange)[0]}, expected names of {names}")
    data = []
    for name, tensor in zip(names, example, strict=True):
        axes = {0: "batch"} if dynamic is None else dynamic.get(name, {})
        for axis in axes:
            if not 0 <= axis < tensor.ndim or tensor.shape[axis] < 2:
                raise BadInput(
                    f"example: {name} has the shape {list(tensor.shape)}; axis {axis}, which may "
                    "vary, is expected to be 2 or longer"
                )
        shape = tuple(axes.get(i, n) for i, n in enumerate(tensor.shape))
        data.append(Data(name=name, dtype=_dtype(name, tensor), shape=shape, target=name == names[-1]))
    return tuple(data)


def _dtype(name: str, tensor: torch.Tensor) -> str:
    """Name the dtype as numpy does; raises BadInput for one that state files do not hold."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype not in DTYPES or tensor.device.type != "cpu":
        raise BadInput(f"{name}: {dtype} on {tensor.device}, expected one of {', '.join(DTYPES)} on cpu")
    return dtype


def describe_hyper(optimiser: Optimiser, options: Options, defaults: Mapping[str, float]) -> tuple[Hyper, ...]:
    """Describe the optimiser's hyper-parameters and those of the options, with their defaults."""
    values = dict(optimiser.defaults)
    if options.clip:
        values["clip"] = CLIP
    if options.proximal:
        values["mu"] = MU
    if strange := set(defaults) - set(values):
        raise BadInput(f"defaults: {sorted(strange)[0]}, expected names of {sorted(values)}")
    values |= defaults
    return tuple(Hyper(name=k, dtype="float64", default=float(v)) for k, v in values.items())


def describe_state(
    model: ModuleStep, optimiser: Optimiser, options: Options, gradients: ModelProto
) -> tuple[tuple[StateTensor, ...], dict[str, np.ndarray]]:
    """Return the tensors of the state in their order, and the values to begin with."""
    tensors: list[StateTensor] = []
    values: dict[str, np.ndarray] = {}

    def add(name: str, role: str, value: np.ndarray, changes: bool = True) -> None:
        if not np.isfinite(value).all():
            raise BadInput(
                f"{name.partition('.')[2]}: it holds a number that is not finite, and programs refuse "
                "such a state; expected finite ones, in a mask bool and masked_fill"
            )
        values[name] = value
        tensors.append(
            StateTensor(
                name=name,
                role=role,
                dtype=value.dtype.name,
                shape=value.shape,
                next=f"next.{name}" if changes else None,
            )
        )

    trained = model.trained()
    for name, tensor in (model.parameters() | model.buffers()).items():
        _dtype(name, tensor)
    parameters = {name: tensor.numpy().copy() for name, tensor in model.parameters().items()}
    add("step", "counter", np.array(optimiser.step, np.int64))
    if options.accumulation:
        add(ACCUMULATED, "accumulator", np.array(0, np.int64))
    for name, value in parameters.items():
        role = "parameter" if name in trained else "frozen"
        add(name, role, value, changes=name in trained)
    for name, tensor in model.buffers().items():
        changes = resolve(gradients.graph, f"next.{name}") != name
        add(name, "buffer", tensor.numpy().copy(), changes=changes)
    for (kind, name), value in optimiser.states.items():
        add(f"optimiser.{kind}.{name.removeprefix('model.')}", "optimiser", value)
    for name in trained if options.accumulation else ():
        short = name.removeprefix("model.")
        add(f"accumulated.{short}", "accumulator", np.zeros_like(parameters[name]))
    for name in trained if options.proximal else ():
        add(f"anchor.{name.removeprefix('model.')}", "anchor", parameters[name], changes=False)
    return tuple(tensors), values


def describe_outputs(model: ModelProto) -> tuple[Output, ...]:
    """Describe the outputs of a graph."""
    from onnx import helper

    found = []
    for value in model.graph.output:
        kind = value.type.tensor_type
        shape = tuple(axis.dim_param or axis.dim_value for axis in kind.shape.dim)
        dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type).name
        found.append(Output(name=value.name, dtype=dtype, shape=shape))
    return tuple(found)
