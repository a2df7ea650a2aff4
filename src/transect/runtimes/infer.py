"""The result of one inference cell: what its runner left, beside what the framework computed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.axes.infer import InferCell
from transect.domain.errors import BadInput
from transect.domain.files import digest
from transect.domain.record import Cause, Status
from transect.onnx_models.facts import facts_of_model, of_batch
from transect.onnx_models.results import result
from transect.onnx_models.tensors import read_tensors
from transect.runtimes import RUNTIMES
from transect.runtimes._records import REPORTED, require_series
from transect.runtimes.outputs import judge
from transect.runtimes.prepare import expected_outputs
from transect.runtimes.programs import run_record
from transect.runtimes.times import SAMPLES_OF_TURNS, load_samples, load_values, of_turns, run_samples, run_values
from transect.training.costs import run_costs
from transect.training.own_workload import OwnWorkload
from transect.training.workloads import WORKLOADS, model_of

_SESSION = re.compile(r"Session Options \{(.*)")
_POOL = r"%s_op_param:OrtThreadPoolParams \{([^}]*)\}"
_ENTRIES = re.compile(r"config_options: \{([^}]*)\}")
_PAIR = re.compile(r"(\S+?): ?(\S+)")
_MODES = {"0": "sequential", "1": "parallel"}
# The levels of ONNX Runtime's GraphOptimizationLevel, and as TransformerLevel counts them.
_LEVELS = {"0": "disabled", "1": "basic", "2": "extended", "3": "layout", "4": "all", "99": "all"}


def options_seen(log: str) -> dict[str, Any]:
    """Return the session options that the last session printed in a log; {} where none did."""
    found = _SESSION.findall(log)
    if not found:
        return {}
    text = found[-1]
    flat = dict(_PAIR.findall(re.sub(r"\{[^{}]*\}", "", text)))
    seen: dict[str, Any] = {
        "execution_mode": _MODES.get(flat.get("execution_mode", ""), flat.get("execution_mode")),
        "graph_optimization_level": _LEVELS.get(
            flat.get("graph_optimization_level", ""), flat.get("graph_optimization_level")
        ),
        "enable_cpu_mem_arena": flat.get("enable_cpu_mem_arena") == "1",
        "enable_mem_pattern": flat.get("enable_mem_pattern") == "1",
    }
    for kind in ("intra", "inter"):
        pool = re.search(_POOL % kind, text)
        settings = dict(_PAIR.findall(pool.group(1))) if pool else {}
        seen[f"{kind}_op_num_threads"] = int(settings.get("thread_pool_size", -1))
        seen[f"{kind}_op_affinity"] = "" if "affinity_str" not in settings else _affinity(pool)
    entries = _ENTRIES.search(text)
    if entries:
        seen |= {key: value.strip('"') for key, value in _PAIR.findall(entries.group(1))}
    return seen


def _affinity(pool: re.Match[str] | None) -> str:
    found = re.search(r"affinity_str: ?(\S*) set_denormal", pool.group(1)) if pool else None
    return found.group(1) if found else ""


def _events(profile: Path) -> list[dict[str, Any]]:
    """Return the events of a profile; [] when it cannot be read: it is evidence, not a result."""
    try:
        events = json.loads(profile.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError):
        return []
    return [e for e in events if isinstance(e, dict)] if isinstance(events, list) else []


def kernels_of(profile: Path) -> dict[str, Any]:
    """Return the kernels of one run in order: their number, names and a digest of both.

    A kernel is an operator on an execution provider, as `Conv CPUExecutionProvider`.
    """
    run: list[str] = []
    for event in _events(profile):
        if event.get("name") == "model_run":
            break
        given = event.get("args")
        if event.get("cat") == "Node" and isinstance(given, dict) and "op_name" in given:
            run.append(f"{given['op_name']} {given.get('provider', '?')}")
    if not run:
        return {}
    return {"count": len(run), "names": run, "digest": digest(run)[:16]}


def profiled_runs(profile: Path) -> list[float]:
    """Return the durations of `Run` in seconds, as ONNX Runtime's profiler has them (1 us steps)."""
    return [
        event["dur"] * 1e-6
        for event in _events(profile)
        if event.get("name") == "model_run" and isinstance(event.get("dur"), int)
    ]


def _costs(cell: InferCell, facts: dict[str, Any]) -> dict[str, Any]:
    """Return operations and bytes of a run: from the ONNX graph where the runtime executes one.

    Bytes are the least traffic: weights and inputs read once, outputs written once.
    """
    if cell.exporter is None and not isinstance(WORKLOADS.get(cell.workload), OwnWorkload):
        workload = WORKLOADS.get(cell.workload)
        model = model_of(workload)
        costs = run_costs(model, workload.defaults, cell.batch, cell.precision)
        return {**costs, "costs_from": "model"}
    graph = facts.get("costs")
    if not graph:
        return {}
    return {
        "flops_per_run": cell.batch * graph["flops_per_sample"],
        "bytes_per_run": graph["weight_bytes"] + cell.batch * graph["end_bytes_per_sample"],
        "costs_from": "ONNX graph",
        "operators_without_rule": graph["operators_without_rule"],
    }


