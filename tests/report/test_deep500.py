"""Recipes for Deep500: they compile, say what was measured, name only what upstream has, and refuse in a sentence."""

from __future__ import annotations

import ast
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from factories import make_record, train_cell, write_records
from transect.domain.axes.export import ExportCell
from transect.domain.cell import Cell
from transect.report.engine.formats import REPORT_FORMATS, Contents
from transect.report.engine.report import make_all

# What a recipe may name, from https://github.com/deep500/deep500: deep500/__init__.py at commit 494a16b (its names),
# deep500/utils/onnx_interop/parser.py (parse_model), deep500/lv2/events as recipes/cifar10_resnet44.py uses them.
D5 = {
    "parser",
    "NumpyDataset",
    "ShuffleSampler",
    "TestAccuracy",
    "GPUDevice",
    "CPUDevice",
    "training_events",
    "run_recipe",
}
# deep500/utils/onnx_interop/losses.py at c5f018d.
LOSS = "from deep500.utils.onnx_interop.losses import SoftmaxCrossEntropy"
# deep500/frameworks/pytorch/__init__.py at 2c4b55a, and pytorch_optimizers.py at b76bf40 with the arguments of each.
FRAMEWORK = {"from_model", "GradientDescent", "MomentumOptimizer", "AdamOptimizer"}
ARGUMENTS = {
    "GradientDescent": {"learning_rate", "weight_decay"},
    "MomentumOptimizer": {"learning_rate", "momentum", "dampening", "weight_decay", "nesterov"},
    "AdamOptimizer": {"learning_rate", "beta1", "beta2", "epsilon", "weight_decay"},
}
# The parts that run_recipe of deep500/recipe.py at 58cf7d0 reads.
FIXED, MUTABLE = {"model", "dataset", "epochs"}, {
    "batch_size", "executor", "executor_kwargs", "train_sampler", "optimizer", "optimizer_kwargs", "events"
}  # fmt: skip
RULE = {
    "batch": 16, "epochs": 3, "learning_rate": 0.1, "optimiser": "sgd", "momentum": 0.9, "weight_decay": 1e-4,
    "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "loss": "cross-entropy", "schedule": {"name": "constant", "warmup_steps": 0},
    "accumulation": 1, "clip_norm": None, "ema": None, "label_smoothing": 0.0, "decay": "all",
}  # fmt: skip
OPERATORS = {"Flatten": 1, "Gemm": 2, "Relu": 1}


def write(
    folder: Path, operators: dict[str, int] = OPERATORS, model: bytes = b"\x0a\x080.weight", **rule: Any
) -> Contents:
    """Write three runs of a training, its data and its export; return the recipes."""
    axes = {"framework": "torch", **rule.pop("cell", {})}
    for repeat, accuracy in enumerate((0.951, 0.962, 0.973)):
        record = make_record(train_cell(repeat=repeat, **axes), {"accuracy": accuracy}, parameters=RULE | rule)
        write_records(folder, record)
    data = make_record(Cell.of(stage="dataset", workload="iris-mlp"))
    export = make_record(
        ExportCell(workload="iris-mlp", exporter="torchscript", framework="torch"),
        details={"operators_by_type": operators},
    )
    write_records(folder, data, export)
    (folder / "export" / export.cell_id / "model.onnx").write_bytes(model)
    place = folder / "dataset" / data.cell_id
    np.savez(
        place / "data.npz",
        x_train=np.zeros((6, 4)),
        y_train=np.arange(6) % 3,
        x_test=np.zeros((3, 4)),
        y_test=np.arange(3),
    )
    np.savez(place / "start-0.npz", **{"order": np.zeros((3, 6)), "0.weight": np.ones((3, 4))})
    return REPORT_FORMATS.get("deep500").contents(make_all(folder, title="x", only=()))


def recipe(contents: Contents) -> ast.Module:
    (text,) = (data for name, data in contents.files.items() if name.endswith("/recipe.py"))
    return ast.parse(compile(text, "recipe.py", "exec", ast.PyCF_ONLY_AST))


