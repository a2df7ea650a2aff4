"""The trainers in Go follow the float64 reference: every layer, rule, loss and precision, restarts too."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from all_layers import ALONE, WORKLOAD, trained
from program_cells import program_cell
from rank_runs import Training, arrays

from checkouts import ROOT

SOURCES = ROOT / "src" / "trainers" / "go"


def furthest(result: dict[str, Any], reference: Path) -> float:
    """Return the largest difference of any weight from the reference's."""
    own, theirs = (arrays(Path(folder) / "weights.npz") for folder in (result["folder"], reference))
    return max(float(np.abs(own[name] - theirs[name]).max()) for name in theirs)


@pytest.fixture(scope="module")
def layers(base_python, tmp_path_factory) -> tuple[Training, Path]:
    folder = tmp_path_factory.mktemp("go") / "layers"
    return trained(folder, base_python, "all-layers", batch=30, epochs=1, momentum=0.9, weight_decay=1e-3)


@pytest.mark.parametrize("framework", ["go", "go-openblas"])
@pytest.mark.parametrize("precision", ["fp32", "fp64"])
def test_every_layer_follows_the_reference(layers, go_programs, framework, precision):
    training, reference = layers
    result = program_cell(
        training,
        reference,
        programs=go_programs,
        framework=framework,
        precision=precision,
        batch=30,
        threads=2,
        **ALONE,
    )
    assert (result["status"], result["message"]) == ("ok", "")
    assert result["metrics"]["equality_ratio"] <= 1
    # It goes on from the reference's states, and their check can tell.
    assert len(result["details"]["restarts"]) == 3
    assert result["details"]["restarts_not_checkable"] is None
    assert 0 < result["metrics"]["restart_ratio"] <= 1
    assert {"go", "blas"} <= set(result["libraries"])
    assert ("OpenBLAS" if framework == "go-openblas" else "gonum v0.17") in result["libraries"]["blas"]
    if precision == "fp64":
        assert furthest(result, reference) < 1e-12
    told = result["details"]["ranks"][0]["input"]
    assert 0 <= told["hidden_s"] <= told["preparing_s"]
    shown = result["metrics"]["input_overlap"]
    assert shown == pytest.approx(told["hidden_s"] / told["preparing_s"])


def test_one_step_of_the_rate_one_shows_the_gradient(layers, go_programs, tmp_path):
    """Without momentum the weights' change is the gradient: numpy's within 1e-12, in float64."""
    training, _ = layers
    rule = {"learning_rate": 1.0, "momentum": 0.0, "weight_decay": 0.0, "reference_steps": 1}
    made = Training(
        python=training.python,
        folder=tmp_path / "one",
        workload="all-layers",
        plugins=WORKLOAD,
        rule={"batch": 1300, "epochs": 1} | rule,
    )
    made.prepare()
    reference = made.reference(precisions=("fp64",), repeat=0)
    result = program_cell(made, reference, programs=go_programs, framework="go", precision="fp64", batch=1300, **ALONE)
    assert (result["status"], result["message"]) == ("ok", "")
    assert furthest(result, reference) < 1e-12


@pytest.mark.parametrize(
    ("workload", "rule"),
    [
        ("iris-mlp", {"loss": "mse", "optimiser": "nesterov", "momentum": 0.8, "batch": 16}),
        ("iris-mlp-ce", {"optimiser": "adamw", "weight_decay": 0.1, "batch": 16}),
    ],
)
def test_rules_and_losses_follow_the_reference(base_python, go_programs, tmp_path, workload, rule):
    training, reference = trained(tmp_path / "rule", base_python, workload, epochs=3, **rule)
    result = program_cell(
        training, reference, programs=go_programs, framework="go", precision="fp64", batch=16, **ALONE
    )
    assert (result["status"], result["message"]) == ("ok", "")
    assert 0 < result["metrics"]["restart_ratio"] <= 1
    assert furthest(result, reference) < 1e-12
    told = json.loads((reference / "result.json").read_text())["metrics"]
    accuracy = {metric["name"]: metric["value"] for metric in told}["accuracy"]
    assert result["metrics"]["accuracy"] == accuracy > 0


@pytest.fixture(scope="module")
def images(base_python, tmp_path_factory) -> tuple[Training, Path]:
    folder = tmp_path_factory.mktemp("go-images") / "images"
    options = {"generate": 8}
    return trained(folder, base_python, "small-images", batch=8, epochs=2, dataset_options=options)


