"""What the runners in JavaScript are made of: types, libraries, Node.js."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from runner_program import Program, X, python_of

from transect.runtimes import RUNTIMES


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
            done = subprocess.run(
                ["node", str(compiler), "-p", str(runners / project / "tsconfig.json")],
                env=os.environ | {"PATH": path},
                capture_output=True,
                text=True,
                check=False,
            )
            assert (done.returncode, done.stdout + done.stderr) == (0, ""), project


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
