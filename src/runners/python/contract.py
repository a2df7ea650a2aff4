"""The runner contract for runners in Python: see docs/runner-contract.md.

Needs numpy and nothing of transect. A runner gives `open_engine(given, profile)`, which makes a
session: an `Engine`. The work itself is in `latency.py`, `load.py` and `cases.py`.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, Protocol

import numpy as np
from tensors import BadInput, read_json

__all__ = ["ON_GPU", "BadInput", "Engine", "Skip", "cuda_devices", "read_options", "run_program"]

CRASH, BAD_INPUT, SKIPPED = 1, 2, 3
# Execution providers that need a CUDA device.
ON_GPU = ("cuda", "tensorrt")
_MODES = ("latency", "load", "cases")
# Session options by name; what has a dot is handed on as a configuration entry.
_CHOICES = {
    "execution_mode": ("sequential", "parallel"),
    "graph_optimization_level": ("disabled", "basic", "extended", "all"),
}
_NUMBERS = ("intra_op_num_threads", "inter_op_num_threads")
_FLAGS = ("enable_cpu_mem_arena", "enable_mem_pattern")


class Skip(Exception):
    """The provider is not there; exit code 3. Never answered by falling back."""


class Unsupported(Exception):
    """A value that this language cannot give or take: a case's verdict, else bad input."""


class Engine(Protocol):
    """One session. `facts` are fields of the record that it knows."""

    facts: dict[str, Any]
    session_ns: int
    output_names: list[str]
    output_types: dict[str, str]
    # Of the last step.
    results: list[Any]

    def check(self, tensors: dict[str, np.ndarray], dtypes: dict[str, str]) -> None:
        """Raise BadInput unless the model can take these inputs."""
        ...

    def step(self, feed: dict[str, np.ndarray]) -> tuple[int, int, int]:
        """Bind, run, copy to `results`; return the nanoseconds of each."""
        ...

    def end_profile(self) -> str:
        """Return the file of the profile."""
        ...


OpenEngine = Callable[[argparse.Namespace, "str | None"], Engine]


