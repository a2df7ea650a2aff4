"""Trainers in Go follow the float64 reference: every layer, rule, loss and precision, alone and by MPI."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from all_layers import WORKLOAD
from program_cells import program_cell
from rank_runs import Training, arrays

from checkouts import ROOT

SOURCES = ROOT / "src" / "trainers"
PROGRAMS = {"go": "go_programs", "go-openblas": "go_programs", "go-gorgonia": "gorgonia_programs"}
PROGRAMS["go+numpy"] = "go_numpy_programs"
LIBRARIES = {"go": ("blas", "gonum v0.17"), "go-openblas": ("blas", "OpenBLAS")}
LIBRARIES |= {"go-gorgonia": ("gorgonia.org/gorgonia", "v0.9.18")}
IRIS = {"epochs": 2, "learning_rate": 0.02, "momentum": 0.0}
# Of trainings: the workload, its rule and what its replicas are cut into.
TRAININGS: dict[str, tuple[str, dict[str, Any]]] = {
    "layers": ("all-layers", {"batch": 30, "epochs": 1, "momentum": 0.9, "weight_decay": 1e-3}),
    "layers, mse": ("all-layers", {"batch": 30, "epochs": 1, "momentum": 0.9, "loss": "mse"}),
    "resnet": ("small-resnet", {"batch": 30, "epochs": 1, "momentum": 0.9, "optimiser": "nesterov"}),
    "layer norms": ("iris-mlp-normalised", {"batch": 16, "epochs": 3, "loss": "mse", "learning_rate": 0.05}),
    "branches": ("branches", {"batch": 30, "epochs": 1, "momentum": 0.9}),
    "cnn": ("digits-cnn", {"batch": 64, "epochs": 1, "optimiser": "adamw", "learning_rate": 0.01}),
    "mse": ("iris-mlp", {"batch": 16, "epochs": 3, "loss": "mse", "optimiser": "nesterov", "momentum": 0.8}),
    "adamw": ("iris-mlp-ce", {"batch": 16, "epochs": 3, "optimiser": "adamw", "weight_decay": 0.1}),
    "images": ("small-images", {"batch": 8, "epochs": 2, "dataset_options": {"generate": 8}}),
    "iris": ("iris-mlp-ce", {"batch": 12, **IRIS}),
}


@pytest.fixture(scope="module")
def trained(base_python, tmp_path_factory) -> Any:
    """Return a training, and its reference for these axes."""
    folder = tmp_path_factory.mktemp("go")

    @cache
    def prepared(name: str) -> Training:
        workload, rule = TRAININGS[name]
        made = Training(python=base_python, folder=folder / name, workload=workload, rule=rule, plugins=WORKLOAD)
        made.prepare()
        return made

    @cache
    def reference(name: str, **axes: Any) -> Path:
        return prepared(name).reference(precisions=("fp32", "fp64"), repeat=0, **axes)

    return lambda name, **axes: (prepared(name), reference(name, **axes))


class Case(NamedTuple):
    """A cell; `options` are the strategy's."""

    framework: str
    training: str
    precision: str = "fp64"
    strategy: str = "single"
    ranks: int = 1
    options: dict[str, Any] = {}  # noqa: RUF012
    reduce: str = "mean"
    input: str = "stored"


