"""When a study's limits make a record stale."""

from __future__ import annotations

from typing import Any

import pytest

from transect.engine.store import outgrown

MIB = 2**20


def facts(cause: str | None = None, nodes: int = 1, **details: Any) -> dict[str, Any]:
    limits = {"seconds": 100.0, "memory_mb": 500}
    return {"cause": cause, "cell": {"nodes": nodes}, "details": details, "limits": limits}


RAN = {"payload_s": 40.0, "payload_peak_bytes": 200 * MIB}
# A record, limits in seconds and MB, and words of the reason when it is stale.
CASES = [
    (facts(**RAN), (100, 500), None),
    (facts(**RAN), (40, 200), None),
    (facts(**RAN), (39.9, 500), "took 40 s"),
    (facts(**RAN), (100, 199), "held 200 MB"),
    (facts("wrong-result", **RAN), (30, 500), "took 40 s"),
    # Ranks that srun started are none of the runner's children: theirs count per node.
    (facts(nodes=2, payload_peak_bytes=1, rank_peak_memory_bytes=[300 * MIB] * 2), (100, 300), None),
    (facts(payload_peak_bytes=1, rank_peak_memory_bytes=[300 * MIB] * 2), (100, 300), "held 600"),
    # It ran under these very limits: peaks that do not fall together, its own end that took a moment.
    (facts(payload_peak_bytes=1, rank_peak_memory_bytes=[300 * MIB] * 2), (100, 500), None),
    (facts(payload_peak_bytes=1, rank_peak_memory_bytes=[300 * MIB] * 2), (100, 499), "held 600"),
    (facts(payload_s=100.01), (100, 500), None),
    (facts(payload_s=100.01), (99, 500), "took 100 s"),
    (facts("timeout", payload_s=100.2), (100, 500), None),
    (facts("timeout", payload_s=100.2), (101, 500), "ended at limits.seconds: 100"),
    (facts("out-of-memory", payload_peak_bytes=501 * MIB), (100, 500), None),
    (facts("out-of-memory", payload_peak_bytes=501 * MIB), (900, 400), None),
    (facts("out-of-memory", payload_peak_bytes=501 * MIB), (100, 501), "limits.memory_mb: 500"),
    (facts("out-of-memory", payload_peak_bytes=501 * MIB), (100, None), "which is null now"),
    # A GPU's memory, without any limit of ours.
    (facts("out-of-memory") | {"limits": {"seconds": 100.0, "memory_mb": None}}, (100, 900), None),
    # Never started, or settled by others.
    (facts("unsupported"), (1, 16), None),
]


@pytest.mark.parametrize(("record", "limits", "words"), CASES)
def test_a_record_holds_while_it_fits(record, limits, words):
    told = outgrown(record, {"seconds": limits[0], "memory_mb": limits[1]})
    assert (told is None) == (words is None)
    assert words is None or words in told
