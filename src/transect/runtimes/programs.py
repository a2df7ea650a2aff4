"""Runners' programs: how one is started under a plan, and the record of what it left (docs/runner-contract.md)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.errors import BadInput
from transect.domain.record import Cause
from transect.onnx_models.tensors import HEADER, describe
from transect.runtimes import RUNTIMES
from transect.runtimes.plan_file import DTYPE_NAMES, Entry, Level, Plan, Role, read_plan, write_plan

PLAN, RESULT = "plan.bin", "result.jsonl"
_TIMES = {
    Level.LATENCY: ("bind_ns", "run_ns", "copy_ns"),
    Level.LOAD: ("start_ns", "end_ns"),
    Level.TRAIN: ("gather_ns", "bind_ns", "run_ns", "read_ns"),
}
_STATUSES = ("ok", "failed", "skipped")


def start_command(runtime: str, python: str, plan: Plan) -> list[str]:
    """Write a plan into its `out`, where nothing of an earlier run stays; return the program's argument list.

    `python` is the interpreter of the runtime's environment. Raises BadInput for a provider that the runtime lacks.
    """
    chosen, out = RUNTIMES.get(runtime), Path(plan.text(Role.OUT))
    if (provider := plan.text(Role.PROVIDER)) not in chosen.providers:
        raise BadInput(f"execution provider '{provider}': {runtime} has {', '.join(chosen.providers)}")
    if (library := chosen.library(python)) is not None:
        plan.add(Entry(role=Role.LIBRARY, text=str(library)))
    out.mkdir(parents=True, exist_ok=True)
    keep = plan.level is Level.CASES
    for stale in () if keep else _left(out):
        stale.unlink(missing_ok=True)
    for entry in plan.of(Role.OUTPUTS):
        folder = Path(entry.text)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    write_plan(out / PLAN, plan)
    return chosen.command(python, [str((out / PLAN).absolute())])


def _left(out: Path) -> Iterator[Path]:
    names = (PLAN, RESULT, "times.bin", "profile_times.bin", "metrics.bin", "status.txt", "maps.txt")
    yield from (out / name for name in (*names, "state-0.bin", "state-1.bin"))


def said_lines(out: Path) -> list[dict[str, Any]]:
    """Return the lines of a program's `result.jsonl`, up to one that was never ended."""
    try:
        raw = (out / RESULT).read_bytes()
    except OSError:
        return []
    whole = raw.rpartition(b"\n")[0]
    lines = [json.loads(line) for line in whole.decode("utf-8", "replace").split("\n") if line.strip()]
    if not all(isinstance(line, dict) for line in lines):
        raise ValueError(f"expected JSON objects, got {lines!r:.200}")
    return lines


def run_record(runtime: str, out: Path, code: int) -> dict[str, Any]:
    """Return the record of a run that ended with `code`; a failed one when the program left none.

    Series are lists, in nanoseconds. Outputs get the header that describes them. Raises BadInput for a program
    that ends well and leaves other numbers than the contract says.
    """
    plan = read_plan(out / PLAN)
    head = {"runner": runtime, "mode": plan.level.name.lower(), "provider_requested": plan.text(Role.PROVIDER)}
    try:
        lines = said_lines(out)
        end = lines[-1] if lines else {}
        status = end.get("status")
        if status == "failed":
            Cause(end.get("cause", Cause.CRASH.value))
    except (ValueError, TypeError, RecursionError) as error:
        return head | no_record(code, f"without a readable record ({type(error).__name__}: {error})")
    if status is None:
        return head | no_record(code, "without a readable record")
    if status not in _STATUSES or "case" in end:
        return head | no_record(code, f"with a record of status {status!r}, expected {', '.join(_STATUSES)}")
    if status != "ok":
        return head | end
    if code != 0:
        return head | no_record(code, "after it wrote its record")
    # What the program says itself is better: a page has a process of its own.
    record = head | _facts_of_process(out) | end | _options(plan, end)
    if plan.level in (Level.LATENCY, Level.LOAD):
        write_outputs_header(plan, 0, end.get("outputs"))
        folder = Path(plan.text(Role.OUTPUTS))
        record["outputs"] = {"header": str(folder / HEADER), "rows": plan.rows or None}
    if plan.level is Level.LOAD:
        arrivals = next(plan.of(Role.ARRIVALS))
        record |= {"sessions": plan.sessions, "arrivals": arrivals.shape[0]}
    names = _TIMES[plan.level]
    times = numbers(out / "times.bin", "<i8", len(names))
    record |= {name: times[:, column].tolist() for column, name in enumerate(names)}
    if (out / "profile_times.bin").exists():
        record["profile_run_ns"] = numbers(out / "profile_times.bin", "<i8", 1)[:, 0].tolist()
    return record


