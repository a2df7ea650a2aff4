"""The runners in JavaScript: what is their own, beside what all runners are tested for."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from javascript_program import Program, cell

from checkouts import environment_python
from transect.onnx_models.tensors import NoTensor, write_header, write_tensors
from transect.planning.environments import environment_source
from transect.runtimes import RUNNERS, RUNTIMES
from transect.runtimes.options import session_options

X = np.arange(28, dtype=np.float32).reshape(7, 4) - 9
# As javascript_models.py makes it.
WEIGHT = np.arange(12, dtype=np.float32).reshape(4, 3) / 7
EXPECTED = np.maximum(X @ WEIGHT, 0)
CASE_KEYS = ("name", "model", "inputs", "outputs")


def _python(runtime: str, folder: Path) -> str:
    if reason := RUNTIMES.get(runtime).supports(cell(runtime)):
        pytest.skip(reason)
    return environment_python(RUNTIMES.get(runtime).environment, folder)


@pytest.fixture(scope="module")
def models(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    helper = Path(__file__).with_name("javascript_models.py")
    subprocess.run([torch_python, str(helper), str(folder)], check=True)
    return folder


@pytest.fixture(scope="module", params=["javascript", "browser"])
def program(
    request: pytest.FixtureRequest, models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Program:
    folder = tmp_path_factory.mktemp("environment")
    return Program(request.param, _python(request.param, folder), models)


@pytest.fixture(scope="module")
def browser_program(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program("browser", _python("browser", tmp_path_factory.mktemp("environment")), models)


def test_types_hold_strictly(tmp_path: Path) -> None:
    for runtime, projects in {
        "javascript": ("javascript",),
        "browser": ("browser", "browser/page"),
    }.items():
        runners = Path(_python(runtime, tmp_path)).parents[1] / "runners"
        compiler = runners / "node_modules" / "typescript" / "bin" / "tsc"
        path = f"{runners.parent / 'bin'}:{os.environ['PATH']}"
        for project in projects:
            told = subprocess.run(
                ["node", str(compiler), "-p", str(runners / project / "tsconfig.json")],
                env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert (told.returncode, told.stdout + told.stderr) == (0, ""), project


def test_rows_are_run_in_batches_the_partial_one_included(program: Program, tmp_path: Path) -> None:
    before = time.monotonic_ns()
    run = program.latency(tmp_path, "linear", {"x": X}, batch=3)
    after = time.monotonic_ns()
    assert (run.code, run.stderr) == (0, "")
    assert run.outputs()["y"] == pytest.approx(EXPECTED, abs=1e-5)
    record = run.record
    told = (record["runner"], record["status"], record["mode"], record["provider_used"])
    assert told == (program.runtime, "ok", "latency", "cpu")
    assert record["outputs"] == {"header": str(tmp_path / "outputs" / "header.json"), "rows": 7}
    assert len(record["run_ns"]) == len(record["bind_ns"]) == len(record["copy_ns"]) >= 20
    for part in ("bind", "copy"):
        inside = part in record["run_includes"]
        assert all((value == 0) if inside else (value >= 0) for value in record[f"{part}_ns"])
    assert sum(record["run_ns"]) > 0
    assert record["runtime_version"] == "1.29.0"
    assert record["garbage_collection"] == "on, after a collection before the measurement"
    assert record["session_options"] == {}
    assert record["options_not_set"] == []
    assert record["peak_memory_bytes"] > 1 << 20
    assert record["session_ns"] > 0
    # The same clock as this process's, which is CLOCK_MONOTONIC.
    assert before < record["first_result_ns"] < after


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


def test_measurement_ends_when_the_interval_is_narrow_or_the_time_is_up(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tensors(tmp_path / "inputs", {"x": X})
    more = ("--min-runs", "50", "--max-seconds", "0.2")
    record = program.start(tmp_path, *program.paths(tmp_path, "linear"), *more).record
    assert len(record["run_ns"]) >= 50
    assert record["clock_resolution_ns"] >= 1
    if program.runtime == "browser":
        # Steps of the clock that are longer than a hundredth of a run hide what the interval is.
        assert record["clock_resolution_ns"] == 5000
        assert all(value % 5000 == 0 for value in record["run_ns"])
        return
    # By the arithmetic of the runners in Python.
    monkeypatch.syspath_prepend(str(RUNNERS / "python"))
    narrow = importlib.import_module("latency").interval_is_narrow(record["run_ns"])
    for name in ("latency", "contract", "tensors"):
        sys.modules.pop(name, None)
    # The step of the clock, a nanosecond, counts to the interval's width here.
    assert narrow or record["stop_reason"] == "time-limit"


def _types(rows: int = 3) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(5)
    names = {"f32": "f4", "f64": "f8", "f16": "f2", "i8": "i1", "i16": "i2", "i32": "i4",
             "i64": "i8", "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8"}  # fmt: skip
    found = {}
    for name, code in names.items():
        kind = np.dtype(code)
        if kind.kind == "f":
            found[name] = generator.normal(size=(rows, 2)).astype(kind)
        else:
            least, most = np.iinfo(kind).min, np.iinfo(kind).max
            found[name] = generator.integers(least, most, (rows, 2), kind, endpoint=True)
    found["flag"] = generator.integers(0, 2, (rows, 2)).astype(bool)
    texts = np.array(["", "a", "größer 日本", "line\nbreak", "\N{GRINNING FACE}", " "], object)
    found["text"] = np.resize(texts, (rows, 2))
    return found


@pytest.mark.parametrize("rows", [{}, {"batch": 2}])
def test_every_type_comes_out_as_it_went_in(
    program: Program, tmp_path: Path, rows: dict[str, int]
) -> None:
    given = _types()
    run = program.latency(tmp_path, "types", given, **rows)
    assert run.code == 0, run.stderr
    found = run.outputs()
    assert list(found) == [f"{name}-out" for name in given]
    for name, array in given.items():
        other = found[f"{name}-out"]
        assert isinstance(other, np.ndarray)
        assert (other.shape, other.dtype) == (array.shape, array.dtype), name
        assert np.array_equal(other, array), name
    assert run.record["outputs"]["rows"] == (3 if rows else None)


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 0), (1, 2, 3)])
def test_scalars_and_empty_tensors_keep_their_shape(
    program: Program, tmp_path: Path, shape: tuple[int, ...]
) -> None:
    given = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    run = program.latency(tmp_path, "identity", {"x": given})
    assert run.code == 0, run.stderr
    found = run.outputs()["y"]
    assert isinstance(found, np.ndarray)
    assert found.shape == shape
    assert np.array_equal(found, given)


def test_what_is_no_tensor_has_a_kind(program: Program, tmp_path: Path) -> None:
    run = program.latency(tmp_path, "sequence", {"x": X}, batch=3)
    assert run.code == 0, run.stderr
    found = run.outputs()
    assert np.array_equal(found["y"], np.maximum(X, 0))
    assert isinstance(found["s"], NoTensor)
    assert not (tmp_path / "outputs" / "output-1.bin").exists()


def test_weights_in_a_file_of_their_own(program: Program, tmp_path: Path) -> None:
    run = program.latency(tmp_path, "external", {"x": X})
    assert run.code == 0, run.stderr
    assert run.outputs()["y"] == pytest.approx(EXPECTED, abs=1e-5)


def test_bfloat16_is_refused_by_name(program: Program, tmp_path: Path) -> None:
    header = write_tensors(tmp_path / "inputs", {"x": np.ones((1, 2), np.uint16)})
    header.write_text(header.read_text().replace("uint16", "bfloat16"))
    run = program.start(tmp_path, *program.paths(tmp_path, "bfloat16"))
    assert (run.code, run.record["cause"]) == (2, "bad-input")
    assert "bfloat16" in run.record["message"]


@pytest.mark.parametrize(
    ("model", "tensors", "header", "words"),
    [
        ("linear", {"x": X, "z": X}, {}, ["[x]", "[x,z]"]),
        ("default", {"x": X, "d": X[0, :1]}, {}, ["[x]", "[x,d]"]),
        ("types", {"f32": X[:, :2]}, {}, ["i64", "[f32]"]),
        ("fixed", {"x": X}, {"batch": 2}, ["[1,4]", "[2,4]"]),
        ("fixed", {"x": X}, {}, ["[7,4]", "[2,4]"]),
        ("unknown", {"x": X}, {}, ["NoSuchOperator"]),
        ("types", {"text": np.array([["a\0b", ""]], object)}, {}, ["zero byte"]),
    ],
)
def test_inputs_that_do_not_fit_are_named(
    program: Program, tmp_path: Path, model: str, tensors: Any, header: Any, words: list[str]
) -> None:
    run = program.latency(tmp_path, model, tensors, **header)
    assert (run.code, run.record["cause"]) == (2, "bad-input"), run.stderr
    assert [word for word in words if word not in run.record["message"]] == []
    assert f"{program.runtime}: " in run.stderr.splitlines()[-1]


def test_an_input_with_a_default_may_be_left_out(program: Program, tmp_path: Path) -> None:
    run = program.latency(tmp_path, "default", {"x": X})
    assert run.code == 0, run.stderr
    assert np.array_equal(run.outputs()["y"], X + 1)


def test_what_onnx_runtime_refuses_while_it_runs_is_a_crash(
    program: Program, tmp_path: Path
) -> None:
    run = program.latency(tmp_path, "reshape", {"x": X})
    assert (run.code, run.record["cause"]) == (1, "crash")
    assert "Reshape" in run.record["message"]


def test_options_are_those_that_onnx_runtime_says_it_has(program: Program, tmp_path: Path) -> None:
    options = {
        "intra_op_num_threads": 2,
        "inter_op_num_threads": 3,
        "execution_mode": "parallel",
        "graph_optimization_level": "basic",
        "enable_cpu_mem_arena": False,
        "enable_mem_pattern": True,
        "session.intra_op.allow_spinning": "0",
        "session.disable_prepacking": "1",
        "session.dynamic_block_base": None,
        "provider_options": {"some": "thing"},
    }
    profile = ("--profile", tmp_path / "profile")
    run = program.latency(tmp_path, "linear", {"x": X}, *profile, options=options)
    assert run.code == 0, run.stderr
    told = next(line for line in run.stderr.splitlines() if "Session Options {" in line)
    for fact in (
        "execution_mode:1",
        "graph_optimization_level:1 ",
        "enable_cpu_mem_arena:0",
        "enable_mem_pattern:1",
        "session.disable_prepacking: 1",
    ):
        assert fact in told
    assert "session.dynamic_block_base" not in told
    record = run.record
    not_set = ["provider_options.some"]
    if program.runtime == "javascript":
        assert re.findall(r"thread_pool_size: (\d+)", told) == ["2", "3"]
        assert "session.intra_op.allow_spinning: 0" in told
    else:
        # The one pool of WebAssembly: its threads are seen in the profile alone.
        assert "use_per_session_threads:0" in told
        assert record["wasm_threads"] == 2
        not_set = ["inter_op_num_threads", "session.intra_op.allow_spinning", *not_set]
    assert record["options_not_set"] == not_set
    unset = {"session.dynamic_block_base", "provider_options", *not_set}
    kept = {key: value for key, value in options.items() if key not in unset}
    assert record["session_options"] == kept | {"provider_options": {}}
    assert len(record["profile_run_ns"]) == 10
    events = json.loads(Path(record["profile_file"]).read_text())
    assert sum(event["name"] == "model_run" for event in events) == 10
    others = [
        event["args"]["thread_scheduling_stats"] for event in events if event["cat"] == "Node"
    ]
    assert others
    assert all(len(one["sub_threads"]) == 1 for one in others)


def test_no_folder_for_the_profile_is_named(program: Program, tmp_path: Path) -> None:
    run = program.latency(tmp_path, "linear", {"x": X}, "--profile", tmp_path / "gone" / "p")
    assert (run.code, run.record["cause"]) == (2, "bad-input")
    assert str(tmp_path / "gone") in run.record["message"]


def _load(program: Program, folder: Path, arrivals: list[int], *more: str) -> dict[str, Any]:
    np.array(arrivals, "<i8").tofile(folder / "arrivals.bin")
    write_tensors(folder / "inputs", {"x": X}, batch=2)
    paths = program.paths(folder, "linear")
    run = program.start(
        folder, *paths, "--mode", "load", "--arrivals", folder / "arrivals.bin", *more
    )
    assert run.code == 0, run.stderr
    assert run.outputs()["y"] == pytest.approx(EXPECTED, abs=1e-5)
    return run.record


def test_load_serves_what_arrives_with_two_sessions(program: Program, tmp_path: Path) -> None:
    arrivals = [index * 500_000 for index in range(200)]
    record = _load(program, tmp_path, arrivals, "--sessions", "2", "--max-seconds", "300")
    assert (record["mode"], record["sessions"], record["arrivals"]) == ("load", 2, 200)
    assert record["stop_reason"] == "all-served"
    start, end = record["start_ns"], record["end_ns"]
    assert len(start) == len(end) == 200
    assert all(a <= s <= e for a, s, e in zip(arrivals, start, end, strict=True))
    assert record["outputs"]["rows"] == 7
    assert "run_ns" not in record


def test_load_leaves_unserved_what_is_not_begun_in_time(program: Program, tmp_path: Path) -> None:
    # All at once, and no time: the first ones are taken, and no list of thousands is.
    record = _load(program, tmp_path, [0] * 20_000, "--max-seconds", "0.001")
    assert record["stop_reason"] == "time-limit"
    assert len(record["start_ns"]) == len(record["end_ns"]) < 20_000
    assert record["start_ns"] == sorted(record["start_ns"])


def test_load_tells_of_a_fault_in_a_worker(program: Program, tmp_path: Path) -> None:
    np.zeros(4, "<i8").tofile(tmp_path / "arrivals.bin")
    write_tensors(tmp_path / "inputs", {"x": X})
    paths = program.paths(tmp_path, "fixed")
    more = ("--mode", "load", "--arrivals", tmp_path / "arrivals.bin", "--sessions", "2")
    run = program.start(tmp_path, *paths, *more)
    assert (run.code, run.record["cause"]) == (2, "bad-input")
    assert "[2,4]" in run.record["message"]


def _cases(folder: Path, models: Path, names: list[str]) -> Path:
    write_tensors(folder / "inputs", {"x": X})
    cases = [
        dict(zip(CASE_KEYS, (name, str(models / f"{name}.onnx"), str(folder / "inputs"),
                             str(folder / f"out-{index}")), strict=True))
        for index, name in enumerate(names)
    ]  # fmt: skip
    (folder / "cases.json").write_text(json.dumps(cases))
    return folder / "cases.json"


def test_cases_go_on_after_one_that_fails(program: Program, tmp_path: Path) -> None:
    names = ["linear", "gone", "reshape", "sequence", "types", "default"]
    cases = _cases(tmp_path, program.models, names)
    run = program.start(tmp_path, "--mode", "cases", "--cases", cases)
    assert run.code == 0, run.stderr
    lines = run.lines()
    assert [line["case"] for line in lines] == [i for i in range(6) for _ in range(2)]
    assert [line["status"] for line in lines[::2]] == ["started"] * 6
    verdicts = {line["name"]: line["status"] for line in lines[1::2]}
    assert verdicts == {
        "linear": "ok", "gone": "failed", "reshape": "failed", "sequence": "unsupported",
        "types": "failed", "default": "ok",
    }  # fmt: skip
    assert all(line["message"] for line in lines[1::2] if line["status"] != "ok")
    assert "Reshape" in lines[5]["message"]
    assert (tmp_path / "out-0" / "header.json").exists()
    assert not (tmp_path / "out-2").exists()


def test_cases_are_skipped_and_the_record_is_appended_to(program: Program, tmp_path: Path) -> None:
    cases = _cases(tmp_path, program.models, ["linear", "linear", "linear"])
    (tmp_path / "record.json").write_text('{"case": 0, "name": "linear", "status": "started"}\n')
    run = program.start(tmp_path, "--mode", "cases", "--cases", cases, "--skip", "1")
    assert run.code == 0, run.stderr
    assert [line["case"] for line in run.lines()] == [0, 1, 1, 2, 2]
    assert not (tmp_path / "out-0").exists()


def test_values_that_are_no_tensors_are_unsupported_as_inputs(
    program: Program, tmp_path: Path
) -> None:
    cases = _cases(tmp_path, program.models, ["linear"])
    write_header(tmp_path / "inputs", [{"name": "x", "kind": "sequence(tensor(float))"}])
    run = program.start(tmp_path, "--mode", "cases", "--cases", cases)
    assert run.lines()[1]["status"] == "unsupported"


def test_provider_that_is_not_there_is_skipped(program: Program, tmp_path: Path) -> None:
    provider = {"javascript": "cuda", "browser": "webgpu"}[program.runtime]
    write_tensors(tmp_path / "inputs", {"x": X})
    paths = program.paths(tmp_path, "linear")
    # Hides every CUDA device; a machine with a GPU for WebGPU runs instead.
    run = program.start(tmp_path, *paths, "--provider", provider, CUDA_VISIBLE_DEVICES="-1")
    if run.code == 0 and provider == "webgpu":
        pytest.skip("this machine has WebGPU")
    assert (run.code, run.record["status"]) == (3, "skipped")
    assert run.record["reason"] in run.stderr
    assert ("CUDA" if provider == "cuda" else "WebGPU") in run.record["reason"]
    assert "run_ns" not in run.record


def test_outputs_that_cannot_be_written_are_named(program: Program, tmp_path: Path) -> None:
    (tmp_path / "outputs").write_text("a file")
    run = program.latency(tmp_path, "linear", {"x": X})
    assert (run.code, run.record["cause"]) == (2, "bad-input")
    assert str(tmp_path / "outputs") in run.record["message"]


@pytest.mark.parametrize("content", [None, b"no library"])
def test_library_that_is_none_is_named(models: Path, tmp_path: Path, content: bytes | None) -> None:
    python = _python("javascript", tmp_path)
    library = tmp_path / "libother.so"
    if content is not None:
        library.write_bytes(content)
    write_tensors(tmp_path / "inputs", {"x": X})
    program = Program("javascript", python, models)
    command = program.command(tmp_path, *program.paths(tmp_path, "linear"))
    command[command.index("--library") + 1] = str(library)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    record = json.loads((tmp_path / "record.json").read_text())
    assert (done.returncode, record["cause"]) == (2, "bad-input")
    assert str(library) in record["message"]


def test_without_a_library_the_package_s_own_is_taken(models: Path, tmp_path: Path) -> None:
    program = Program("javascript", _python("javascript", tmp_path), models)
    write_tensors(tmp_path / "inputs", {"x": X})
    command = program.command(tmp_path, *program.paths(tmp_path, "linear"), *("--min-runs", "5"))
    place = command.index("--library")
    del command[place : place + 2]
    subprocess.run(command, check=True)
    record = json.loads((tmp_path / "record.json").read_text())
    assert "onnxruntime-node" in record["library_file"]


def test_no_chromium_is_a_skip_that_says_what_to_install(
    browser_program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tensors(tmp_path / "inputs", {"x": X})
    paths = browser_program.paths(tmp_path, "linear")
    gone = str(tmp_path / "no-chromium")
    run = browser_program.start(tmp_path, *paths, TRANSECT_CHROMIUM=gone)
    assert (run.code, run.record["status"]) == (3, "skipped")
    assert gone in run.record["reason"]
    monkeypatch.setenv("TRANSECT_CHROMIUM", gone)
    assert gone in (RUNTIMES.get("browser").supports(cell("browser")) or "")
    monkeypatch.delenv("TRANSECT_CHROMIUM")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "install" in (RUNTIMES.get("browser").supports(cell("browser")) or "")


def test_a_chromium_that_does_not_start_is_a_crash_with_its_words(
    browser_program: Program, tmp_path: Path
) -> None:
    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\necho no display of any kind >&2\nexit 7\n")
    broken.chmod(0o755)
    write_tensors(tmp_path / "inputs", {"x": X})
    run = browser_program.start(
        tmp_path, *browser_program.paths(tmp_path, "linear"), TRANSECT_CHROMIUM=str(broken)
    )
    assert (run.code, run.record["cause"]) == (1, "crash")
    assert "no display of any kind" in run.record["message"]


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
    more = ("--max-seconds", "600", "--min-runs", "1000000000")
    command = program.command(folder, *program.paths(folder, "linear"), *more)
    written = folder / "outputs" / "header.json"
    with subprocess.Popen(command, env=os.environ | {"TMPDIR": str(scratch)}) as driver:
        try:
            _wait(lambda: written.exists() or driver.poll() is not None)
            assert driver.poll() is None
            yield driver
        finally:
            driver.kill()


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_of_chromium_stays_when_the_driver_is_ended(
    browser_program: Program, tmp_path: Path, scratch: Path, sign: signal.Signals
) -> None:
    with _measuring(browser_program, tmp_path, scratch) as driver:
        assert len(_of_profile(str(scratch))) > 1
        driver.send_signal(sign)
        assert driver.wait() == -sign
    _wait(lambda: not _of_profile(str(scratch)))
    _wait(lambda: list(scratch.iterdir()) == [])


def test_a_page_that_ends_is_a_crash(
    browser_program: Program, tmp_path: Path, scratch: Path
) -> None:
    with _measuring(browser_program, tmp_path, scratch) as driver:
        pages = set(_of_profile("--type=renderer")) & set(_of_profile(str(scratch)))
        assert pages
        for process in pages:
            os.kill(process, signal.SIGKILL)
        assert driver.wait() == 1
    record = json.loads((tmp_path / "record.json").read_text())
    assert (record["cause"], record["status"]) == ("crash", "failed")
    assert "page" in record["message"]
    assert list(scratch.iterdir()) == []


def test_webgpu_in_software_runs_where_it_is_asked_for(
    browser_program: Program, tmp_path: Path
) -> None:
    options = session_options("equal", 1, "webgpu", {})
    options["provider_options"] = {"forceFallbackAdapter": "1", "colour": "red"}
    more = ("--provider", "webgpu", "--profile", tmp_path / "p")
    run = browser_program.latency(tmp_path, "linear", {"x": X}, *more, options=options, batch=3)
    if run.code == 3:
        pytest.skip(run.record["reason"])
    assert run.code == 0, run.stderr
    assert run.outputs()["y"] == pytest.approx(EXPECTED, rel=1e-4, abs=1e-4)
    record = run.record
    assert record["provider_used"] == "webgpu"
    assert "asyncify" in record["library_file"]
    assert {"enable_mem_pattern", "provider_options.colour"} <= set(record["options_not_set"])
    assert record["session_options"]["provider_options"] == {"forceFallbackAdapter": "1"}
    assert record["webgpu_adapter"]
    events = json.loads(Path(record["profile_file"]).read_text())
    providers = {event["args"].get("provider") for event in events if event["cat"] == "Node"}
    assert "WebGpuExecutionProvider" in providers


def test_node_comes_from_a_wheel_where_the_machine_has_none(models: Path, tmp_path: Path) -> None:
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
    program = Program("javascript", str(folder / "bin" / "python"), models)
    write_tensors(tmp_path / "inputs", _types())
    more = ("--min-runs", "5", "--max-seconds", "0")
    run = program.start(tmp_path, *program.paths(tmp_path, "types"), *more, **variables)
    assert run.code == 0, run.stderr
    assert np.array_equal(run.outputs()["f16-out"], _types()["f16"])
    assert run.record["language_version"] == "Node.js v22.20.0"
