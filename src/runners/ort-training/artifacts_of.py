"""The training artefacts of an inference model: `generate_artifacts` of onnxruntime-training 1.19.2."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from graphs import check_weights, repair

OUTPUT = "output"


@dataclass(frozen=True)
class Rule:
    """`adamw` or `sgd`, which here has neither momentum nor weight decay."""

    name: str
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.0


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
    source: Path, folder: Path, rule: Rule, trained: dict[str, np.ndarray], frozen: dict[str, np.ndarray]
) -> dict[str, int]:
    """Write training, eval and optimizer model and the checkpoint; return what was repaired.

    `source` is an inference model with the parameters as initialisers of their own names; their
    values are replaced by those given. Raises ValueError where it does not hold them, and whatever
    the package raises for an operator without a gradient.
    """
    artifacts = _package()
    from onnxruntime.training import onnxblock

    model = onnx.load(source)
    weights = trained | frozen
    check_weights(model, {name: array.shape for name, array in weights.items()})
    repaired = repair(model)
    for tensor in model.graph.initializer:
        if tensor.name in weights:
            tensor.CopyFrom(onnx.numpy_helper.from_array(weights[tensor.name], tensor.name))
    optimiser = onnxblock.optim.SGD()
    if rule.name == "adamw":
        optimiser = onnxblock.optim.AdamW(betas=(rule.beta1, rule.beta2), eps=rule.eps, weight_decay=rule.weight_decay)
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
    if rule.name == "adamw":
        _as_torch(folder / "optimizer_model.onnx")
    return repaired


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