ASYNC = {"staleness": 0}
COMING = ASYNC | {"workers": "1-3-2"}
OVERLAP = {"bucket_bytes": 0, "progress": "test", "reduce": "all", "wait": "spin"}
CASES = [
    *(Case(framework, "layers", precision) for framework in ("go", "go-openblas") for precision in ("fp32", "fp64")),
    *(Case("go", name) for name in ("mse", "adamw", "images", "branches")),
    Case("go", "images", input="synthetic"),
    Case("go", "layer norms"),
    Case("go-openblas", "layer norms", "fp32"),
    *(Case("go-gorgonia", name) for name in ("layers, mse", "resnet", "cnn")),
    *(Case("go-gorgonia", name, "fp32") for name in ("layers, mse", "cnn")),
    Case("go-gorgonia", "cnn", strategy="mpi-allreduce", ranks=2),
    Case("go-gorgonia", "cnn", strategy="mpi-overlap", ranks=2, options=OVERLAP | {"wait": "sleep"}),
    Case("go", "iris", strategy="mpi-allreduce", ranks=3),
    Case("go-openblas", "iris", strategy="mpi-allreduce", ranks=3, reduce="sum"),
    Case("go", "iris", "fp32", "mpi-allreduce", 3),
    Case("go", "iris", "fp32", "mpi-sendrecv", 3, reduce="sum"),
    Case("go", "iris", strategy="published-allreduce", ranks=3, reduce="sum"),
    Case("go", "iris", strategy="published-sendrecv", ranks=4, reduce="sum"),
    Case("go", "iris", strategy="async", ranks=4, options=ASYNC),
    Case("go", "iris", strategy="async", ranks=4, options=COMING),
    # Messages of single layers, and of two together; who makes them go on; and how a rank waits.
    Case("go", "iris", strategy="mpi-overlap", ranks=3, options=OVERLAP),
    Case(
        "go", "iris", "fp64", "mpi-overlap", 3, OVERLAP | {"bucket_bytes": 2000, "progress": "thread", "wait": "sleep"}
    ),
    Case("go", "iris", "fp64", "mpi-overlap", 3, OVERLAP | {"bucket_bytes": 10**9, "progress": "none"}),
    # Ranks in two languages.
    Case("go+numpy", "iris", strategy="mpi-allreduce", ranks=3),
    Case("go+numpy", "iris", "fp32", "mpi-sendrecv", 3),
    Case("go+numpy", "iris", strategy="published-sendrecv", ranks=4, reduce="sum"),
    Case("go+numpy", "iris", strategy="async", ranks=4, options=ASYNC),
    Case("go+numpy", "iris", strategy="async", ranks=4, options=COMING),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(map(str, case[:4])))
def test_ranks_in_go_follow_the_reference(trained, request, case):
    servers = int(case.strategy in ("published-sendrecv", "async"))
    replicas, alone = case.ranks - servers, case.strategy == "single"
    cut = {"reduce": "sum", "shards": replicas} if case.reduce == "sum" else {}
    if case.input != "stored":
        cut["input"] = case.input
    training, reference = trained(case.training, **cut)
    result = program_cell(
        training,
        reference,
        programs=request.getfixturevalue(PROGRAMS[case.framework]),
        framework=case.framework,
        batch=training.rule["batch"],
        precision=case.precision,
        strategy=case.strategy,
        ranks_per_node=case.ranks,
        options=tuple(sorted(case.options.items())),
        reduce=case.reduce,
        input=case.input,
        threads=2 if alone else 1,
        repeat=0,
    )
    assert (result["status"], result["message"]) == ("ok", ""), result
    metrics, details = result["metrics"], result["details"]
    assert 0 <= metrics["equality_ratio"] <= 1 and metrics["weights_equality_ratio"] <= 1
    # It goes on from the reference's states, and their check can tell.
    assert details["restarts_not_checkable"] is None and 0 <= metrics["restart_ratio"] <= 1
    assert details["layout"]["servers"] == servers
    flag = {"factor": replicas, "reason": f"sum without a mean: effective rate x {replicas}"}
    assert details.get("effective_rate") == (flag if case.reduce == "sum" else None)
    if case.framework == "go+numpy":
        assert {"go", "numpy", "mpi4py", "mpi"} <= set(result["libraries"])
        assert (Path(result["folder"]) / "output.log").read_text().count("begins to train") == case.ranks
    else:
        name, version = LIBRARIES[case.framework]
        assert version in result["libraries"][name]
    if alone and case.precision == "fp64":
        ours, theirs = (arrays(Path(folder) / "weights.npz") for folder in (result["folder"], reference))
        assert max(float(np.abs(ours[name] - theirs[name]).max()) for name in theirs) < 1e-12
    if alone and case.framework == "go":
        input_times = details["ranks"][0]["input"]
        assert metrics["input_overlap"] == pytest.approx(input_times["hidden_s"] / input_times["preparing_s"])
    # What was drawn for a synthetic twin does not stay, and nothing was there to be tested on.
    assert not [name for name in result["files"] if name.startswith("synthetic")]
    assert ("accuracy" in metrics) == (case.input == "stored")
    if case.strategy == "mpi-overlap":
        assert details["ranks"][0]["messages"] == {0: 3, 2000: 2, 10**9: 1}[case.options["bucket_bytes"]]
        # Who never looks cannot say how long messages were under way.
        assert ("communication_total_time" in metrics) == (case.options["progress"] != "none")


