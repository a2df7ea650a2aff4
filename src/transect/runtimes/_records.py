"""The record that a runner writes of its run, in every mode: docs/runner-contract.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transect.domain.record import Cause

# Told as they are; some runners have more to say than others.
REPORTED = (
    "session_options",
    "options_not_set",
    "runtime_version",
    "provider_used",
    "stop_reason",
    "run_includes",
    "language_version",
    "language_options",
    "cpus_allowed",
    "input_residency",
    "clock_resolution_ns",
    "build_info",
    "peak_memory_of",
    "webgpu_adapter",
    "wasm_threads",
    "garbage_collection",
)


def read_runner_record(path: Path, code: int) -> dict[str, Any]:
    """Return the runner's record, or a failed one when it left none."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(record, dict):
            if record.get("status") == "ok" and code != 0:
                return _no_record(code, "after it wrote its record")
            return record
    except (OSError, ValueError):
        pass
    return _no_record(code, "without a readable record")


def _no_record(code: int, when: str) -> dict[str, Any]:
    ended = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
    # SIGKILL and SIGTERM come from outside; SIGSEGV, SIGABRT and the like are its own.
    cause = Cause.KILLED if code in (-9, -15) else Cause.CRASH
    return {"status": "failed", "cause": cause.value, "message": f"the runner {ended} {when}"}
