"""The runner contract for runners in Python: see docs/runner-contract.md.

Needs numpy and nothing of transect. A runner gives `open_engine(given, profile)`, which makes a
session: an `Engine`. The work itself is in `latency.py`, `load.py` and `cases.py`, and in `train.py`
for a runner that gives `open_trainer(given, step)`, which makes a `Trainer`.
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
from typing import Any, Protocol

import numpy as np
from arguments import named, parse_arguments
from tensors import BadInput, read_json

CRASH, BAD_INPUT, SKIPPED = 1, 2, 3
# Execution providers that need a CUDA device.
ON_GPU = ("cuda", "tensorrt")
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


class Diverged(Exception):
    """A number of a training is not finite. `fields`: what the record has of the steps before."""

    def __init__(self, message: str, fields: dict[str, Any]) -> None:
        super().__init__(message)
        self.fields = fields


class CannotWrite(Exception):
    """A file cannot be written: which one, and the system's words."""


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


class Trainer(Protocol):
    """The sessions of a portable training step, and its state. `facts` as of an engine."""

    facts: dict[str, Any]
    session_ns: int
    # Of the last run, in the manifest's order.
    metrics: list[float]

    def start(self, state: dict[str, np.ndarray]) -> None:
        """Take the state to the device."""
        ...

    def run(self, graph: str, feed: dict[str, np.ndarray]) -> tuple[int, int, int]:
        """Bind, run, read the metrics; return the nanoseconds of each."""
        ...

    def state(self) -> dict[str, np.ndarray]:
        """Return the state, in host memory, until the next run."""
        ...


OpenEngine = Callable[[argparse.Namespace, "str | None"], Engine]
OpenTrainer = Callable[[argparse.Namespace, Any], Trainer]


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


def _work(given: argparse.Namespace, open_engine: OpenEngine, open_trainer: OpenTrainer | None) -> dict[str, Any]:
    from latency import run_latency
    from load import run_load

    if given.mode == "train" and open_trainer is not None:
        from train import run_train

        return run_train(given, open_trainer)
    return (run_latency if given.mode == "latency" else run_load)(given, open_engine)


def run_program(
    name: str, open_engine: OpenEngine, modes: tuple[str, ...] = ("latency",), open_trainer: OpenTrainer | None = None
) -> int:
    """Parse the contract's arguments, run, write the record; return the exit code."""
    from cases import run_cases

    arguments = sys.argv[1:]
    record_file = named(arguments, "--record")
    head: dict[str, Any] = {"runner": name}
    try:
        given = parse_arguments(arguments, (*modes, "train") if open_trainer else modes)
        head |= {"mode": given.mode, "provider_requested": given.provider}
        given.options = read_options(given.options)
        if given.provider in ON_GPU and cuda_devices() == 0:
            raise Skip("no CUDA device")
        if given.mode == "cases":
            run_cases(given, open_engine)
            return 0
        record, code = head | {"status": "ok"} | _work(given, open_engine, open_trainer), 0
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
