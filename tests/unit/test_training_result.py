"""What ranks used, as metrics of the cell."""

from __future__ import annotations

from transect.stages.train.result import _energy, _overlap, _usage


def rank(host, *counters, **usage):
    energy = [{"source": source, "joules": joules} for source, joules in counters]
    return {"host": host, "usage": {"cpu_utilisation": 1.0, "energy": energy, **usage}}


def test_energy_counts_each_counter_of_a_node_once():
    facts = [
        rank("a", ("rapl:package-0", 5.0), ("rapl:package-0:dram", 1.0), ("nvml:0", 10.0)),
        rank("a", ("nvml:0", 10.0)),
        rank("b", ("rapl:package-0", 7.0), ("rapl:package-1", 1.0), ("nvml:0", 20.0)),
    ]
    found = {one.label: one.value for one in _energy(facts)}
    assert found == {"rapl package": 13.0, "rapl dram": 1.0, "nvml": 30.0}
    assert _energy([rank("a")]) == []


def test_usage_is_told_by_all_ranks_or_by_none():
    facts = [rank("a", gpu_utilisation_mean=0.5), rank("a", gpu_utilisation_mean=0.7)]
    assert _usage(facts) == {"cpu_utilisation": 1.0, "gpu_utilisation": 0.6}
    assert _usage([facts[0], rank("a")]) == {"cpu_utilisation": 1.0}


def test_overlap_is_what_is_not_waited_for():
    import numpy as np

    waited, total = np.full((2, 10), 1.0), np.full((2, 10), 4.0)
    assert _overlap({"communication": waited, "under_way": total}) == {"overlap": 0.75}
    # Not told, and nothing sent.
    assert _overlap({"communication": waited, "under_way": total * np.nan}) == {}
    assert _overlap({"communication": waited * 0, "under_way": total * 0}) == {}
