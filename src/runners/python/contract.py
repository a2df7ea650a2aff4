"""The runner contract for runners in Python: see docs/runner-contract.md.

Needs numpy and nothing of transect. A runner gives `open_engine(given, profile)`, which makes a
session: an `Engine`. The work itself is in `latency.py`, `load.py` and `cases.py`, and in `train.py`
for a runner that gives `run_train` with what makes a `Trainer`.
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
from typing import Any

from arguments import named, parse_arguments
from cases import run_cases
from engines import ON_GPU, CannotWrite, Diverged, OpenEngine, Skip, Unsupported
from latency import run_latency
from load import run_load
from tensors import BadInput, read_json

CRASH, BAD_INPUT, SKIPPED = 1, 2, 3
Work = Callable[[argparse.Namespace], dict[str, Any]]
# Session options by name; what has a dot is handed on as a configuration entry.
_CHOICES = {
    "execution_mode": ("sequential", "parallel"),
    "graph_optimization_level": ("disabled", "basic", "extended", "all"),
}
_NUMBERS = ("intra_op_num_threads", "inter_op_num_threads")
_FLAGS = ("enable_cpu_mem_arena", "enable_mem_pattern")


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


def environment_facts() -> dict[str, Any]:
    """Return what the record says of the process: cores, language, where ONNX Runtime lies."""
    facts: dict[str, Any] = {"language_version": f"Python {platform.python_version()}", "input_residency": "host"}
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


def run_program(
    name: str, open_engine: OpenEngine, modes: tuple[str, ...] = ("latency",), train: Work | None = None
) -> int:
    """Parse the contract's arguments, run, write the record; return the exit code.

    `train` does the mode of that name, where a runner has it.
    """
    arguments = sys.argv[1:]
    record_file = named(arguments, "--record")
    head: dict[str, Any] = {"runner": name}
    try:
        given = parse_arguments(arguments, (*modes, "train") if train else modes)
        head |= {"mode": given.mode, "provider_requested": given.provider}
        given.options = read_options(given.options)
        if given.provider in ON_GPU and cuda_devices() == 0:
            raise Skip("no CUDA device")
        if given.mode == "cases":
            run_cases(given, open_engine)
            return 0
        if given.mode == "train" and train is not None:
            made = train(given)
        else:
            made = (run_latency if given.mode == "latency" else run_load)(given, open_engine)
        record, code = head | {"status": "ok"} | made, 0
        record |= environment_facts()
    except Skip as skip:
        record, code = head | {"status": "skipped", "reason": str(skip)}, SKIPPED
        print(f"{name}: skipped: {skip}", file=sys.stderr)
    except Diverged as error:
        print(f"{name}: {error}", file=sys.stderr)
        record = head | {"status": "failed", "cause": "diverged", "message": str(error)}
        record, code = record | error.fields | environment_facts(), CRASH
    except Exception as error:
        cause, code = _cause(error)
        told = code == BAD_INPUT or isinstance(error, CannotWrite)
        message = str(error) if told else f"{type(error).__name__}: {error}"
        if not told:
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
