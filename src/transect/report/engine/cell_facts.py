"""Facts of machine and versions that should be the same for two records to be compared, and how they are written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from transect.report.engine.text import clean, quantity

# By group and path in the provenance.
FACTS = {
    "Machine": (
        "system.name",
        "system.description",
        "system.interconnect",
        "slurm.SLURM_JOB_NODELIST",
        "host",
        "cpu_model",
        "sockets",
        "cores",
        "numa_nodes",
        "memory_bytes",
        "kernel",
        "cgroup",
        "gpus",
    ),
    "Versions": ("environment.name", "environment.lock_hash", "mpi", "git.commit", "git.dirty"),
}


def fact_at(provenance: Mapping[str, Any], path: str) -> Any:
    """Return what stands at a path such as `git.commit`; None when nothing does."""
    value: Any = provenance
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return None if value in ([], {}, "") else value


def shown(fact: str, value: Any) -> str:
    """Write the value of a fact."""
    if fact.endswith("_bytes") and isinstance(value, (int, float)) and not isinstance(value, bool):
        return quantity(float(value), "B")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (dict, list, tuple)):
        return clean(json.dumps(value, sort_keys=True, ensure_ascii=False, default=str))
    return clean(str(value))


def title_of(path: str) -> str:
    """Name a fact of the provenance in words.

    >>> title_of("cpu_model")
    'CPU model'
    """
    path = path.replace("slurm.SLURM_JOB_NODELIST", "nodes of the job")
    return path.replace("_bytes", "").replace("_", " ").replace(".", " ").replace("cpu", "CPU")
