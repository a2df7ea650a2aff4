"""Trainings as recipes for Deep500: a fixed set-up, components to exchange, and the accuracy to be reached.

The form is that of `recipes/cifar10_resnet44.py` of https://github.com/deep500/deep500 at commit 494a16b; what a model and a
dataset may be stands in `deep500/recipe.py` there, which operators it knows in `deep500/frameworks/pytorch/pytorch_visitor.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from string import Template
from typing import Any

import numpy as np

from transect import __version__
from transect.analysis.entries import AnyRecord, inside
from transect.analysis.groups import Group
from transect.report.engine.formats import REPORT_FORMATS, Contents, ReportFormat
from transect.report.engine.formats._runs import as_name
from transect.report.engine.report import Made
from transect.report.engine.shell import TEMPLATES
from transect.report.engine.text import clean, count

# Operators that its visitor builds as ONNX means them, of activations, and Flatten, which the recipe rewrites. Not those whose
# constants it looks for elsewhere (Mul, Sub), whose padding counts otherwise (AveragePool), or whose names it has wrong (Softmax).
_OPERATORS = frozenset(
    (
        "Add",
        "BatchNormalization",
        "Constant",
        "Conv",
        "Flatten",
        "Gemm",
        "GlobalAveragePool",
        "MaxPool",
        "Relu",
        "Sigmoid",
        "Tanh",
    )
)
_FILES = ("data.npz", "start-0.npz")
# Hyper-parameters that a recipe has no word for, with the value that needs none.
_PLAIN: Mapping[str, Any] = {
    "loss": "cross-entropy",
    "decay": "all",
    "clip_norm": None,
    "accumulation": 1,
    "ema": None,
    "label_smoothing": 0.0,
    "warmup_steps": 0,
}
_ADAM = {"beta1": "beta1", "beta2": "beta2", "epsilon": "epsilon"}


@REPORT_FORMATS.register("deep500")
class Deep500(ReportFormat):
    """Trainings as Deep500's recipes, with their model, their data and the accuracy that was measured."""

    place = "deep500/"
    needs: Sequence[str] = ()

    def contents(self, made: Made) -> Contents:
        """Write a recipe for each training that one can express; of the others it says why not."""
        files: dict[str, bytes] = {}
        left_out = []
        for group in made.context.groups.get("train", ()):
            try:
                found = _recipe(made, group)
            except (OSError, ValueError, KeyError, TypeError) as error:  # a file of a folder, which is anybody's
                found = f"its model or data cannot be read: {type(error).__name__}: {error}"
            name = as_name(group.cell.model_copy(update={"repeat": 0}).id)
            if isinstance(found, str):
                left_out.append(f"train/{name}: {clean(found)}")
            else:
                files |= {f"{name}/{place}": data for place, data in found.items()}
        return Contents(files=files, left_out=left_out)


def _recipe(made: Made, group: Group[Any]) -> dict[str, bytes] | str:
    """Return the files of a recipe, or why there can be none."""
    cell, accuracy = group.cell, group.summary("accuracy")
    if not group.ok or group.wrong or accuracy is None:
        return "no run of it ended well with an accuracy, which a recipe has to reach"
    if (reason := _inexpressible(cell, group.ok[0].parameters)) is not None:
        return reason
    exported = [one for group in made.context.of("export", cell.workload) for one in group.ok]
    data = [one for group in made.context.of("dataset", cell.workload) for one in group.ok]
    if not exported or len(data) != 1:
        return f"a recipe takes an exported model: the study has no export of {cell.workload}, or not one dataset of it"
    strange = {one.cell_id: sorted(map(str, {*_operators(one)} - _OPERATORS)) for one in exported}
    able = [one for one in exported if not strange[one.cell_id]]
    if not able:
        told = "; ".join(f"{', '.join(names)} of {cell_id}" for cell_id, names in strange.items())
        return f"Deep500 builds not every operator of its exported models: {told}"
    folders = [made.context.originals.folder(one) for one in (able[0], data[0])]
    assert folders[0] is not None and folders[1] is not None
    model = (folders[0] / "model.onnx").read_bytes()
    samples, start = ((folders[1] / name).read_bytes() for name in _FILES)
    with np.load(folders[1] / _FILES[0]) as stored, np.load(folders[1] / _FILES[1]) as weights:
        if "x_train" not in stored:
            return f"the samples of {cell.workload} are decoded from files, and a recipe has them in one array"
        shape = (int(stored["y_train"].max()) + 1, *map(int, stored["x_train"].shape[1:]))
        unnamed = [name for name in weights.files if name != "order" and name.encode() not in model]
    if unnamed:
        return f"its exported model has other names of weights: {', '.join(unnamed)} are not in it"
    text = _text(made, group, group.ok[0], shape)
    return {"recipe.py": text.encode("ascii", "replace"), "model.onnx": model, "data.npz": samples, "start.npz": start}