def named(tree: ast.Module, alias: str) -> set[str]:
    """Return the attributes of a module that a recipe uses."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name))
    return {node.attr for node in nodes if node.value.id == alias}


def part(tree: ast.Module, name: str) -> Any:
    """Return what a name of the module is set to."""
    return next(
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
    )


@pytest.mark.parametrize(
    ("rule", "optimiser"),
    [
        ({}, "MomentumOptimizer"),
        ({"optimiser": "nesterov"}, "MomentumOptimizer"),
        ({"momentum": 0.0}, "GradientDescent"),
        ({"optimiser": "nesterov", "momentum": 0.0}, "GradientDescent"),
        ({"optimiser": "adam"}, "AdamOptimizer"),
    ],
)
def test_a_recipe_names_only_what_upstream_has(tmp_path: Path, rule: dict[str, Any], optimiser: str) -> None:
    tree = recipe(write(tmp_path, **rule))
    assert named(tree, "d5") <= D5 and named(tree, "d5fw") <= FRAMEWORK
    imported = {
        one for one in ast.walk(tree) if isinstance(one, ast.ImportFrom) and str(one.module).startswith("deep500")
    }
    assert [ast.unparse(one) for one in imported] == [LOSS]
    fixed, mutable = ({key.value: value for key, value in zip(one.keys, one.values, strict=True)} for one in
                      (part(tree, "FIXED"), part(tree, "MUTABLE")))  # fmt: skip
    assert fixed.keys() == FIXED and mutable.keys() == MUTABLE
    assert mutable["optimizer"].attr == optimiser
    given = {keyword.arg: ast.literal_eval(keyword.value) for keyword in mutable["optimizer_kwargs"].keywords}
    assert given.keys() <= ARGUMENTS[optimiser] and given["learning_rate"] == 0.1 and given["weight_decay"] == 1e-4
    assert given.get("nesterov", False) is (rule == {"optimiser": "nesterov"})


def test_a_recipe_holds_the_data_the_start_and_what_was_measured(tmp_path: Path) -> None:
    contents = write(tmp_path)
    tree, (name,) = recipe(contents), {path.partition("/")[0] for path in contents.files}
    assert sorted(contents.files) == [f"{name}/{file}" for file in ("data.npz", "model.onnx", "recipe.py", "start.npz")]
    assert not contents.left_out
    # 95.1 % is the lowest of three runs, which have no interval yet.
    ((metric,),) = [[ast.unparse(one) for one in part(tree, "METRICS").elts]]
    assert metric == "(d5.TestAccuracy(), 95.1)"
    said = ast.get_docstring(tree) or ""
    assert "96.2 % of the test set, range 95.1 to 97.3 %, 3 runs" in said and "numpy" in said
    (shape,) = [ast.literal_eval(node.value) for node in ast.walk(tree) if isinstance(node, ast.Assign)
                and ast.unparse(node.targets[0]) == "shape" and isinstance(node.value, ast.Tuple)]  # fmt: skip
    with np.load(io.BytesIO(contents.files[f"{name}/data.npz"])) as data:
        assert shape == (3, *data["x_train"].shape[1:])


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"cell": {"strategy": "mpi-allreduce", "ranks_per_node": 2}}, "mpi-allreduce on 2 ranks cannot be said"),
        ({"cell": {"precision": "fp64"}}, "trains in fp32 from arrays: fp64"),
        ({"cell": {"input": "synthetic"}}, "input synthetic"),
        ({"schedule": {"name": "cosine", "warmup_steps": 0}}, "constant here: schedule"),
        ({"schedule": {"name": "constant", "warmup_steps": 5}}, "constant here: schedule"),
        ({"clip_norm": 1.0}, "no word for clip_norm 1.0"),
        ({"loss": "mse"}, "no word for loss mse"),
        ({"optimiser": "lamb"}, "no optimiser as lamb is here"),
        ({"operators": {"Gemm": 1, "LayerNormalization": 2}}, "LayerNormalization of iris-mlp.torch.torchscript"),
        ({"model": b"nothing"}, "0.weight are not in it"),
    ],
)
def test_what_a_recipe_cannot_say_is_refused_in_a_sentence(
    tmp_path: Path, given: dict[str, Any], sentence: str
) -> None:
    contents = write(tmp_path, **given)
    assert not contents.files and len(contents.left_out) == 1 and sentence in contents.left_out[0]
