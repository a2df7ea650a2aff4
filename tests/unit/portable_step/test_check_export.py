"""`transect check-export`: what is faithful, what is not and where, and what cannot be told."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from checkouts import ROOT, environment_python
from warm import run_command

pytestmark = pytest.mark.env
MODELS = Path(__file__).with_name("check_export_models.py")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    return environment_python("torch", tmp_path_factory.mktemp("environment"))


@pytest.fixture(scope="module")
def folder(python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hold the files that the modules are exported to, beside their source."""
    folder = tmp_path_factory.mktemp("exports")
    shutil.copy(MODELS, folder / "models.py")
    done = run(python, folder, "models.py")
    assert done.returncode == 0, done.stderr
    return folder


def run(python: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_command((python, *arguments), cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT / "src")})


def check(python: str, folder: Path, model: str, factory: str, *more: str) -> subprocess.CompletedProcess[str]:
    arguments = (model, "--against", f"models.py:{factory}", *more)
    return run(python, folder, "-m", "transect.portable_step.check_export", *arguments)


@pytest.mark.parametrize(
    ("model", "factory", "inputs", "runs"),
    [
        ("right.onnx", "right", "", 3),
        ("right.onnx", "step", "", 3),
        ("two.onnx", "two", "", 1),
        ("two.onnx", "two", "two.npz", 1),
        # An example goes by its order, whatever the names.
        ("swapped.onnx", "two", "", 1),
    ],
)
def test_what_is_faithful(python, folder, model, factory, inputs, runs):
    done = check(python, folder, model, factory, "--json", *(("--inputs", inputs) if inputs else ()))
    assert done.returncode == 0, done.stdout + done.stderr
    facts = json.loads(done.stdout)
    assert facts["faithful"] and facts["first_place"] is None
    assert len(facts["runs"]) == runs
    assert [output["deviation"] <= output["tolerance"] for output in facts["outputs"]] == [True, True]


@pytest.mark.parametrize(
    ("model", "factory", "wrong", "place"),
    [
        ("right.onnx", "approximate", {"scores"}, ("bn (BatchNorm2d)", "act (GELU)", "Gelu")),
        ("training.onnx", "right", {"scores", "class"}, ("drop (Dropout)", "", "Dropout")),
        ("rounded.onnx", "right", {"scores"}, ("", "conv (Conv2d)", "")),
    ],
)
def test_what_is_not_and_the_first_place(python, folder, model, factory, wrong, place):
    done = check(python, folder, model, factory, "--json")
    assert done.returncode == 4, done.stdout + done.stderr
    facts = json.loads(done.stdout)
    found = {output["name"]: output for output in facts["outputs"]}
    # Dropout draws: which class is likeliest then is chance.
    assert {"scores"} <= {name for name, output in found.items() if not output["faithful"]} <= wrong
    scores = found["scores"]
    assert scores["deviation"] > scores["tolerance"] > 0
    assert len(scores["at"]) == 2
    first = facts["first_place"]
    assert (first["last"], first["first"]) == place[:2]
    assert " ".join(first["operators"]).startswith(place[2])


def test_a_number_of_rows_that_is_baked_in_shows(python, folder):
    done = check(python, folder, "baked.onnx", "right")
    assert done.returncode == 4
    assert "(on their first row)" in done.stdout or "(on twice their rows)" in done.stdout
    assert "baked.onnx is not faithful to models.py:right in 2 of 2 outputs" in done.stdout


@pytest.mark.parametrize(
    ("model", "factory", "inputs", "said"),
    [
        ("right.onnx", "alone", "", "expected its example inputs too, or --inputs FILE.npz"),
        ("right.onnx", "two", "", "has the inputs x: expected 1, the example has 2"),
        ("two.onnx", "two", "one.npz", "has the inputs a, b: expected these, found a"),
        ("two.onnx", "two", "objects.npz", "expected a file .npz"),
        ("two.onnx", "two", "array.npy", "expected a file .npz"),
        ("two.onnx", "two", "text.npz", "expected a file .npz"),
        ("two.onnx", "two", "nowhere.npz", "No such file"),
        ("text.onnx", "right", "", "ONNX Runtime does not open it"),
        ("nowhere.onnx", "right", "", "ONNX Runtime does not open it"),
        ("right.onnx", "raises", "", "models.py:"),
        ("right.onnx", "nothing", "", "it returned NoneType: expected a module"),
        ("right.onnx", "missing", "", "has no function missing"),
        ("drawn.onnx", "drawn", "", "gives other outputs when it runs again"),
        ("right.onnx", "empty", "", "outputs are empty on these inputs"),
        ("right.onnx", "sparse", "", "an array cannot be made of its example"),
    ],
)
def test_what_cannot_be_used_is_one_error_and_no_verdict(python, folder, model, factory, inputs, said):
    done = check(python, folder, model, factory, *(("--inputs", inputs) if inputs else ()))
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("transect: ") == 1
    assert "Traceback" not in done.stderr


def test_the_command_runs_it_where_torch_is(folder, python):
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "200"}
    asked = ("-m", "transect", "check-export", "right.onnx", "--against", "models.py:approximate")
    # A Python without torch, as the driver's is; `python` says that the environment is built.
    done = subprocess.run((sys.executable, *asked), cwd=folder, env=environment, text=True, capture_output=True)
    assert done.returncode == 4, done.stderr
    assert "right.onnx is not faithful to models.py:approximate in 1 of 2 outputs" in done.stdout
    assert (
        "first place: the file has the output of bn (BatchNorm2d), and not that of act (GELU) after it" in done.stdout
    )


@pytest.mark.parametrize("name", ["-odd.py", "é.py"])
def test_names_are_anybodys_and_a_reader_that_is_gone_changes_no_verdict(folder, python, name):
    (folder / name).write_text((folder / "models.py").read_text())
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "ascii"}
    asked = (sys.executable, "-m", "transect", "check-export", "right.onnx", f"--against={name}:right")
    done = subprocess.run(asked, cwd=folder, env=environment, text=True, capture_output=True)
    assert (done.returncode, "right.onnx is faithful to" in done.stdout) == (0, True), done.stderr
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        done = subprocess.run(asked, cwd=folder, env=environment, text=True, stdout=gone, stderr=subprocess.PIPE)
    assert (done.returncode, "Error" in done.stderr) == (0, False), done.stderr


def test_a_process_that_a_signal_ended_is_no_verdict(folder, python):
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    asked = (sys.executable, "-m", "transect", "check-export", "right.onnx", "--against", "models.py:killed")
    done = subprocess.run(asked, cwd=folder, env=environment, text=True, capture_output=True)
    assert (done.returncode, done.stdout) == (137, "")
    assert "was ended by SIGKILL" in done.stderr
