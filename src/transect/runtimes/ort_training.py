"""ONNX Runtime's own training, whose packages ended with 1.19.2: what the portable step is set against."""

from __future__ import annotations

from pathlib import Path

from transect.domain.axes.infer import InferCell
from transect.domain.axes.retrain import RetrainCell
from transect.runtimes import RUNNERS, RUNTIMES
from transect.runtimes._programs import CONTRACT, PythonProgram
from transect.training.module_model import ModuleModel
from transect.training.workloads import WORKLOADS, model_of

_FOLDER = RUNNERS / "ort-training"


@RUNTIMES.register("ort-training")
class OrtTrainingRuntime(PythonProgram):
    """Artefacts from the model that PyTorch's dynamo exporter writes."""

    environment = "ort-training"
    program = _FOLDER / "run.py"
    imports = ("onnxruntime", "onnx", "flatbuffers", "numpy", "numpy.libs")
    trains = True
    uses_step = False
    providers = ("cpu",)
    precisions = ("fp32",)

    def supports(self, cell: InferCell) -> str | None:
        """Nothing but training, on the CPU."""
        if cell.stage in ("infer", "conformance"):
            return "this runtime trains and has no session for inference alone"
        return super().supports(cell)

    def trains_on(self, cell: RetrainCell) -> str | None:
        """SGD without momentum and AdamW; whether there is a momentum, the program finds."""
        if cell.provider != "cpu":
            return "the package onnxruntime-training-cpu has the CPU only"
        if cell.optimiser not in ("sgd", "adamw"):
            return f"ONNX Runtime training has sgd and adamw, not {cell.optimiser}"
        if cell.accumulate > 1:
            return "ONNX Runtime training adds up the gradients of micro-batches, without a mean"
        if cell.clip is not None:
            return "gradients are not clipped here"
        model = model_of(WORKLOADS.get(cell.workload))
        if model.parts_matter:
            why = "ONNX Runtime training averages batch norm's biased variance, PyTorch the unbiased one"
            return f"{why}, and a module may have one" if isinstance(model, ModuleModel) else why
        return None

    def code_files(self) -> list[Path]:
        """Return the programs and the contract."""
        shared = [RUNNERS / "python" / f"{name}.py" for name in ("session", "workload")]
        return [*sorted(_FOLDER.glob("*.py")), *shared, *CONTRACT]


@RUNTIMES.register("ort-training-torchscript")
class OrtTrainingTorchScriptRuntime(OrtTrainingRuntime):
    """Artefacts from the model that PyTorch's older exporter writes."""

    program = _FOLDER / "run_torchscript.py"
