"""The record that a runner writes of its run, in every mode: docs/runner-contract.md."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from transect.domain.errors import BadInput

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
