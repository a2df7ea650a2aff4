"""The base models that a step goes on from, and its export."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.domain.axes.retrain import StepCell
from transect.domain.files import write_atomic
from transect.onnx_models.exporters import OUTPUT
from transect.payloads.step_path import trainer_of
from transect.portable_step.export import export_step
from transect.training.averages import averaged
from transect.training.inputs import load_data, load_weights
from transect.training.learning_rates import learning_rates
from transect.training.models import Model, TorchModel
from transect.training.module_model import ModuleModel
from transect.training.workloads import Parameters

if TYPE_CHECKING:
    import torch

# An ordinary export may fold a transposition into a weight, keep equal parameters once, or leave dropout out.
# ONNX Runtime training 1.19.2 knows operators up to 21, and gradients of those of 17 best.
OPSET = 17


def write_inference_models(
    module: torch.nn.Module, inputs: Sequence[torch.Tensor], names: Sequence[str], folder: Path
) -> dict[str, str | None]:
    """Write `inference-EXPORTER.onnx` of both exporters of torch; the first axis is dynamic.

    `inputs` holds a batch of two rows or more for each of `names`. Returns by exporter None, or
    its error; a file that could not be written is not there. The module's mode and weights are
    as before.
    """
    import torch

    was_training = module.training
    answers: dict[str, str | None] = {}
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
                answers[exporter] = None
            except Exception as error:  # whatever an exporter raises is its answer
                file.unlink(missing_ok=True)
                answers[exporter] = f"{type(error).__name__}: {error}"
    finally:
        module.train(was_training)
    return answers


def _options(exporter: str, names: list[str]) -> dict[str, Any]:
    import torch

    if exporter == "dynamo":
        shapes = tuple({0: torch.export.Dim("batch")} for _ in names)
        return {"dynamo": True, "dynamic_shapes": shapes, "optimize": False, "external_data": False, "verbose": False}
    axes = {name: {0: "batch"} for name in (*names, OUTPUT)}
    mode = torch.onnx.TrainingMode.TRAINING
    more = {"opset_version": OPSET, "dynamic_axes": axes, "training": mode, "do_constant_folding": False}
    return {"dynamo": False, **more}


# What runtimes without the ONNX graphs read.
WORKLOAD = "workload.json"
# Rows of the batch that the export looks at.
_EXAMPLE = 4

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bases:
    """Where base models come from: `weights` of a train cell, or a training of `cell.base_epochs`."""

    cell: StepCell
    model: Model
    parameters: Parameters
    data: Path
    weights: Path | None

    def weights_of_cell(self) -> Arrays | None:
        """Return those of the train cell, or None where the base is trained here."""
        if self.weights is None:
            return None
        with np.load(self.weights) as file:
            return {name: file[name] for name in file.files}

    def weights_of(self, repeat: int) -> Arrays:
        """Return the base of a repeat: float32 values, by neutral name."""
        given = self.weights_of_cell()
        start = load_weights(self.data, repeat) if given is None else given
        trained = self._train(start, repeat) if given is None and self.cell.base_epochs else start
        return {name: np.asarray(array, np.float32) for name, array in trained.items()}

    def _train(self, start: Arrays, repeat: int) -> Arrays:
        """Go through the first epochs of the training's own order, with the workload's own rule."""
        data = load_data(self.data, repeat, np.float32)
        trainer = trainer_of(self.model, self.parameters, start, "fp32")
        batch, order = self.parameters.batch, data["order"]
        epochs, samples = order.shape
        rates = iter(learning_rates(self.parameters, "none", batch, epochs * (samples // batch)).tolist())
        for epoch in order[: self.cell.base_epochs]:
            for first in range(0, len(epoch) - batch + 1, batch):
                rows = epoch[first : first + batch]
                trainer.forward_backward(*trainer.batch(data["x_train"][rows], data["y_train"][rows]))
                trainer.update(next(rates))
                if self.parameters.ema is not None:
                    trainer.average()
        with averaged(trainer, self.parameters):
            weights: Arrays = trainer.weights()
        return weights


def export(
    cell: StepCell, model: Model, parameters: Parameters, weights: Arrays, rows: Mapping[str, np.ndarray], folder: Path
) -> None:
    """Write the step's folder, with `workload.json` beside the manifest."""
    import torch

    from transect.training.frameworks._torch_losses import loss_function
    from transect.training.frameworks._torch_modules import load_weights
    from transect.training.frameworks._torch_optimisers import make_optimiser

    assert isinstance(model, TorchModel)
    torch.set_num_threads(1)
    module = load_weights(model.torch_module(), weights, torch.float32).train()
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    example = [torch.from_numpy(np.ascontiguousarray(rows[name][:_EXAMPLE])) for name in ("x", "y")]
    clip: dict[str, Any] = {} if cell.clip is None else {"clip": "norm", "defaults": {"clip": cell.clip}}
    export_step(
        module,
        loss_function(parameters, model),
        make_optimiser(parameters, trained),
        example,
        folder,
        metrics=("accuracy",) if model.score == "accuracy" else (),
        accumulation=cell.accumulates,
        proximal=cell.proximal,
        **clip,
    )
    facts = {
        "workload": cell.workload,
        "parameters": parameters.model_dump(mode="json"),
        "optimiser": cell.optimiser,
        "own_loss": isinstance(model, ModuleModel) and model.own_loss is not None,
        "clip": cell.clip,
        "accumulates": cell.accumulates,
    }
    # For ONNX Runtime training: null, or the exporter's error where there is no file.
    facts["inference_models"] = write_inference_models(module, example[:1], ["x"], folder)
    write_atomic(folder / WORKLOAD, json.dumps(facts, indent=1) + "\n")
