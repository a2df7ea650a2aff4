"""Limits say whether a payload may go on, not what it computes: a record holds while it fits them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transect.domain.record import Cause

_MIB = 2**20


def used_limits(limits: Mapping[str, Any]) -> dict[str, Any]:
    """Return those limits that end a payload: `seconds`, `memory_mb`."""
    return {key: limits[key] for key in ("seconds", "memory_mb")}


def _peak_bytes(details: Mapping[str, Any], nodes: int) -> float:
    """Return the most that a payload is known to have held on a node.

    srun's ranks are none of its children: they tell themselves.
    """
    ranks = [one for one in details.get("rank_peak_memory_bytes") or () if one]
    return max(details.get("payload_peak_bytes") or 0, sum(ranks) / nodes)


def outgrown(record: Mapping[str, Any], limits: Mapping[str, Any]) -> str | None:
    """Return why a record does not hold under these limits, or None.

    One that ended at a limit holds unless there is more room now; any other as long as what it
    used fits, or the limit is not below the one that it ended well under: ranks' own peaks, which
    need not fall together, and pages that they share may sum to more than a limit that held.
    `record` has the keys of `transect.domain.record.Record`.
    """
    was, details = record.get("limits") or {}, record.get("details") or {}
    seconds, memory = limits["seconds"], limits["memory_mb"]
    if record.get("cause") == Cause.TIMEOUT:
        if was and seconds > was["seconds"]:
            return f"it ended at limits.seconds: {was['seconds']:g}, which is {seconds:g} now"
        return None
    if record.get("cause") == Cause.OUT_OF_MEMORY:
        old = was.get("memory_mb")
        if old is not None and (memory is None or memory > old):
            return f"it ended at limits.memory_mb: {old}, which is {memory or 'null'} now"
        return None
    took = details.get("payload_s")
    if took is not None and took > seconds and not ("seconds" in was and seconds >= was["seconds"]):
        return f"it took {took:.3g} s, more than limits.seconds: {seconds:g} now allows"
    held = _peak_bytes(details, record.get("cell", {}).get("nodes", 1))
    kept_to = was.get("memory_mb")
    if memory is not None and held > memory * _MIB and not (kept_to and memory >= kept_to):
        return f"it held {held / _MIB:.0f} MB, more than limits.memory_mb: {memory} now allows"
    return None
