"""Which offered load a runtime keeps up with, and which makes its queue grow."""

from __future__ import annotations

import math
from collections.abc import Iterable

from transect.analysis.entries import AnyRecord
from transect.analysis.serving import InferGroup

# Below this share of requests served, the run ended before its queue did.
_SERVED = 0.99
# How far the last result may come after the last arrival, over the run's time, a median latency
# aside. Latency grows evenly in a growing queue, so that its median is half of that distance: a
# load 5 % above what is served is at the edge, and one call that is long beside the run is no queue.
_LATE = 0.025
# Arrivals come in bursts, and a queue that does not grow may be as late over the root of their
# number: in simulated queues this is exceeded in 1 run of 30 or less at four fifths of the capacity.
_BURSTS = 0.5


def _is_saturated(record: AnyRecord, load: float) -> bool | None:
    share, rate = record.value("served_share"), record.value("served_rate")
    if share is not None and share < _SERVED:
        return True
    if rate is None or share is None:
        return None
    # The last arrival is at `requests / load`; without their number nothing is set aside.
    late, limit = share * (load / rate - 1), _LATE
    requests, latency_s = record.details.get("requests"), record.value("load_latency")
    if isinstance(requests, int) and requests > 0 and latency_s is not None:
        late -= latency_s * load / requests
        limit = max(limit, _BURSTS / math.sqrt(requests))
    return late > limit


def saturation(group: InferGroup) -> list[bool]:
    """Return whether requests came faster than they were served, for each usable run that reports it."""
    load = group.cell.load
    verdicts = [_is_saturated(record, load) for record in group.ok] if load is not None else []
    return [verdict for verdict in verdicts if verdict is not None]


def is_saturated(group: InferGroup) -> bool:
    """Whether the queue grew in half of the runs or more: its latency is one of the run's length."""
    verdicts = saturation(group)
    return bool(verdicts) and 2 * sum(verdicts) >= len(verdicts)


def highest_load(groups: Iterable[InferGroup]) -> float:
    """Return the highest load up to which none saturates, of groups that differ in it; or 0."""
    highest = 0.0
    for group in sorted(groups, key=lambda group: group.cell.load or 0.0):
        if is_saturated(group) or not saturation(group):
            break
        highest = group.cell.load or 0.0
    return highest
