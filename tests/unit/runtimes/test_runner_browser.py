"""The runner in a browser: Chromium's start and end, WebGPU."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from runner_program import LINEAR, Program, X

from factories import infer_cell
from transect.onnx_models.tensors import write_tensors
from transect.runtimes import RUNTIMES
from transect.runtimes.options import session_options
from transect.runtimes.programs import run_record, start_command


@pytest.fixture(scope="module")
def program(runner_models: Path) -> Program:
    return Program.of("browser", runner_models)


def test_no_chromium_is_a_skip_that_says_what_to_install(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tensors(tmp_path / "inputs", {"x": X})
    gone = str(tmp_path / "no-chromium")
    run = program.start(program.plan(tmp_path, "linear"), tmp_path, TRANSECT_CHROMIUM=gone)
    assert (run.code, run.record["status"]) == (3, "skipped")
    assert gone in run.record["reason"]
    monkeypatch.setenv("TRANSECT_CHROMIUM", gone)
    assert gone in (RUNTIMES.get("browser").supports(infer_cell("browser")) or "")
    monkeypatch.delenv("TRANSECT_CHROMIUM")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "install" in (RUNTIMES.get("browser").supports(infer_cell("browser")) or "")


def _of_profile(mark: str) -> list[int]:
    """Return the processes that have a text in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def _wait(what: Any) -> None:
    limit = time.monotonic() + 120
    while not what():
        assert time.monotonic() < limit, "waited in vain"
        time.sleep(0.02)


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder with a short name: Chromium makes a socket below it."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@contextlib.contextmanager
def _measuring(program: Program, folder: Path, scratch: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a measurement without an end; give it when it has begun."""
    write_tensors(folder / "inputs", {"x": X})
    command = start_command("browser", program.python, program.plan(folder, "linear", max_seconds=600, min_runs=10**9))
    written = folder / "outputs" / "output-0.bin"
    with subprocess.Popen(command, env=os.environ | {"TMPDIR": str(scratch)}) as driver:
        try:
            _wait(lambda: written.exists() or driver.poll() is not None)
            assert driver.poll() is None
            yield driver
        finally:
            driver.kill()


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_of_chromium_stays_when_the_driver_is_ended(
    program: Program, tmp_path: Path, scratch: Path, sign: signal.Signals
) -> None:
    with _measuring(program, tmp_path, scratch) as driver:
        assert len(_of_profile(str(scratch))) > 1
        driver.send_signal(sign)
        assert driver.wait() == -sign
    _wait(lambda: not _of_profile(str(scratch)))
    _wait(lambda: list(scratch.iterdir()) == [])


def test_a_page_that_ends_is_a_crash(program: Program, tmp_path: Path, scratch: Path) -> None:
    with _measuring(program, tmp_path, scratch) as driver:
        pages = set(_of_profile("--type=renderer")) & set(_of_profile(str(scratch)))
        assert pages
        for process in pages:
            os.kill(process, signal.SIGKILL)
        assert driver.wait() == 1
    record = run_record("browser", tmp_path, 1)
    assert (record["cause"], record["status"]) == ("crash", "failed")
    assert "page" in record["message"]
    assert list(scratch.iterdir()) == []


def test_webgpu_in_software_runs_where_it_is_asked_for(program: Program, tmp_path: Path) -> None:
    options = session_options("equal", 1, "webgpu", {})
    options["provider_options"] = {"forceFallbackAdapter": "1", "colour": "red"}
    asked = {"provider": "webgpu", "profile": tmp_path / "p", "options": options}
    run = program.latency(tmp_path, "linear", {"x": X}, batch=3, **asked)
    if run.code == 3:
        pytest.skip(run.record["reason"])
    assert run.code == 0, run.stderr
    assert run.outputs()["y"] == pytest.approx(LINEAR, rel=1e-4, abs=1e-4)
    record = run.record
    assert record["provider_used"] == "webgpu"
    assert "asyncify" in record["library_file"]
    assert {"enable_mem_pattern", "provider_options.colour"} <= set(record["options_not_set"])
    assert record["session_options"]["provider_options"] == {"forceFallbackAdapter": "1"}
    assert record["webgpu_adapter"]
    events = json.loads(Path(record["profile_file"]).read_text())
    providers = {event["args"].get("provider") for event in events if event["cat"] == "Node"}
    assert "WebGpuExecutionProvider" in providers