def _operators(exported: AnyRecord) -> Iterable[Any]:
    found = exported.details.get("operators_by_type")
    return found if isinstance(found, dict) else ["operators that no record names"]


def _inexpressible(cell: Any, parameters: Mapping[str, Any]) -> str | None:
    """Return what of a training a recipe cannot say, or None."""
    if cell.ranks != 1 or cell.strategy != "single":
        return f"a recipe trains in one process: {cell.strategy} on {cell.ranks} ranks cannot be said"
    if cell.precision != "fp32" or cell.input != "stored" or cell.memory != "plain":
        return f"a recipe trains in fp32 from arrays: {cell.precision} with input {cell.input} and memory {cell.memory} cannot be said"
    if parameters.get("schedule") not in (None, "constant") and _schedule(parameters) != ("constant", 0):
        return f"a recipe's learning rate is constant here: schedule {parameters['schedule']} is not written"
    for name, plain in _PLAIN.items():
        if parameters.get(name, plain) != plain:
            return f"a recipe has no word for {name} {parameters[name]}"
    if _optimiser(parameters) is None:
        return f"Deep500 has no optimiser as {parameters.get('optimiser')} is here"
    return None


def _schedule(parameters: Mapping[str, Any]) -> tuple[Any, Any]:
    chosen = parameters["schedule"]
    return (chosen.get("name"), chosen.get("warmup_steps", 0)) if isinstance(chosen, dict) else (chosen, 0)


def _optimiser(parameters: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Return Deep500's optimiser for PyTorch with its arguments; None where it has none of that rule."""
    name, given = parameters.get("optimiser"), {"learning_rate": parameters.get("learning_rate")}
    given["weight_decay"] = parameters.get("weight_decay", 0.0)
    momentum = parameters.get("momentum", 0.0)
    if name == "adam":
        return "AdamOptimizer", given | {theirs: parameters[ours] for ours, theirs in _ADAM.items()}
    if name not in ("sgd", "nesterov"):
        return None
    # Without a momentum both are the same rule, and PyTorch refuses a nesterov without one.
    if momentum:
        return "MomentumOptimizer", given | {"momentum": momentum, "nesterov": name == "nesterov"}
    return "GradientDescent", given


def _text(made: Made, group: Group[Any], record: AnyRecord, shape: tuple[int, ...]) -> str:
    cell, accuracy, parameters = group.cell, group.summary("accuracy"), record.parameters
    assert accuracy is not None
    optimiser, rule = _optimiser(parameters) or ("", {})
    ends = f"{accuracy.word} {100 * accuracy.low:.4g} to {100 * accuracy.high:.4g} %"
    libraries = inside(record.provenance, "libraries")
    versions = libraries if isinstance(libraries, dict) else {}
    commit = inside(record.provenance, "git.commit")
    values = {
        "about": f"A recipe for {cell.workload}, with the accuracy that {cell.framework} reaches in it.",
        "version": __version__,
        "study": made.context.study,
        "measured": f"{100 * accuracy.median:.4g} % of the test set, {ends}, {count(accuracy.count, 'run')}",
        "conditions": f"{cell.framework} on {cell.device}, {count(cell.threads, 'thread')}, fp32; the target was "
        f"{parameters.get('quality_target')}; commit {commit}",
        "versions": "Versions: " + ", ".join(f"{name} {version}" for name, version in sorted(versions.items())),
    }
    plain = {name: _comment(value) for name, value in values.items()}
    numbers = {
        "shape": repr(shape),
        "epochs": repr(int(parameters["epochs"])),
        "batch": repr(int(group.global_batch or parameters["batch"])),
        "device": "GPUDevice" if cell.device == "cuda" else "CPUDevice",
        "optimiser": optimiser,
        "rule": ", ".join(f"{name}={value!r}" for name, value in rule.items() if isinstance(value, (bool, int, float))),
        # Rounded down: what was measured is enough.
        "accepted": repr(float(np.floor(1e4 * accuracy.low) / 100)),
    }
    template = (TEMPLATES / "deep500.py.txt").read_text(encoding="utf-8")
    return Template(template).substitute(plain | numbers)


def _comment(text: str) -> str:
    """Return text for a docstring: nothing in it ends that, or the line."""
    return clean(text).replace("\\", "/").replace('"', "'").replace("\n", " ")