@pytest.mark.parametrize(
    ("framework", "bound", "workers_there"),
    [
        ("go", 2, "all"),
        ("go", "unbounded", "all"),
        ("go+numpy", 2, "all"),
        ("go", "unbounded", "1-3-2"),
        ("go+numpy", 2, "1-3-2"),
    ],
)
def test_a_server_in_go_loses_no_gradient_and_keeps_its_bound(trained, request, framework, bound, workers_there):
    training, reference = trained("iris")
    axes = {"framework": framework, "batch": 12, "precision": "fp64", "repeat": 0, "ranks_per_node": 4}
    programs = request.getfixturevalue(PROGRAMS[framework])
    axes |= {"strategy": "async", "options": (("staleness", bound), ("workers", workers_there))}
    result = program_cell(training, reference, programs=programs, **axes)
    assert (result["status"], result["message"]) == ("ok", ""), result
    server, *workers = result["details"]["ranks"]
    assert [server["role"], *(worker["role"] for worker in workers)] == ["server", *["worker"] * 3]
    of_each = [18] * 3 if workers_there == "all" else [36, 12, 6]
    assert [worker["gradients_sent"] for worker in workers] == of_each and server["gradients_applied"] == 54
    # All end with the server's weights, whatever language they are held in.
    assert len({rank["weights_crc32"] for rank in (server, *workers)}) == 1
    samples = arrays(Path(result["folder"]) / "samples.npz")
    assert np.bincount(samples["applied_worker"].astype(int)).tolist() == [0, *of_each]
    assert bound == "unbounded" or samples["lead"].max() <= bound


EDIT = "p = job.folder / 'trainer-plan.json'; plan = json.loads(p.read_text()); {}; p.write_text(json.dumps(plan))"
ALONE = {"strategy": "single", "repeat": 0, "framework": "go"}


@pytest.mark.parametrize(
    ("edit", "cause", "words"),
    [
        ("plan['format'] = 2", "bad-input", "reads format 1 of the plan, not 2"),
        ("plan['order']['offset'] = 10**9", "bad-input", "hold no int64"),
        ("plan['restarts'][0]['weights'].popitem()", "crash", "restart at step"),
    ],
)
def test_a_plan_that_cannot_be_followed_is_named_in_the_record(trained, go_programs, edit, cause, words):
    axes = {"programs": go_programs, "precision": "fp32", "batch": 30, "before": EDIT.format(edit)}
    result = program_cell(*trained("layers"), **axes, **ALONE)
    assert (result["status"], result["cause"]) == ("failed", cause), result["message"]
    assert words in result["message"]


def test_a_rank_without_memory_says_so(base_python, go_programs, tmp_path):
    """Go's runtime cannot even begin, or a layer's output does not fit in."""
    rule = {"batch": 1300, "epochs": 1}
    training = Training(python=base_python, folder=tmp_path / "wide", workload="wide", plugins=WORKLOAD, rule=rule)
    training.prepare()
    for megabytes, words in ((300, "exit code 2: fatal error: "), (1000, "no memory for ")):
        wrap = ("prlimit", f"--as={megabytes * 10**6}")
        result = program_cell(training, None, programs=go_programs, precision="fp64", batch=1300, wrap=wrap, **ALONE)
        assert (result["status"], result["cause"]) == ("failed", "out-of-memory"), result["message"]
        assert words in result["message"]


@pytest.mark.parametrize("tags", ["", "openblas", "gorgonia"])
def test_the_packages_in_go_hold_their_own_tests(go_programs, tags):
    """Among them gradients beside finite differences, that a step allocates nothing, and Gorgonia's faults."""
    path = f"{os.environ['PATH']}{os.pathsep}{go_programs}"
    go = shutil.which("go", path=path)
    assert go is not None
    variables = os.environ | {"PATH": path, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "CGO_ENABLED": "0"}
    folder, packages = SOURCES / "go", ["./..."]
    if tags == "openblas":
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
    if tags == "gorgonia":
        folder, variables["GOWORK"] = SOURCES / "go-gorgonia", "off"
    done = subprocess.run(
        [go, "test", "-v", "-tags", tags, *packages],
        cwd=folder,
        env=variables,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, done.stdout
    passed = {line.split()[2] for line in done.stdout.splitlines() if line.startswith("--- PASS")}
    assert tags != "gorgonia" or {"TestGradientsAgreeWithFiniteDifferences", "TestSumOverTwoAxesIsWrong"} <= passed