def _conditions(record: dict[str, Any], out: Path, log: str) -> dict[str, Any]:
    """Return what ONNX Runtime reports of the profiled session, and which library it was."""
    facts: dict[str, Any] = {key: record[key] for key in REPORTED if key in record}
    library = Path(str(record.get("library_file") or ""))
    if library.name:
        facts["library"] = library.name
        if library.is_file():
            facts["library_size"] = library.stat().st_size
    profile_file = record.get("profile_file")
    if isinstance(profile_file, str):
        profile = Path(profile_file) if Path(profile_file).is_absolute() else out / profile_file
        facts |= {"session_options_seen": options_seen(log), "kernels": kernels_of(profile)}
        runs = profiled_runs(profile)
        run_s = [ns * 1e-9 for ns in record.get("profile_run_ns", ())]
        # The first run also makes room; clocks of both have to tick often in a run.
        if len(runs) == len(run_s) > 1 and sum(runs[1:]) > 0:
            facts["run_over_profiler"] = sum(run_s[1:]) / sum(runs[1:])
        profile.unlink(missing_ok=True)
    return facts


def _program_bytes(cell: InferCell, python: str) -> int | None:
    """Return the size of what serving takes; None where it cannot be seen, as in an image.

    Libraries of other execution providers lie in the same package, and are not needed.
    """
    files = [path for path in RUNTIMES.get(cell.runtime).files(python) if path.exists()]
    below = {file for path in files for file in (path.rglob("*") if path.is_dir() else [path])}
    needed = [
        file
        for file in below
        if file.is_file() and not ("_providers_" in file.name and f"_{cell.provider}." not in file.name)
    ]
    return sum(file.stat().st_size for file in needed) or None


def _judge(
    cell: InferCell,
    record: dict[str, Any],
    model: Path,
    out: Path,
    python: str,
    log: str,
    started_ns: int | None,
    turns: dict[str, Any] | None,
) -> dict[str, Any]:
    """Make the result of a run that ended well: no time stands where the outputs are wrong."""
    facts = facts_of_model(of_batch(model, cell.batch))
    expected, mean = expected_outputs(model, cell, facts), facts.get("mean_tolerance", {})
    verdict = judge(read_tensors(out / "outputs"), expected, facts["tolerance"], mean)
    details = _conditions(record, out, log) | _costs(cell, facts)
    details |= {"tolerance": facts["tolerance"], "outputs_compared": verdict.compared}
    details |= {"outputs_expected": len(expected)} | ({"mean_tolerance": mean} if mean else {})
    rows = [len(value) for value in expected.values() if isinstance(value, np.ndarray) and value.ndim]
    details["rows_compared"] = max(rows, default=0)
    metrics, samples = verdict.metrics(), {}
    if not verdict.wrong:
        if cell.load is None:
            if turns is not None:
                record, details["turns"] = of_turns(record, turns)
            values = run_values(record, cell.batch)
            samples = run_samples(record, out, None if turns is None else SAMPLES_OF_TURNS)
            details["runs"] = len(record["run_ns"])
        else:
            values, samples = load_values(record, out), load_samples(record, out)
            details["requests"] = record["arrivals"]
        first, peak = record.get("first_result_ns"), record.get("peak_memory_bytes")
        # Clocks of two machines say nothing of each other; several sessions are made before a load.
        if cell.load is None and started_ns is not None and isinstance(first, int) and first > started_ns:
            values["first_result_time"] = (first - started_ns) * 1e-9
        if isinstance(peak, int):
            values["peak_memory"] = peak
        if (size := _program_bytes(cell, python)) is not None:
            values["program_bytes"] = size
        metrics |= values
    return result(
        wrong="; ".join(verdict.wrong),
        metrics=metrics,
        samples=samples,
        details=details,
        libraries={f"runtime {cell.runtime}": str(record["runtime_version"])},
    )


def conclude(
    cell: InferCell,
    model: Path,
    out: Path,
    code: int,
    *,
    python: str,
    log: str = "",
    started_ns: int | None = None,
    turns: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the result of a run whose program ended with `code`.

    `log` is what it printed; `started_ns` is CLOCK_MONOTONIC when it was started, on this machine; `turns` those that
    it took (`Job.turns`).
    Raises BadInput when it ran on another execution provider than it was asked for, or its record lacks what
    the contract says.
    """
    record = run_record(cell.runtime, out, code)
    if record["status"] == "skipped":
        return result(skipped=record.get("reason", "?"))
    if record["status"] != "ok":
        return result(
            status=Status.FAILED,
            cause=Cause(record.get("cause", "crash")),
            message=record.get("message", f"the runner ended with exit code {code}"),
        )
    if record.get("provider_used") != cell.provider:
        used = record.get("provider_used")
        raise BadInput(f"runner '{cell.runtime}' ran on {used}, the cell asks for {cell.provider}")
    served = ("start_ns", "end_ns")
    require_series(cell.runtime, record, ("run_ns", "bind_ns", "copy_ns") if cell.load is None else served)
    needed = ("runtime_version", "session_ns", "run_ns" if cell.load is None else "arrivals")
    if lacks := [key for key in needed if record.get(key) in (None, [])]:
        raise BadInput(f"the record of runner '{cell.runtime}' lacks {', '.join(lacks)}")
    return _judge(cell, record, model, out, python, log, started_ns, turns)
