"""From a torch module, a loss and an optimiser to the folder of a portable training step."""

from __future__ import annotations

import hashlib
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.domain.errors import BadInput
from transect.domain.files import write_atomic
from transect.portable_step.assembly import (
    ACCUMULATED,
    Options,
    Plan,
    accumulate_model,
    step_model,
)  # fmt: skip
from transect.portable_step.cleaning import drop_unused, resolve
from transect.portable_step.manifest import (
    MANIFEST,
    Data,
    Graph,
    Hyper,
    Manifest,
    Metric,
    Output,
    Seed,
    StateTensor,
    read_manifest,
)  # fmt: skip
from transect.portable_step.modules import METRICS, ModuleStep, Scalar
from transect.portable_step.optimisers import Optimiser, read_optimiser
from transect.portable_step.state import state_bytes
from transect.portable_step.tracing import trace

if TYPE_CHECKING:
    import torch
    from onnx import ModelProto

__all__ = ["Step", "export_step"]

SEED, STATE = "seed", "state.safetensors"
# Defaults of the hyper-parameters that are not the optimiser's.
CLIP, MU = 1.0, 0.01


@dataclass(frozen=True, kw_only=True)
class Step:
    """The arguments of `export_step`, as a factory of the command line returns them."""

    module: torch.nn.Module
    loss: Scalar
    optimiser: torch.optim.Optimizer
    example: Sequence[torch.Tensor]
    metrics: Mapping[str, Scalar] | Sequence[str] = ()
    accumulation: bool = False
    clip: str | None = None
    proximal: bool = False
    defaults: Mapping[str, float] = field(default_factory=dict)
    names: Sequence[str] | None = None
    outputs: Sequence[str] | None = None
    dynamic: Mapping[str, Mapping[int, str]] | None = None


def export_step(
    module: torch.nn.Module,
    loss: Callable[[Any, Any], torch.Tensor],
    optimiser: torch.optim.Optimizer,
    example: Sequence[torch.Tensor],
    folder: str | Path,
    **more: Any,
) -> Manifest:
    """Write the step's folder and return its manifest.

    `loss(outputs, y)` is a mean over the batch. `example` holds a batch of two rows or more: the
    module's inputs and, last, the target. Of the optimiser (torch.optim.SGD or AdamW) come the
    defaults of the hyper-parameters and, where it has stepped, the state to begin with.

    `metrics`: names of METRICS, or functions like `loss` by name. `accumulation`: also write
    `accumulate.onnx`. `clip`: `"norm"` or `"value"`, the bound is the hyper-parameter `clip`.
    `proximal`: add mu (w - anchor) to the gradient, with `anchor` the parameters of now.
    `defaults`: those of `clip` and `mu`. `names` of the data, `outputs` of the module; `dynamic`:
    axes that may vary by name of a data tensor, default the first one of each, `batch`.

    Raises BadInput for what cannot be exported; the folder is written whole or not at all.
    """
    step = Step(module=module, loss=loss, optimiser=optimiser, example=example, **more)
    folder = Path(folder)
    _check_folder(folder)
    files, manifest = _make(step)
    _write(folder, files)
    return manifest


def _make(step: Step) -> tuple[dict[str, bytes], Manifest]:
    """Return the files of the folder by name, and the manifest."""
    import torch

    data = _data(step)
    target = data[-1].name
    model = ModuleStep(
        module=step.module, loss=step.loss, metrics=_metrics(step.metrics),
        data=tuple(one.name for one in data), outputs=step.outputs,
    )  # fmt: skip
    optimiser = _optimiser(step, model)
    options = Options(accumulation=step.accumulation, clip=step.clip, proximal=step.proximal)
    axes = {d.name: {i: a for i, a in enumerate(d.shape) if isinstance(a, str)} for d in data}
    batch = dict(zip(model.data, step.example, strict=True))
    state = model.parameters() | model.buffers()

    zero = torch.zeros((), dtype=torch.int64)
    counters = {SEED: zero, "step": zero} | ({ACCUMULATED: zero} if step.accumulation else {})
    masks = (SEED, "step", ACCUMULATED if step.accumulation else None)
    gradients = trace(model.gradients, state | batch | counters, axes, masks)
    models = {"eval": trace(model.evaluate, state | batch, axes)}
    inputs = {name: tensor for name, tensor in batch.items() if name != target}
    models["infer"] = trace(model.infer, state | inputs, {k: axes[k] for k in inputs})

    tensors, values = _state(model, optimiser, options, gradients)
    hyper = _hyper(optimiser, options, step.defaults)
    order = (*model.data, *(one.name for one in hyper), SEED, *(one.name for one in tensors))
    plan = Plan(
        gradients=gradients, optimiser=optimiser, options=options, state=tensors, order=order,
        metrics=("loss", *model.metrics), hyper=tuple(one.name for one in hyper),
    )  # fmt: skip
    models = {"step": step_model(plan), **models}
    if options.accumulation:
        models["accumulate"] = accumulate_model(plan)
    for one in models.values():
        _order_inputs(one, order)
    random = any(value.name == SEED for value in models["step"].graph.input)
    seed = Seed(name=SEED, dtype="int64") if random else None
    files = {
        f"{name}.onnx": one.SerializeToString(deterministic=True) for name, one in models.items()
    }
    manifest = Manifest(
        step_graph=hashlib.sha256(files["step.onnx"]).hexdigest(), state_file=STATE, data=data,
        hyper=hyper, seed=seed, state=tensors, metrics=_declared_metrics(models["eval"]),
        outputs=_declared_outputs(models["infer"]),
        graphs={name: _graph(name, one) for name, one in models.items()},
    )  # fmt: skip
    files[STATE] = state_bytes(values, manifest)
    files[MANIFEST] = manifest.to_json().encode()
    return files, manifest


