"""From a torch module, a loss and an optimiser to the folder of a portable training step."""

from __future__ import annotations

import hashlib
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.domain.errors import BadInput
from transect.domain.files import write_atomic
from transect.portable_step.assembly import ACCUMULATED, Options, Plan, accumulate_model, step_model
from transect.portable_step.description import describe_data, describe_hyper, describe_outputs, describe_state
from transect.portable_step.eager import Eager
from transect.portable_step.manifest import MANIFEST, Data, Graph, Manifest, Metric, Seed, read_manifest
from transect.portable_step.modules import METRICS, ModuleStep, Scalar, refuse_twice
from transect.portable_step.optimisers import Optimiser, read_optimiser
from transect.portable_step.simplification import order_inputs, with_outputs
from transect.portable_step.state import state_bytes
from transect.portable_step.tracing import trace
from transect.portable_step.verification import verify

if TYPE_CHECKING:
    import numpy as np
    import torch
    from onnx import ModelProto

SEED, STATE = "seed", "state.safetensors"


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
    *,
    metrics: Mapping[str, Scalar] | Sequence[str] = (),
    accumulation: bool = False,
    clip: str | None = None,
    proximal: bool = False,
    defaults: Mapping[str, float] | None = None,
    names: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
) -> Manifest:
    """Write the step's folder and return its manifest.

    `loss(outputs, y)` is a mean over the batch. `example` holds a batch of two rows or more: the
    module's inputs and, last, the target. Of the optimiser (see `read_optimiser`) come the
    defaults of the hyper-parameters and, where it has stepped, the state to begin with. A
    momentum or weight decay of 0 is left out of the graph.

    `metrics`: names of METRICS, or functions like `loss` by name. `accumulation`: also write
    `accumulate.onnx`. `clip`: `"norm"` or `"value"`, the bound is the hyper-parameter `clip`.
    `proximal`: add mu (w - anchor) to the gradient, with `anchor` the parameters of now; the loss
    that is told is without it. `defaults`: of any hyper-parameter. `names` of the data, `outputs` of
    the module; `dynamic`: axes that may vary by name of a data tensor, default the first one of
    each, `batch`.

    Raises BadInput for what cannot be exported; the folder is written whole or not at all.
    """
    step = Step(
        module=module,
        loss=loss,
        optimiser=optimiser,
        example=example,
        metrics=metrics,
        accumulation=accumulation,
        clip=clip,
        proximal=proximal,
        defaults=defaults or {},
        names=names,
        outputs=outputs,
        dynamic=dynamic,
    )
    folder = Path(folder)
    check_folder(folder)
    files, manifest = _make(step)
    write_folder(folder, files)
    return manifest


def _make(step: Step) -> tuple[dict[str, bytes], Manifest]:
    """Return the files of the folder by name, and the manifest."""
    _check(step)
    data = describe_data(step.example, step.names, step.dynamic)
    model = ModuleStep(
        module=step.module,
        loss=step.loss,
        metrics=_metrics(step.metrics),
        data=tuple(tensor.name for tensor in data),
        outputs=step.outputs,
    )
    optimiser = _optimiser(step)
    options = Options(accumulation=step.accumulation, clip=step.clip, proximal=step.proximal)
    hyper = describe_hyper(optimiser, options, step.defaults)
    names = (*model.data, *(parameter.name for parameter in hyper), SEED, "step", ACCUMULATED)
    refuse_twice((*names, "loss", *model.metrics))
    for name in (*model.data, *model.metrics, *(step.outputs or ())):
        if not name or "." in name:
            raise BadInput(f"{name!r}: expected a name without a dot: those are the step's own")
    gradients, models = _trace(step, model, data)
    tensors, values = describe_state(model, optimiser, options, gradients)
    order = (*names[:-2], *(tensor.name for tensor in tensors))
    outputs = describe_outputs(models["infer"])
    refuse_twice((*order, "loss", *model.metrics, *(output.name for output in outputs)))
    plan = Plan(
        gradients=gradients,
        optimiser=optimiser,
        options=options,
        state=tensors,
        metrics=("loss", *model.metrics),
        hyper=tuple(parameter.name for parameter in hyper),
    )
    models = {"step": step_model(plan)} | models
    if options.accumulation:
        models["accumulate"] = accumulate_model(plan)
    models = {name: order_inputs(proto, order) for name, proto in models.items()}
    manifest = Manifest(
        step_graph="",
        state_file=STATE,
        data=data,
        hyper=hyper,
        seed=_seed(models["step"]),
        state=tensors,
        outputs=outputs,
        graphs={k: _graph(k, proto) for k, proto in models.items()},
        metrics=tuple(Metric(name=output.name, dtype=output.dtype) for output in describe_outputs(models["eval"])),
    )
    files = {graph.file: models[name].SerializeToString(deterministic=True) for name, graph in manifest.graphs.items()}
    eager = Eager(
        model=model, optimiser=step.optimiser, rule=optimiser, clip=step.clip, buffers=dict(step.module.named_buffers())
    )
    checked = verify(eager, manifest, files, values, step.example)
    return _with_names(files, values, replace(manifest, checked=checked))


