"""What clients of test_onnx_engine.py train, and their steps: exported by the environment of torch.

`python federated_steps.py FOLDER`: a step by the payload for `iris`, as a federate cell takes it, and one of a model with
a batch norm, AdamW and clipped gradients, which no workload is that is as small; each also with a pull, `NAME-pulled`. PYTHONPATH is `src`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from transect.domain.axes.retrain import StepCell
from transect.training.layered import LayeredModel
from transect.training.layers import BatchNorm2d, Conv2d, Flatten, Linear, ReLU
from transect.training.workloads import WORKLOADS, model_of

WORKLOAD = "iris-mlp-ce"
MODELS = {
    "iris": (model_of(WORKLOADS.get(WORKLOAD)), WORKLOADS.get(WORKLOAD).defaults),
    "normed": (
        LayeredModel((Conv2d(1, 3, 3, bias=False), BatchNorm2d(3), ReLU(), Flatten(), Linear(12, 3)), (1, 4, 4)),
        WORKLOADS.get(WORKLOAD).defaults.model_copy(
            update={"optimiser": "adamw", "learning_rate": 0.01, "weight_decay": 0.01, "clip_norm": 0.5}
        ),
    ),
}
ROWS = 60


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return all training rows, and their classes, which the first numbers of a row tell."""
    generator = np.random.default_rng(11)
    y = generator.integers(0, 3, ROWS)
    x = generator.normal(size=(ROWS, *MODELS[name][0].sample)).astype(np.float32)
    x.reshape(ROWS, -1)[np.arange(ROWS), y] += 2
    return x, y


def weights_of(name: str) -> dict[str, np.ndarray]:
    """Return weights to begin with, batch norms as after some training."""
    weights = MODELS[name][0].initial_weights(5)
    for key in weights:
        if key.endswith(("running_mean", "running_var")):
            weights[key] = weights[key] + np.random.default_rng(7).uniform(0, 0.5, weights[key].shape)
    return {key: np.asarray(array, np.float32) for key, array in weights.items()}


def _make(folder: Path) -> None:
    from transect.payloads.export_training_step import make_step
    from transect.payloads.step_base import export

    data = folder / "data"
    data.mkdir()
    x, y = rows_of("iris")
    np.savez(data / "data.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    np.savez(data / "start-0.npz", **weights_of("iris"))  # type: ignore[arg-type]
    parameters = MODELS["iris"][1]
    plain = StepCell(workload=WORKLOAD, optimiser=parameters.optimiser, base_epochs=0)
    for cell, name in ((plain, "iris"), (plain.changed(proximal=True), "iris-pulled")):
        spec = {"cell": cell.model_dump(), "parameters": parameters.model_dump(), "seed": 1, "problems": []}
        made = make_step(spec, {"data": data}, folder / name)
        assert made["status"] == "ok", made
    model, parameters = MODELS["normed"]
    x, y = rows_of("normed")
    plain = plain.changed(optimiser=parameters.optimiser, clip=parameters.clip_norm)
    for cell, name in ((plain, "normed"), (plain.changed(proximal=True), "normed-pulled")):
        export(cell, model, parameters, weights_of("normed"), {"x": x, "y": y}, folder / name / "step")


if __name__ == "__main__":
    _make(Path(sys.argv[1]))