def _data(step: Step) -> tuple[Data, ...]:
    """Describe inputs and target; raises BadInput when names and example do not fit."""
    count = len(step.example) - 1
    if count < 1:
        raise BadInput(f"example: {len(step.example)} tensors, expected inputs and a target")
    inputs = ["x"] if count == 1 else [f"x{i}" for i in range(count)]
    names = list(step.names) if step.names is not None else [*inputs, "y"]
    if len(names) != count + 1:
        raise BadInput(f"names: {names} for {count + 1} tensors of the example")
    data = []
    for name, tensor in zip(names, step.example, strict=True):
        axes = {0: "batch"} if step.dynamic is None else step.dynamic.get(name, {})
        for axis in axes:
            if tensor.ndim <= axis or tensor.shape[axis] < 2:
                raise BadInput(
                    f"example: {name} has the shape {list(tensor.shape)}; axis {axis}, which may "
                    "vary, is expected to be 2 or longer"
                )
        shape = tuple(axes.get(i, n) for i, n in enumerate(tensor.shape))
        dtype = tensor.detach().numpy().dtype.name
        data.append(Data(name=name, dtype=dtype, shape=shape, target=name == names[-1]))
    return tuple(data)


def _metrics(metrics: Mapping[str, Scalar] | Sequence[str]) -> dict[str, Scalar]:
    if isinstance(metrics, Mapping):
        return dict(metrics)
    if strange := [name for name in metrics if name not in METRICS]:
        raise BadInput(f"metrics: {strange[0]!r}, expected names of {sorted(METRICS)} or functions")
    return {name: METRICS[name] for name in metrics}


def _optimiser(step: Step, model: ModuleStep) -> Optimiser:
    if step.clip not in (None, "norm", "value"):
        raise BadInput(f'clip: {step.clip!r}, expected None, "norm" or "value"')
    trained = {f"model.{name}": p for name, p in step.module.named_parameters() if p.requires_grad}
    if not trained:
        raise BadInput("module: no parameter requires a gradient")
    return read_optimiser(step.optimiser, trained)


def _hyper(
    optimiser: Optimiser, options: Options, defaults: Mapping[str, float]
) -> tuple[Hyper, ...]:
    values = dict(optimiser.defaults)
    if options.clip:
        values["clip"] = CLIP
    if options.proximal:
        values["mu"] = MU
    if strange := set(defaults) - set(values):
        raise BadInput(f"defaults: {sorted(strange)[0]}, expected names of {sorted(values)}")
    values |= defaults
    return tuple(Hyper(name=k, dtype="float64", default=float(v)) for k, v in values.items())


def _state(
    model: ModuleStep, optimiser: Optimiser, options: Options, gradients: ModelProto
) -> tuple[tuple[StateTensor, ...], dict[str, np.ndarray]]:
    """Return the tensors of the state in their order, and the values to begin with."""
    tensors: list[StateTensor] = []
    values: dict[str, np.ndarray] = {}

    def add(name: str, role: str, value: np.ndarray, changes: bool = True) -> None:
        values[name] = value
        tensors.append(
            StateTensor(
                name=name, role=role, dtype=value.dtype.name, shape=value.shape,
                next=f"next.{name}" if changes else None,
            )
        )  # fmt: skip

    trained = model.trained()
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


def _order_inputs(model: ModelProto, order: Sequence[str]) -> None:
    """Put data before hyper-parameters before state, and leave out what no node reads."""
    drop_unused(model.graph)
    inputs = {value.name: value for value in model.graph.input}
    del model.graph.input[:]
    model.graph.input.extend(inputs[name] for name in order if name in inputs)


def _graph(name: str, model: ModelProto) -> Graph:
    inputs = tuple(value.name for value in model.graph.input)
    outputs = tuple(value.name for value in model.graph.output)
    return Graph(file=f"{name}.onnx", inputs=inputs, outputs=outputs)


def _declared_metrics(model: ModelProto) -> tuple[Metric, ...]:
    ends = [Output(**one) for one in _ends(model)]
    return tuple(Metric(name=one.name, dtype=one.dtype) for one in ends)


def _declared_outputs(model: ModelProto) -> tuple[Output, ...]:
    return tuple(Output(**one) for one in _ends(model))


def _ends(model: ModelProto) -> list[dict[str, Any]]:
    from onnx import helper

    found = []
    for value in model.graph.output:
        kind = value.type.tensor_type
        shape = tuple(axis.dim_param or axis.dim_value for axis in kind.shape.dim)
        dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type).name
        found.append({"name": value.name, "dtype": dtype, "shape": shape})
    return found


def _check_folder(folder: Path) -> None:
    """Refuse a folder that holds something else than a step."""
    if folder.exists() and any(folder.iterdir()):
        read_manifest(folder)


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write all files beside the folder, then put them in its place."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    before = folder.with_name(f"{beside.name}.old")
    try:
        for name, content in files.items():
            write_atomic(beside / name, content)
        if folder.exists():
            folder.rename(before)
        beside.rename(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        shutil.rmtree(before, ignore_errors=True)