def cuda_devices() -> int:
    """Count the CUDA devices that the driver shows; 0 without a driver. Needs no framework."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def read_options(path: Path | None) -> dict[str, Any]:
    """Return the session options that are set. Raises BadInput for an unknown key or value."""
    if path is None:
        return {}
    given = read_json(path)
    if not isinstance(given, dict):
        raise BadInput(f"{path}: expected a JSON object, got {given!r:.100}")
    options = {key: value for key, value in given.items() if value is not None}
    for key, value in options.items():
        if (wanted := _wanted(key, value)) is not None:
            raise BadInput(f"{path}: option '{key}' is {value!r:.100}, expected {wanted}")
    return options


def _wanted(key: str, value: Any) -> str | None:
    """Return what an option should be, when it is not."""
    if key in _CHOICES:
        return None if value in _CHOICES[key] else f"one of {', '.join(_CHOICES[key])}"
    if key in _NUMBERS:
        return None if type(value) is int and value >= 0 else "a whole number >= 0"
    if key in _FLAGS:
        return None if isinstance(value, bool) else "true or false"
    if key == "provider_options":
        good = isinstance(value, dict) and all(isinstance(v, str) for v in value.values())
        return None if good else "an object of texts"
    if "." in key:
        return None if isinstance(value, str) else "a text"
    return f"one of {', '.join([*_CHOICES, *_NUMBERS, *_FLAGS])}, or a name with a dot"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadInput(message)


def _once(arguments: list[str]) -> None:
    names = [a.partition("=")[0] for a in arguments if a.startswith("--")]
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"argument {name} is given {names.count(name)} times, expected once")


def _arguments(arguments: list[str], modes: tuple[str, ...]) -> argparse.Namespace:
    parser = _Parser(allow_abbrev=False, add_help=False)
    parser.add_argument("--mode", choices=_MODES, default="latency")
    for name in ("model", "inputs", "outputs", "options", "library", "arrivals", "cases"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--profile")
    parser.add_argument("--provider", default="cpu")
    parser.add_argument("--warmup", type=_whole(0), default=20)
    parser.add_argument("--min-runs", type=_whole(1), default=100)
    parser.add_argument("--max-seconds", type=_seconds, default=1.0)
    parser.add_argument("--sessions", type=_whole(1), default=1)
    parser.add_argument("--skip", type=_whole(0), default=0)
    parser.add_argument("--record", type=_file, required=True)
    _once(arguments)
    given = parser.parse_args(arguments)
    needed = {
        "latency": ("model", "inputs", "outputs"),
        "load": ("model", "inputs", "outputs", "arrivals"),
        "cases": ("cases",),
    }[given.mode]
    if given.mode not in modes:
        raise BadInput(f"--mode {given.mode}: this runner has {', '.join(modes)}")
    for name in needed:
        if getattr(given, name) is None:
            raise BadInput(f"--mode {given.mode} needs --{name}")
    if given.model is not None and not given.model.is_file():
        raise BadInput(f"{given.model}: no such model file")
    return given


def _file(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("expected the name of a file, got ''")
    return Path(text)


def _whole(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected a whole number >= {least}, got '{text}'")
        return int(text)

    return number


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected seconds >= 0, got '{text}'")
    return value


def environment_facts() -> dict[str, Any]:
    """Return what the record says of the process: cores, language, where ONNX Runtime lies."""
    facts: dict[str, Any] = {
        "language_version": f"Python {platform.python_version()}",
        "input_residency": "host",
    }
    status, maps = Path("/proc/self/status"), Path("/proc/self/maps")
    if status.exists():
        lines = status.read_text().splitlines()
        allowed = next((x for x in lines if x.startswith("Cpus_allowed_list")), "")
        facts["cpus_allowed"] = allowed.partition(":")[2].strip()
    if maps.exists():
        files = {line.split(maxsplit=5)[-1] for line in maps.read_text().splitlines()}
        for mark in ("libonnxruntime.so", "onnxruntime_pybind11_state"):
            if found := sorted(file for file in files if mark in file):
                facts["library_file"] = found[0]
                break
    return facts


def _write(path: Path, record: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(json.dumps(record) + "\n")
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _named(arguments: list[str], name: str) -> str | None:
    """Return the value of an argument, however wrong the others are."""
    for index, text in enumerate(arguments):
        if text == name and index + 1 < len(arguments):
            return arguments[index + 1]
        if text.startswith(f"{name}="):
            return text.partition("=")[2]
    return None


def run_program(name: str, open_engine: OpenEngine, modes: tuple[str, ...] = ("latency",)) -> int:
    """Parse the contract's arguments, run, write the record; return the exit code."""
    from cases import run_cases
    from latency import run_latency
    from load import run_load

    arguments = sys.argv[1:]
    record_file = _named(arguments, "--record")
    head: dict[str, Any] = {"runner": name}
    try:
        given = _arguments(arguments, modes)
        head |= {"mode": given.mode, "provider_requested": given.provider}
        given.options = read_options(given.options)
        if given.provider in ON_GPU and cuda_devices() == 0:
            raise Skip("no CUDA device")
        if given.mode == "cases":
            run_cases(given, open_engine)
            return 0
        work = run_latency if given.mode == "latency" else run_load
        record, code = head | {"status": "ok"} | work(given, open_engine), 0
        record |= environment_facts()
    except Skip as skip:
        record, code = head | {"status": "skipped", "reason": str(skip)}, SKIPPED
        print(f"{name}: skipped: {skip}", file=sys.stderr)
    except Exception as error:
        cause, code = _cause(error)
        message = str(error) if code == BAD_INPUT else f"{type(error).__name__}: {error}"
        if code != BAD_INPUT:
            traceback.print_exc()
        print(f"{name}: {' '.join(message.split())}", file=sys.stderr)
        record = head | {"status": "failed", "cause": cause, "message": message}
    # Of cases the record is what came of each: a fault is told by the exit code and the message.
    if record_file and record.get("mode") != "cases":
        try:
            _write(Path(record_file), record)
        except OSError as error:
            print(f"{name}: {record_file}: the record cannot be written: {error}", file=sys.stderr)
            code = code or CRASH
    sys.stdout.flush()
    return code


def _cause(error: Exception) -> tuple[str, int]:
    # ONNX Runtime's exceptions are internal classes: told apart by name.
    if isinstance(error, (BadInput, Unsupported)) or type(error).__name__ == "InvalidArgument":
        return "bad-input", BAD_INPUT
    if isinstance(error, ImportError):
        return "missing-dependency", CRASH
    full = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    if full or any(words in str(error) for words in ("bad_alloc", "Failed to allocate")):
        return "out-of-memory", CRASH
    return "crash", CRASH