def test_images_as_bytes_are_normalised_as_numpy_does(images, go_programs):
    training, reference = images
    result = program_cell(training, reference, programs=go_programs, framework="go", precision="fp64", batch=8, **ALONE)
    assert (result["status"], result["message"]) == ("ok", "")
    assert furthest(result, reference) < 1e-12


def test_the_synthetic_twin_is_numpys_own(images, go_programs):
    training, _ = images
    axes = {"repeat": 0, "input": "synthetic"}
    reference = training.reference(precisions=("fp32", "fp64"), **axes)
    result = program_cell(
        training, reference, programs=go_programs, framework="go", precision="fp64", batch=8, strategy="single", **axes
    )
    assert (result["status"], result["message"]) == ("ok", "")
    assert furthest(result, reference) < 1e-12
    # What was drawn for it does not stay, and nothing was there to be tested on.
    assert not [name for name in result["files"] if name.startswith("synthetic")]
    assert "accuracy" not in result["metrics"]


EDIT = "p = job.folder / 'trainer-plan.json'; plan = json.loads(p.read_text()); {}; p.write_text(json.dumps(plan))"


@pytest.mark.parametrize(
    ("edit", "cause", "words"),
    [
        ("plan['format'] = 2", "bad-input", "reads format 1 of the plan, not 2"),
        ("plan['data']['x_train']['file'] = '/nowhere/x.npz'", "bad-input", "/nowhere/x.npz"),
        ("del plan['data']['y_test']", "bad-input", "its data has no y_test"),
        ("plan['weights'][0]['shape'] = [3, 3]", "bad-input", "do not fit its layers"),
        ("plan['order']['offset'] = 10**9", "bad-input", "hold no int64"),
        ("plan['data']['y_train']['offset'] -= 5", "bad-input", "a sample has class"),
        ("plan['cell']['threads'] = '2'", "bad-input", "cannot unmarshal"),
        ("plan['restarts'][0]['weights'].popitem()", "crash", "restart at step"),
    ],
)
def test_a_plan_that_cannot_be_followed_is_named_in_the_record(layers, go_programs, edit, cause, words):
    training, reference = layers
    result = program_cell(
        training,
        reference,
        programs=go_programs,
        framework="go",
        precision="fp32",
        batch=30,
        before=EDIT.format(edit),
        **ALONE,
    )
    assert (result["status"], result["cause"]) == ("failed", cause), result["message"]
    assert words in result["message"]


def test_a_rank_without_memory_says_so(base_python, go_programs, tmp_path):
    """Go's runtime cannot even begin, or a layer's output does not fit in."""
    training = Training(
        python=base_python,
        folder=tmp_path / "wide",
        workload="wide",
        plugins=WORKLOAD,
        rule={"batch": 1300, "epochs": 1},
    )
    training.prepare()
    for megabytes, words in ((300, "exit code 2: fatal error: "), (1000, "no memory for ")):
        result = program_cell(
            training,
            None,
            programs=go_programs,
            framework="go",
            precision="fp64",
            batch=1300,
            wrap=("prlimit", f"--as={megabytes * 10**6}"),
            **ALONE,
        )
        assert (result["status"], result["cause"]) == ("failed", "out-of-memory"), result["message"]
        assert words in result["message"]


@pytest.mark.parametrize("tags", ["", "openblas"])
def test_the_packages_in_go_hold_their_own_tests(go_programs, tags):
    """Among them gradients beside finite differences, and that a step allocates nothing."""
    path = f"{os.environ['PATH']}{os.pathsep}{go_programs}"
    go = shutil.which("go", path=path)
    assert go is not None
    variables = os.environ | {"PATH": path, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "CGO_ENABLED": "0"}
    packages = ["./..."]
    if tags:
        where = "import scipy_openblas32 as o; print(o.get_include_dir(), o.get_lib_dir())"
        found = subprocess.run([go_programs / "python", "-c", where], capture_output=True, text=True, check=True)
        include, library = found.stdout.split()
        variables |= {
            "CGO_ENABLED": "1",
            "CGO_CFLAGS": f"-O2 -I{include}",
            "OPENBLAS_NUM_THREADS": "1",
            "CGO_LDFLAGS": f"-L{library} -lscipy_openblas -Wl,-rpath,{library}",
        }
        packages = ["./blas", "./nets"]
    done = subprocess.run(
        [go, "test", "-tags", tags, *packages],
        cwd=SOURCES,
        env=variables,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, done.stdout
    assert "ok  \ttransect-trainer-go/nets" in done.stdout
