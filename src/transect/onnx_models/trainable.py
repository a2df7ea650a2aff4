"""Inference models that ONNX Runtime training can make its artefacts from.

An ordinary export may fold a transposition into a weight, keep two equal parameters once (torch's
dynamo exporter does, which would then train them as one), or leave dropout out. These keep each
parameter under its own name, and the module in the mode for training.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.onnx_models.exporters import OUTPUT

if TYPE_CHECKING:
    import torch

# ONNX Runtime training 1.19.2 knows operators up to 21, and gradients of those of 17 best.
OPSET = 17


def write_inference_models(
    module: torch.nn.Module, inputs: Sequence[torch.Tensor], names: Sequence[str], folder: Path
) -> dict[str, str | None]:
    """Write `inference-EXPORTER.onnx` of both exporters of torch; the first axis is dynamic.

    `inputs` holds a batch of two rows or more for each of `names`. Returns by exporter None, or
    what it said; a file that could not be written is not there. The module's mode and weights are
    as before.
    """
    was_training = module.training
    said: dict[str, str | None] = {}
    try:
        module.train()
        for exporter, export in _EXPORTS.items():
            file = folder / f"inference-{exporter}.onnx"
            file.unlink(missing_ok=True)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    export(module, tuple(inputs), list(names), file)
                said[exporter] = None
            except Exception as error:  # whatever an exporter raises is its answer
                file.unlink(missing_ok=True)
                said[exporter] = f"{type(error).__name__}: {error}"
    finally:
        module.train(was_training)
    return said


def _torchscript(module: Any, inputs: tuple[Any, ...], names: list[str], file: Path) -> None:
    import torch

    torch.onnx.export(
        module,
        inputs,
        str(file),
        dynamo=False,
        opset_version=OPSET,
        input_names=names,
        output_names=[OUTPUT],
        dynamic_axes={name: {0: "batch"} for name in (*names, OUTPUT)},
        training=torch.onnx.TrainingMode.TRAINING,
        do_constant_folding=False,
    )


def _dynamo(module: Any, inputs: tuple[Any, ...], names: list[str], file: Path) -> None:
    import torch

    torch.onnx.export(
        module,
        inputs,
        str(file),
        dynamo=True,
        input_names=names,
        output_names=[OUTPUT],
        dynamic_shapes=tuple({0: torch.export.Dim("batch")} for _ in names),
        optimize=False,
        external_data=False,
        verbose=False,
    )


_EXPORTS: dict[str, Callable[[Any, tuple[Any, ...], list[str], Path], None]] = {
    "dynamo": _dynamo,
    "torchscript": _torchscript,
}
