"""What ONNX Runtime itself says of a session: the options that it had, the kernels that it ran.

So that conditions were equal in two languages is seen, not believed. Both come from the profiled
session of the runner contract: its log at severity `info`, and its profile.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from transect.domain.files import digest

_SESSION = re.compile(r"Session Options \{(.*)")
_POOL = r"%s_op_param:OrtThreadPoolParams \{([^}]*)\}"
_ENTRIES = re.compile(r"config_options: \{([^}]*)\}")
_PAIR = re.compile(r"(\S+?): ?(\S+)")
_MODES = {"0": "sequential", "1": "parallel"}
# The levels of ONNX Runtime's GraphOptimizationLevel, and as TransformerLevel counts them.
_LEVELS = {"0": "disabled", "1": "basic", "2": "extended", "3": "layout", "4": "all", "99": "all"}


def options_seen(log: str) -> dict[str, Any]:
    """Return the session options that the last session told in a log; {} where none did."""
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
        told = dict(_PAIR.findall(pool.group(1))) if pool else {}
        seen[f"{kind}_op_num_threads"] = int(told.get("thread_pool_size", -1))
        seen[f"{kind}_op_affinity"] = "" if "affinity_str" not in told else _affinity(pool)
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
