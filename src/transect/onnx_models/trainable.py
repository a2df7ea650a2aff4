"""Inference models that ONNX Runtime training can make its artefacts from.

An ordinary export may fold a transposition into a weight, keep two equal parameters once (torch's
dynamo exporter does, which would then train them as one), or leave dropout out. These keep each
parameter under its own name, and the module in the mode for training.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
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
    import torch

    was_training = module.training
    said: dict[str, str | None] = {}
    try:
        module.train()
        for exporter in ("dynamo", "torchscript"):
            file = folder / f"inference-{exporter}.onnx"
            file.unlink(missing_ok=True)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    torch.onnx.export(
                        module,
                        tuple(inputs),
                        str(file),
                        input_names=list(names),
                        output_names=[OUTPUT],
                        **_options(exporter, list(names)),
                    )
                said[exporter] = None
            except Exception as error:  # whatever an exporter raises is its answer
                file.unlink(missing_ok=True)
                said[exporter] = f"{type(error).__name__}: {error}"
    finally:
        module.train(was_training)
    return said


def _options(exporter: str, names: list[str]) -> dict[str, Any]:
    import torch

    if exporter == "dynamo":
        shapes = tuple({0: torch.export.Dim("batch")} for _ in names)
        return {"dynamo": True, "dynamic_shapes": shapes, "optimize": False, "external_data": False, "verbose": False}
    axes = {name: {0: "batch"} for name in (*names, OUTPUT)}
    mode = torch.onnx.TrainingMode.TRAINING
    more = {"opset_version": OPSET, "dynamic_axes": axes, "training": mode, "do_constant_folding": False}
    return {"dynamo": False, **more}