def numbers(path: Path, dtype: str, columns: int) -> np.ndarray:
    """Return a file's rows of numbers. Raises BadInput for a file that is not there or is cut."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error}") from None
    width = columns * np.dtype(dtype).itemsize
    if len(raw) % width:
        raise BadInput(f"{path}: holds {len(raw)} bytes, expected rows of {width}")
    return np.frombuffer(raw, dtype).reshape(-1, columns)


def _options(plan: Plan, end: dict[str, Any]) -> dict[str, Any]:
    """Return what was set: what the program says it has, else what it was told without what it could not set."""
    not_set = end.get("options_not_set", [])
    told: dict[str, Any] = {entry.name: _value(entry.name, entry.text) for entry in plan.of(Role.OPTION)}
    of_provider = {entry.name: entry.text for entry in plan.of(Role.PROVIDER_OPTION)}
    # A language that sets some of the provider's options names the others.
    if provider := {key: text for key, text in of_provider.items() if f"provider_options.{key}" not in not_set}:
        told["provider_options"] = provider
    kept = {name: value for name, value in told.items() if name not in not_set}
    return {"session_options": end.get("session_options", kept), "options_not_set": not_set}


def _value(name: str, text: str) -> Any:
    if name.endswith("_threads"):
        return int(text)
    return text == "1" if name.startswith("enable_") else text


def _facts_of_process(out: Path) -> dict[str, Any]:
    """Return what the kernel said of the process after the measurement: memory, cores, the mapped library."""
    facts: dict[str, Any] = {"input_residency": "host"}
    lines = dict(line.split(":", 1) for line in _lines(out / "status.txt") if ":" in line)
    if "VmHWM" in lines:
        facts["peak_memory_bytes"] = int(lines["VmHWM"].split()[0]) * 1024
    if "Cpus_allowed_list" in lines:
        facts["cpus_allowed"] = lines["Cpus_allowed_list"].strip()
    files = sorted({fields[5] for line in _lines(out / "maps.txt") if len(fields := line.split(maxsplit=5)) == 6})
    for mark in ("libonnxruntime.so", "onnxruntime_pybind11_state", "onnxruntime_binding.node"):
        if found := [file for file in files if mark in file]:
            if len(found) > 1:
                raise BadInput(f"ONNX Runtime was loaded twice, from {' and '.join(found)}: it is not known which ran")
            facts["library_file"] = found[0]
            break
    return facts


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []


def write_outputs_header(plan: Plan, group: int, outputs: Any) -> None:
    """Describe the outputs of a case as `read_tensors` takes them: names and kinds are the model's.

    Raises BadInput where the program says of more or fewer outputs, or of others than there can be.
    """
    folder, entries = Path(plan.text(Role.OUTPUTS, group)), []
    names = [(entry.name, entry.text) for entry in plan.of(Role.OUTPUT, group)]
    if not isinstance(outputs, list) or len(outputs) != len(names):
        raise BadInput(f"a run gave the outputs {outputs!r:.200}, expected {', '.join(name for name, _ in names)}")
    for index, ((name, kind), found) in enumerate(zip(names, outputs, strict=True)):
        if found is None:
            entries.append({"name": name, "kind": kind})
            continue
        try:
            code, shape = found
            entries.append(describe(name, tuple(map(int, shape)), f"output-{index}.bin", DTYPE_NAMES[code]))
        except (TypeError, ValueError, KeyError):
            raise BadInput(f"output '{name}' is described as {found!r:.100}, expected a type and a shape") from None
    # Its record is written behind it: no synchronised write for each of a thousand cases.
    (folder / HEADER).write_text(json.dumps({"tensors": entries}) + "\n", encoding="utf-8")


def no_record(code: int, when: str) -> dict[str, Any]:
    """Return the failed record of a program that left none that can be used."""
    ended = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
    # SIGKILL and SIGTERM come from outside; SIGSEGV, SIGABRT and the like are its own.
    cause = Cause.KILLED if code in (-9, -15) else Cause.CRASH
    return {"status": "failed", "cause": cause.value, "message": f"the runner {ended} {when}"}
