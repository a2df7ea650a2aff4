"""What the runners in JavaScript are made of: types, libraries, Node.js."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from runner_program import Program, python_of

from checkouts import environment_python
from transect.onnx_models.tensors import write_tensors
from transect.planning.environments import environment_source
from transect.runtimes import RUNTIMES

X = np.arange(28, dtype=np.float32).reshape(7, 4) - 9
HALVES = np.array([[1.5, -0.25], [65504, 6e-8]], np.float16)


@pytest.fixture(scope="module", params=["javascript", "browser"])
def program(request: pytest.FixtureRequest, runner_models: Path) -> Program:
    return Program.of(request.param, runner_models)


@pytest.mark.env
def test_types_hold_strictly(tmp_path: Path) -> None:
    for runtime, projects in {"javascript": ("javascript",), "browser": ("browser", "browser/page")}.items():
        runners = Path(python_of(runtime, tmp_path)).parents[1] / "runners"
        compiler = runners / "node_modules" / "typescript" / "bin" / "tsc"
        path = f"{runners.parent / 'bin'}:{os.environ['PATH']}"
        for project in projects:
            told = subprocess.run(
                ["node", str(compiler), "-p", str(runners / project / "tsconfig.json")],
                env=os.environ | {"PATH": path},
                capture_output=True,
                text=True,
                check=False,
            )
            assert (told.returncode, told.stdout + told.stderr) == (0, ""), project


def test_library_is_the_one_that_runs(program: Program, tmp_path: Path) -> None:
    record = program.latency(tmp_path, "linear", {"x": X}).record
    files = RUNTIMES.get(program.runtime).files(program.python)
    assert all(file.exists() for file in files)
    assert Path(record["library_file"]) == files[-1].resolve()
    if program.runtime == "javascript":
        assert "onnxruntime/capi/libonnxruntime.so.1.29.0" in record["library_file"]
        assert record["language_version"].startswith("Node.js v")
    else:
        assert record["library_file"].endswith("ort-wasm-simd-threaded.wasm")
        assert record["language_version"].startswith("Chromium ")


def test_node_comes_from_a_wheel_where_the_machine_has_none(runner_models: Path, tmp_path: Path) -> None:
    # All programs of this machine but these.
    programs, folder = tmp_path / "bin", tmp_path / "environment"
    programs.mkdir()
    for path in (file for place in os.environ["PATH"].split(":") for file in Path(place).glob("*")):
        link = programs / path.name
        if path.name not in ("node", "nodejs", "npm", "npx") and not link.is_symlink():
            link.symlink_to(path)
    assert shutil.which("node", path=str(programs)) is None
    needed = Path(environment_python("onnxruntime", tmp_path)).parents[1]
    variables = {"PATH": str(programs), "TRANSECT_NEEDS_ONNXRUNTIME": str(needed)}
    script = environment_source("runner-javascript") / "build.sh"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run(["bash", str(script), str(folder)], env=os.environ | variables, check=True)
    program = Program("javascript", str(folder / "bin" / "python"), runner_models)
    write_tensors(tmp_path / "inputs", {"x": HALVES})
    more = ("--min-runs", "5", "--max-seconds", "0")
    run = program.start(tmp_path, *program.paths(tmp_path, "identity-float16"), *more, **variables)
    assert run.code == 0, run.stderr
    assert np.array_equal(run.outputs()["x_out"], HALVES)
    assert run.record["language_version"] == "Node.js v24.19.0"
