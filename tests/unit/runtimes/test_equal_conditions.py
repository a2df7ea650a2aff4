"""All runtimes of ONNX Runtime get the same conditions, and it says so itself."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from checkouts import environment_python
from onnx_cells import SERVING, infer, metrics
from transect.domain.cell import Cell
from transect.runtimes import RUNTIMES
from transect.runtimes.infer import options_seen
from transect.runtimes.options import session_options

# Those that carry ONNX Runtime in another build: WebAssembly has other kernels and no thread pool
# of its own; an execution provider of another maker has its own package.
OTHER_BUILDS = ("browser", "python-openvino")
SAME = [name for name in SERVING if name not in OTHER_BUILDS]
# Two threads, and nothing at its default: what a language does not hand on shows.
UNUSUAL: dict[str, Any] = {
    "graph_optimization_level": "extended",
    "enable_cpu_mem_arena": False,
    "enable_mem_pattern": False,
    "session.intra_op.allow_spinning": "0",
    "session.inter_op.allow_spinning": "0",
}


@pytest.fixture(scope="module")
def folder(digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(digits, tmp_path_factory.mktemp("conditions") / "digits"))


@pytest.fixture(scope="module")
def equal(folder: Path) -> Callable[[str], dict[str, Any]]:
    """Return what runs a cell under equal conditions, once."""
    given = session_options("equal", 1, "cpu", {})
    return functools.cache(lambda name: ran(name, folder, "equal", options=given))


def ran(name: str, folder: Path, out: str, **more: Any) -> dict[str, Any]:
    """Run a cell in the runtime's own environment; skip where that cannot be."""
    runtime = RUNTIMES.get(name)
    axes = {"workload": "digits-cnn", "runtime": name, "provider": "cpu", "batch": 16}
    if reason := runtime.supports(Cell.of(stage="infer", **axes)):  # type: ignore[arg-type]
        pytest.skip(reason)
    python = environment_python(runtime.environment, folder / f"env-{name}")
    code, result, stderr = infer(python, folder, "torchscript", out=f"{out}-{name}", runtime=name, **more)
    assert (code, result["status"]) == (0, "ok"), (result, stderr)
    return dict(result)


@pytest.mark.parametrize("name", SAME)
def test_equal_options_arrive(name: str, equal: Callable[[str], dict[str, Any]]) -> None:
    given = session_options("equal", 1, "cpu", {})
    result = equal(name)
    details = result["details"]
    assert details["options_not_set"] == []
    assert details["session_options"] == given
    seen = details["session_options_seen"]
    assert {key: seen[key] for key in given} == given
    assert details["runtime_version"] == "1.29.0"
    assert details["input_residency"] == "host"
    assert details["cpus_allowed"]
    values = metrics(result)
    assert values["first_result_time"] > values["session_time"] > 0
    assert values["peak_memory"] > 1e6
    assert values["program_bytes"] > 1e6


@pytest.mark.parametrize("name", SAME)
def test_unusual_options_arrive(name: str, folder: Path) -> None:
    given = session_options("equal", 2, "cpu", {}) | UNUSUAL
    details = ran(name, folder, "unusual", options=given, threads=2)["details"]
    seen = details["session_options_seen"]
    assert {key: seen[key] for key in given} == given
    assert details["options_not_set"] == []


def test_all_run_the_same_kernels(equal: Callable[[str], dict[str, Any]]) -> None:
    kernels = {}
    for name in SAME:
        try:
            kernels[name] = equal(name)["details"]["kernels"]
        except pytest.skip.Exception:
            continue
    assert len(kernels) >= 2
    assert all(found["count"] > 3 for found in kernels.values())
    assert len({found["digest"] for found in kernels.values()}) == 1, kernels


LINE = (
    "2026 [I:onnxruntime:, x.cc:1 TraceSessionOptions] Session Options {  execution_mode:1 "
    'execution_order:DEFAULT optimized_model_filepath:"" enable_mem_pattern:0 '
    "enable_cpu_mem_arena:1 graph_optimization_level:2 "
    "intra_op_param:OrtThreadPoolParams { thread_pool_size: 3 affinity_str: 1;2 "
    "set_denormal_as_zero: 0 } inter_op_param:OrtThreadPoolParams { thread_pool_size: 1 "
    "affinity_str:  set_denormal_as_zero: 0 } config_options: {   session.a.b: 0 } }"
)


def test_options_are_read_from_the_last_session_of_a_log() -> None:
    seen = options_seen(f"first\n{LINE.replace('size: 3', 'size: 9')}\nmore\n{LINE}\n")
    assert seen == {
        "execution_mode": "parallel",
        "graph_optimization_level": "extended",
        "enable_cpu_mem_arena": True,
        "enable_mem_pattern": False,
        "intra_op_num_threads": 3,
        "intra_op_affinity": "1;2",
        "inter_op_num_threads": 1,
        "inter_op_affinity": "",
        "session.a.b": "0",
    }
    assert options_seen("nothing of that kind") == {}
