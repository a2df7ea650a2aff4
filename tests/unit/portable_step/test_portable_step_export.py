"""What `export_step` refuses, naming module, operator and line; and what its graphs hold."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from checkouts import ROOT, environment_python
from warm import run_command

pytestmark = pytest.mark.env
SCRIPT = Path(__file__).with_name("portable_step_faults.py")
# Words of the error; {line} stands for the place of the lambda in the script.
ERRORS = {
    "no_derivative": ["derivative for 'zeta'"],
    "cut_gradient": ["0.weight", "no gradient", "argmax"],
    "branch_on_values": ["1.0 (Body)", "{line}", "the values of a tensor"],
    "fixed_batch": ["1.0 (Body)", "{line}", "Mod(3*batch, 8)"],
    "branch_on_batch": ["1.0 (Body)", "{line}", "batch > 4"],
    "own_random_numbers": ["randn_like", "random numbers"],
    "dropout_in_evaluation": ["1.0 (Body)", "{line}", "evaluation mode"],
    "vector_loss": ["loss", "scalar"],
    "evaluation_mode": ["module.train()"],
    "taken_name": ["lr: two of"],
    "unknown_metric": ["'f1'", "accuracy"],
    "brain_floats": ["bfloat16", "expected one of float16"],
    "all_frozen": ["no parameter requires a gradient"],
    "other_optimiser": ["Adadelta", "torch.optim", "AdamW"],
    "dampening": ["dampening=0.5"],
    "parameter_missing": ["lacks the parameter model.0.bias"],
    "steps_differ": ["model.0.weight was updated 1 times, model.0.bias 0 times"],
    "other_while_traced": ["step.onnx", "something else than PyTorch", "loss is", "expected"],
    "gradient_beside_an_overflow": ["step.onnx", "something else than PyTorch", "weight", "expected"],
    "gradient_of_half_floats": ["step.onnx", "something else than PyTorch", "weight", "expected"],
    "small_gradient": ["step.onnx", "something else than PyTorch", "weight", "expected"],
    "output_that_is_no_tensor": ["outputs", "None", "expected tensors"],
    "kept_for_later": ["1.0 (Keeping): calls changes", "register_buffer"],
    "torchscript": ["1.0", "TorchScript"],
    "dotted_name": ["'value.3'", "without a dot"],
    "kept_in_a_list": ["1.0 (Keeping): numbers changes", "register_buffer"],
    "kept_in_the_loss": ["loss: calls changes", "register_buffer"],
    "own_generator": ["the second time", "generator of its own"],
    "autocast": ["bfloat16", "autocast"],
    "pythons_random_numbers": ["Python: random changes", "dropout"],
    "numpys_random_numbers": ["numpy: random changes", "dropout"],
    "kept_tensor_in_rows_that_differ": ["the second time", "register_buffer"],
    "kept_tensor": ["the second time", "register_buffer"],
    "swapped_buffer": ["1.0.seen", "`.data`"],
    "written_parameter": ["0.weight", "max_norm"],
    "parameters_in_a_list": ["something else than PyTorch"],
    "gradient_hook": ["0.weight", "hook"],
    "step_hook": ["optimiser", "hook"],
    "other_folder": ["holds something else"],
}
GRAPHS = ("step", "accumulate", "eval", "infer")
STEP = """
import torch
from transect.portable_step import Step

def make():
    module = torch.nn.Linear(4, 3)
    optimiser = torch.optim.SGD(module.parameters(), lr=0.1)
    example = (torch.zeros(4, 4), torch.zeros(4, dtype=torch.int64))
    return Step(module=module, loss=torch.nn.functional.cross_entropy, optimiser=optimiser, example=example)

def number():
    return 3