def _check(step: Step) -> None:
    from torch.jit import ScriptModule

    for name, part in step.module.named_modules():
        if isinstance(part, ScriptModule):
            raise BadInput(
                f"{name or 'module'}: of TorchScript, which cannot be traced again; expected its Python class"
            )
    if not step.module.training:
        raise BadInput("module: in evaluation mode, expected training mode: module.train()")
    if step.clip not in (None, "norm", "value"):
        raise BadInput(f'clip: {step.clip!r}, expected None, "norm" or "value"')


def _metrics(metrics: Mapping[str, Scalar] | Sequence[str]) -> dict[str, Scalar]:
    if isinstance(metrics, str):
        metrics = [metrics]
    if isinstance(metrics, Mapping):
        return dict(metrics)
    if strange := [name for name in metrics if name not in METRICS]:
        raise BadInput(f"metrics: {strange[0]!r}, expected names of {sorted(METRICS)} or functions")
    return {name: METRICS[name] for name in metrics}


def _optimiser(step: Step) -> Optimiser:
    trained = {f"model.{k}": p for k, p in step.module.named_parameters() if p.requires_grad}
    if not trained:
        raise BadInput("module: no parameter requires a gradient")
    for name, parameter in trained.items():
        _refuse_hooks(name.removeprefix("model."), parameter)
    return read_optimiser(step.optimiser, trained)


def _refuse_hooks(name: str, parameter: torch.nn.Parameter) -> None:
    from torch.nn.parameter import is_lazy

    if is_lazy(parameter):
        raise BadInput(f"{name}: it has no shape yet; expected a module that has run once")
    if parameter._backward_hooks or parameter._post_accumulate_grad_hooks:
        raise BadInput(f"{name}: its gradient has a hook, which no graph runs; expected none")


def _trace(step: Step, model: ModuleStep, data: Sequence[Data]) -> tuple[ModelProto, dict[str, ModelProto]]:
    """Return the graph of the gradients, and those of evaluation and inference."""
    import torch

    axes = {d.name: {i: a for i, a in enumerate(d.shape) if isinstance(a, str)} for d in data}
    batch = dict(zip(model.data, step.example, strict=True))
    state = model.parameters() | model.buffers()
    counters = [SEED, "step", *([ACCUMULATED] if step.accumulation else [])]
    zeros = dict.fromkeys(counters, torch.zeros((), dtype=torch.int64))
    functions = {"loss": step.loss, **model.metrics}
    gradients = trace(
        step.module,
        model.gradients,
        state | batch | zeros,
        axes,
        masks=(SEED, "step", ACCUMULATED if step.accumulation else None),
        functions=functions,
    )
    predicted = trace(step.module, model.predict, state | batch, axes, functions=functions)
    scalars = ("loss", *model.metrics)
    outputs = [value.name for value in predicted.graph.output if value.name not in scalars]
    return gradients, {"eval": with_outputs(predicted, scalars), "infer": with_outputs(predicted, outputs)}


def _seed(model: ModelProto) -> Seed | None:
    there = any(value.name == SEED for value in model.graph.input)
    return Seed(name=SEED, dtype="int64") if there else None


def _graph(name: str, model: ModelProto) -> Graph:
    inputs = tuple(value.name for value in model.graph.input)
    outputs = tuple(value.name for value in model.graph.output)
    return Graph(file=f"{name}.onnx", inputs=inputs, outputs=outputs)


def _with_names(
    files: dict[str, bytes], values: Mapping[str, np.ndarray], manifest: Manifest
) -> tuple[dict[str, bytes], Manifest]:
    digest = hashlib.sha256(files["step.onnx"]).hexdigest()
    manifest = replace(manifest, step_graph=digest)
    files[STATE] = state_bytes(values, manifest)
    files[MANIFEST] = manifest.to_json().encode()
    return files, manifest


def check_folder(folder: Path) -> None:
    """Raise BadInput unless the folder is new, empty or that of a step, which is replaced."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder}: a file, expected a folder to write the step into")
    if folder.is_dir() and any(folder.iterdir()):
        try:
            read_manifest(folder)
        except BadInput as error:
            raise BadInput(f"{folder}: it holds something else than a step: {error}") from None


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write all files beside the folder, then put them in its place.

    Raises OSError when there is no room; the folder then is as it was.
    """
    beside = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    before = beside.with_suffix(".before")
    try:
        for name, content in files.items():
            write_atomic(beside / name, content)
        if folder.exists():
            folder.rename(before)
        beside.rename(folder)
    finally:
        if before.exists() and not folder.exists():
            before.rename(folder)
        shutil.rmtree(beside, ignore_errors=True)
        shutil.rmtree(before, ignore_errors=True)
