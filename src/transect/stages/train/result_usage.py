"""What ranks used of their machines, as metrics of a training."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.domain.record import MetricValue

_USAGE = {
    "cpu_utilisation": "cpu_utilisation",
    "gpu_utilisation": "gpu_utilisation_mean",
    "gpu_memory": "gpu_memory_max_bytes",
}


def usage_values(facts: list[dict[str, Any]]) -> dict[str, float]:
    """Return the mean over ranks of what each used; nothing where one of them does not report it."""
    means = {}
    for name, key in _USAGE.items():
        values = [rank["usage"].get(key) for rank in facts]
        if None not in values:
            means[name] = float(np.mean(values))
    return means


def energy_values(facts: list[dict[str, Any]]) -> list[MetricValue]:
    """Return the energy of all nodes by kind of counter: `nvml`, `rapl package`, `rapl dram`.

    A counter belongs to a node, not to a rank: ranks that share a GPU read the same one.
    """
    counters = {
        (rank["host"], counter["source"]): counter["joules"] for rank in facts for counter in rank["usage"]["energy"]
    }
    total: dict[str, float] = {}
    for (_, source), joules in counters.items():
        kind, _, place = source.partition(":")
        if kind == "rapl":
            kind = f"rapl {place.partition(':')[2] or place.partition('-')[0]}"
        total[kind] = total.get(kind, 0.0) + joules
    return [MetricValue.of("energy", joules, label=kind) for kind, joules in sorted(total.items())]