"""


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    # What the driver's Python loads, and whom it starts, is looked at.
    fresh = arguments[0] == sys.executable
    return run_command(arguments, cwd=cwd, env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, fresh=fresh)


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return environment_python("torch", tmp_path_factory.mktemp("environment"))


@pytest.fixture(scope="module")
def facts(python, tmp_path_factory):
    done = run(python, str(SCRIPT), str(tmp_path_factory.mktemp("faults")))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_error_is_looked_at(facts):
    assert set(facts["errors"]) == set(ERRORS)


@pytest.mark.parametrize("name", ERRORS)
def test_what_cannot_be_exported_is_one_error_that_says_where(facts, name):
    error = facts["errors"][name]
    lines = SCRIPT.read_text().splitlines()
    place = next((i for i, line in enumerate(lines, 1) if line.startswith(f'    "{name}": lambda: ')), 0)
    for words in ERRORS[name]:
        assert words.replace("{line}", f"{SCRIPT}:{place}") in error
    assert "\n" not in error and len(error) < 600


def test_nothing_is_left_beside_what_was_written(facts):
    assert facts["left"] == ["jumps", "other", "step", "unchecked", "vague", "written"]


def test_the_manifest_says_what_was_compared_with_pytorch(facts):
    with_runtime, without, vague, jumps, written = facts["checks"]
    assert with_runtime["runtime"].startswith("onnxruntime ")
    assert (with_runtime["lengths"], with_runtime["unchecked"]) == ({"batch": [8, 9]}, None)
    assert (without["runtime"], without["lengths"]) == (None, {})
    assert "onnxruntime cannot be imported" in without["unchecked"]
    # PyTorch's own rounding would hide an error: it is no comparison.
    assert "rounding alone" in vague["unchecked"]
    # So does a choice that hangs on 256 roundings, of a small gradient too.
    assert "by 0.01 of its size" in jumps["unchecked"]
    # What is compared is the module's outputs, not what a loss makes of them.
    assert written["unchecked"] is None
    assert written["names"] == ["loss", "one", "output.0", "output.1", "output.2"]


@pytest.mark.parametrize("graph", GRAPHS)
def test_graphs_hold_standard_operators_and_nothing_of_this_machine(facts, graph):
    entry = facts["graphs"][graph]
    assert entry["domains"] == [""] and entry["functions"] == 0 and entry["random"] == []
    assert entry["notes"] == 0 and entry["paths"] == []
    assert entry["constants_bytes"] < 2000


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_manifest_names_what_goes_in_and_out(facts, graph):
    entry = facts["graphs"][graph]
    assert entry["inputs"] == entry["declared_inputs"] and entry["outputs"] == entry["declared_outputs"]
    assert entry["lengths"] == (["batch"] if graph == "infer" else [])
    used = set(entry["inputs"])
    assert ("seed" in used) == (graph in ("step", "accumulate"))
    assert {"lr", "clip", "mu"} <= used if graph == "step" else not used & {"lr", "clip", "mu"}
    assert "accumulated.0.weight" not in used or graph in ("step", "accumulate")


def test_the_same_module_is_the_same_bytes(facts, python, tmp_path):
    assert facts["graphs"] == facts["again"]
    assert facts["graphs"]["step"]["manifest"] == facts["graphs"]["step"]["sha256"]
    done = run(python, str(SCRIPT), str(tmp_path), "graphs")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == facts["graphs"]


def test_the_command_writes_a_step(tmp_path, python):
    """The driver's Python has no torch: the command takes the environment's."""
    (tmp_path / "train.py").write_text(STEP)
    done = run(sys.executable, "-m", "transect", "export-step", "train:make", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["eval.onnx", "infer.onnx", "manifest.json", "state.safetensors", "step.onnx"]
    facts = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert facts["step_graph"] in done.stdout
    before = (tmp_path / "out" / "step.onnx").read_bytes()
    done = run(python, "-m", "transect.portable_step", "train.py:make", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "step.onnx").read_bytes() == before


@pytest.mark.parametrize(
    ("reference", "out", "words"),
    [
        ("train.py:nothing", "new", "no function nothing"),
        ("nowhere.py:make", "new", "no such file"),
        ("train", "new", "expected MODULE:FACTORY"),
        ("train.py:make", "full", "something else"),
    ],
)
def test_the_command_says_what_it_cannot_take(tmp_path, python, reference, out, words):
    (tmp_path / "train.py").write_text(STEP)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "diary.txt").write_text("mine")
    done = run(python, "-m", "transect.portable_step", reference, "--out", out, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "new").exists()


def test_the_package_is_imported_without_torch_onnx_and_pydantic(tmp_path):
    for name in ("torch", "onnx", "onnxscript", "pydantic"):
        (tmp_path / f"{name}.py").write_text(f"raise ImportError({name!r})")
    code = "import sys; sys.path.insert(0, sys.argv[1]); import transect.portable_step"
    done = run(sys.executable, "-c", code, str(tmp_path))
    assert done.returncode == 0, done.stderr
