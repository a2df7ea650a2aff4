"""The training artefacts of an inference model: `generate_artifacts` of onnxruntime-training 1.19.2."""

from __future__ import annotations

import os
import sys
import types
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

OUTPUT = "output"
# Outputs of the forward pass that a gradient is made from; an exporter leaves out what is unused.
_OUTPUTS = {"LayerNormalization": 3, "Dropout": 2}


def _package() -> Any:
    """Import `onnxruntime.training.artifacts` without the package's own first lines.

    Those import PyTorch for optimisers of its own that nothing here uses.
    """
    name = "onnxruntime.training"
    if name not in sys.modules:
        package = types.ModuleType(name)
        package.__path__ = [str(Path(onnxruntime.__file__).parent / "training")]
        sys.modules[name] = package
    from onnxruntime.training import artifacts

    return artifacts


def generate(
    source: Path,
    folder: Path,
    adamw: dict[str, float] | None,
    trained: dict[str, np.ndarray],
    frozen: dict[str, np.ndarray],
) -> dict[str, int]:
    """Write training, eval and optimizer model and the checkpoint; return what was repaired.

    `adamw`: its `beta1`, `beta2`, `eps`, `weight_decay`; None: SGD, which has nothing to set but the rate.

    `source` is an inference model with the parameters as initialisers of their own names; their
    values are replaced by those given. Raises ValueError where it does not hold them, and whatever
    the package raises for an operator without a gradient.
    """
    artifacts = _package()
    from onnxruntime.training import onnxblock

    model = onnx.load(source)
    weights = trained | frozen
    # An exporter that transposes weights, or keeps equal ones once, renames them.
    if missing := sorted(weights.keys() - {tensor.name for tensor in model.graph.initializer}):
        raise ValueError(f"{source}: parameter '{missing[0]}' is not there")
    repaired = _repair(model)
    for tensor in model.graph.initializer:
        if tensor.name in weights:
            tensor.CopyFrom(onnx.numpy_helper.from_array(weights[tensor.name], tensor.name))
    optimiser = onnxblock.optim.SGD()
    if adamw is not None:
        more = {name: adamw[name] for name in ("eps", "weight_decay")}
        optimiser = onnxblock.optim.AdamW(betas=(adamw["beta1"], adamw["beta2"]), **more)
    with _said_into(folder / "generation.log"):
        artifacts.generate_artifacts(
            model,
            requires_grad=list(trained),
            frozen_params=list(frozen),
            loss=artifacts.LossType.CrossEntropyLoss,
            optimizer=optimiser,
            artifact_directory=folder,
            additional_output_names=[OUTPUT],
        )
    if adamw is not None:
        _as_torch(folder / "optimizer_model.onnx")
    return repaired


def _repair(model: onnx.ModelProto) -> dict[str, int]:
    """Change a model so that a gradient can be built; return how often, by operator.

    LayerNormalization gets its mean and inverse deviation as outputs and Dropout its mask.
    CastLike, which has no gradient, becomes the Cast that it stands for.
    """
    done: Counter[str] = Counter()
    for node in model.graph.node:
        wanted = _OUTPUTS.get(node.op_type, 0)
        if len(node.output) < wanted:
            first = node.output[0]
            node.output.extend(f"{first}.{n}" for n in range(len(node.output), wanted))
            done[node.op_type] += 1
    if any(node.op_type == "CastLike" for node in model.graph.node):
        kinds = _types(model)
        for node in model.graph.node:
            if node.op_type == "CastLike":
                like = kinds[node.input[1]]
                node.op_type = "Cast"
                del node.input[1:], node.attribute[:]
                node.attribute.append(onnx.helper.make_attribute("to", like))
                done["CastLike"] += 1
    return dict(done)


def _types(model: onnx.ModelProto) -> dict[str, int]:
    """Return the element type of every tensor that shape inference knows."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    found = {tensor.name: tensor.data_type for tensor in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        found[value.name] = value.type.tensor_type.elem_type
    return found


def _as_torch(path: Path) -> None:
    """Let the operator compute what torch.optim.AdamW does.

    It has two forms. The package always writes 1, after Hugging Face's old one: epsilon is added to
    the root of the uncorrected average, and weights decay after the step. 0 is PyTorch's.
    """
    model = onnx.load(path)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name == "adam_mode":
                attribute.i = 0
    onnx.save(model, path)


@contextmanager
def _said_into(path: Path) -> Iterator[None]:
    """Send standard error to a file: the builder tells of every graph transformer there."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
