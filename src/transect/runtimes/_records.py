"""The record that a runner writes of its run, in every mode: docs/runner-contract.md."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from transect.domain.errors import BadInput
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
        status = record["status"]
        if status == "failed":
            Cause(record.get("cause", Cause.CRASH.value))
    except (OSError, ValueError, TypeError, KeyError) as error:
        why = f" ({type(error).__name__}: {error})" if path.exists() else ""
        return _no_record(code, f"without a readable record{why}")
    if status not in ("ok", "failed", "skipped"):
        return _no_record(code, f"with a record of status {status!r}, expected ok, failed or skipped")
    return _no_record(code, "after it wrote its record") if status == "ok" and code != 0 else record


def require_series(runner: str, record: Mapping[str, Any], names: Iterable[str], amount: int | None = None) -> None:
    """Raise BadInput unless each is a list of numbers, of times >= 0, all of one length: `amount` where it is given."""
    for name in names:
        series, least = record.get(name), 0 if name.endswith("_ns") else -math.inf
        if not isinstance(series, list) or not all(
            isinstance(number, (int, float)) and number >= least for number in series
        ):
            raise BadInput(f"runner '{runner}' reported {name} {series!r:.80}, expected a list of numbers >= {least}")
        amount = len(series) if amount is None else amount
        if len(series) != amount:
            raise BadInput(f"runner '{runner}' reported {len(series)} {name}, expected {amount}")


def _no_record(code: int, when: str) -> dict[str, Any]:
    ended = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
    # SIGKILL and SIGTERM come from outside; SIGSEGV, SIGABRT and the like are its own.
    cause = Cause.KILLED if code in (-9, -15) else Cause.CRASH
    return {"status": "failed", "cause": cause.value, "message": f"the runner {ended} {when}"}
