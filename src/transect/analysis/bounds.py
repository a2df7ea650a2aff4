"""Bounds: what the hardware allows, from benchmarks that ran in this study.

The roofline of Williams, Waterman and Patterson, "Roofline: an insightful visual performance
model", CACM 52(4), 2009: a step takes at least its operations over the peak rate and at least
its bytes over the memory bandwidth.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from transect.analysis.entries import AnyRecord
from transect.analysis.groups import Group
from transect.domain.record import Status

_DOUBLE = frozenset({"hpl", "hpcc", "hpcg"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """The best rate that a benchmark showed: FLOP/s or B/s on one node with so many threads.

    `cache_bytes` is the last-level cache that the arrays of a memory benchmark exceeded; 0 where it did not say.
    """

    value: float
    benchmark: str
    label: str | None
    threads: int
    cell_id: str
    precision: str | None = None
    cache_bytes: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """The least time, in s, that a step or run can take here, and the side that sets it: `arithmetic` or `memory bandwidth`."""

    time_s: float
    kind: str
    flops: Rate
    bandwidth: Rate

    def rate(self, samples: float) -> float:
        """Return the largest rate in 1/s for `samples` per step."""
        return samples / self.time_s


class Rates:
    """Peak rates of the machine by number of threads, from ok bench records."""

    def __init__(self, records: Iterable[AnyRecord]) -> None:
        # By metric, threads and, for arithmetic, precision.
        self._best: dict[tuple[str, int, str], Rate] = {}
        for record in records:
            # Several ranks print rates per process and of all together: not a rate of threads.
            if record.stage != "bench" or record.status is not Status.OK or record.point.ranks > 1:
                continue
            for number in record.metrics:
                if number.name in ("flops", "memory_bandwidth") and number.value > 0:
                    rate = Rate(
                        value=number.value,
                        benchmark=record.point.get("benchmark") or record.cell_id,
                        label=number.label,
                        precision=number.log.precision if number.log else None,
                        threads=record.point.threads,
                        cell_id=record.cell_id,
                        cache_bytes=_cache_bytes(record),
                    )
                    # As its label or its benchmark tells it.
                    named = rate.precision or ("fp64" if rate.benchmark in _DOUBLE else record.point.precision)
                    key = (number.name, rate.threads, named if number.name == "flops" else "")
                    if key not in self._best or rate.value > self._best[key].value:
                        self._best[key] = rate

    def best(self, name: str, threads: int, precision: str = "fp32") -> Rate | None:
        """Return the highest rate with exactly that many threads, or None.

        For `flops` a benchmark of another precision is no bound: a label that names a
        precision, a benchmark that has but one, or else the cell's precision, has to match.
        """
        return self._best.get((name, threads, precision if name == "flops" else ""))

    def every(self) -> list[tuple[str, str, Rate]]:
        """Return (metric, precision, rate) of all that bounds are made of: arithmetic first, then by threads."""
        found = ((name, precision, threads, rate) for (name, threads, precision), rate in self._best.items())
        return [(name, precision, rate) for name, precision, _, rate in sorted(found, key=lambda each: each[:3])]


def _cache_bytes(record: AnyRecord) -> float:
    runs = record.details.get("runs") or [{}]
    known = (runs[0].get("parameters") or {}).get("cache_bytes")
    return float(known) if isinstance(known, (int, float)) else 0.0


def step_bound(group: Group, rates: Rates) -> Bound | None:
    """Bound of one training step: every rank of a node shares that node's peak rates.

    The benchmark has to have run with as many threads as the node's ranks use together.
    `flops_per_step` and `bytes_per_step` are those of one rank. None when anything is missing,
    and for over-subscribed groups and other devices than the CPU.
    """
    cell = group.cell
    if group.over_subscribed or cell.device != "cpu":
        return None
    return _bound(group, rates, "step", cell.ranks_per_node, cell.ranks_per_node * cell.threads)


def run_bound(group: Group, rates: Rates) -> Bound | None:
    """Bound of one inference run on the CPU with the cell's threads. None as for `step_bound`."""
    if group.cell.get("provider") not in (None, "cpu") or group.cell.device != "cpu":
        return None
    return _bound(group, rates, "run", 1, group.cell.threads)


def _bound(group: Group, rates: Rates, unit: str, share: int, threads: int) -> Bound | None:
    flops, size = group.detail(f"flops_per_{unit}"), group.detail(f"bytes_per_{unit}")
    peak = rates.best("flops", threads, group.cell.precision)
    bandwidth = rates.best("memory_bandwidth", threads)
    if flops is None or size is None or peak is None or bandwidth is None:
        return None
    compute_s, memory_s = share * flops / peak.value, share * size / bandwidth.value
    if share * size <= bandwidth.cache_bytes:
        # It may stay in the cache from one run to the next, to which the bandwidth of the memory is no bound.
        memory_s = 0.0
    if max(compute_s, memory_s) <= 0:
        return None
    return Bound(
        time_s=max(compute_s, memory_s),
        kind="arithmetic" if compute_s >= memory_s else "memory bandwidth",
        flops=peak,
        bandwidth=bandwidth,
    )
