"""Under an offered load: when a queue grows, and who serves most without one."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import pytest
from make_records import make_record
from make_runtime_records import load_record
from said_of_records import Sets, prose

from factories import infer_cell
from transect.analysis.groups import group_records
from transect.analysis.offered_load import highest_load, is_saturated
from transect.domain.record import Record
from transect.runtimes.prepare import arrival_times


def served(load: float, service_s: float, *, sessions: int = 1, repeat: int = 0, runtime: str = "cpp") -> Record:
    """Serve the arrivals of two seconds by calls of one length, as a runner does.

    It takes none after twice the time of the last arrival.
    """
    arrivals_s = arrival_times(load, 2.0) * 1e-9
    free, ends = [0.0] * sessions, []
    for arrival in arrivals_s:
        begin = max(heapq.heappop(free), arrival)
        heapq.heappush(free, begin + service_s)
        if begin < 2 * arrivals_s[-1]:
            ends.append(begin + service_s)
    waited = np.array(ends) - arrivals_s[: len(ends)]
    cell = infer_cell(runtime, repeat, workload="tickets", exporter="torch-dynamo", load=load, sessions=sessions)
    metrics = {
        "load_latency": float(np.median(waited)),
        "served_rate": len(ends) / max(ends),
        "served_share": len(ends) / len(arrivals_s),
    }
    return make_record(cell, metrics, details={"requests": len(arrivals_s)})


def saturated(*records: Record) -> bool:
    [group] = group_records(list(records))
    return is_saturated(group)


@pytest.mark.parametrize("load", [5.0, 20.0, 100.0, 500.0, 2000.0])
def test_a_runtime_saturates_at_what_it_serves_whatever_was_drawn(load: float) -> None:
    verdicts = {use: saturated(served(load, use / load)) for use in (0.3, 0.5, 0.7, 2.0, 3.0)}
    assert verdicts == {0.3: False, 0.5: False, 0.7: False, 2.0: True, 3.0: True}
    assert saturated(served(load, 3.0 / load, sessions=2))
    assert not saturated(served(load, 0.8 / load, sessions=2))


def test_one_long_call_is_no_queue() -> None:
    # Four requests in two seconds, and each takes 0.15 s: 0.93 of their rate until the last result.
    slow = served(2.0, 0.15)
    assert (slow.value("served_rate") or 9.0) < 0.95 * 2.0
    assert not saturated(slow)


def test_runs_are_judged_one_by_one() -> None:
    fine = load_record("cpp", 4000.0, 1, 9000.0)
    late = [
        fine.model_copy(
            update={
                "cell": fine.cell.changed(repeat=n),
                "metrics": [
                    m.model_copy(update={"value": 3000.0}) if m.name == "served_rate" else m for m in fine.metrics
                ],
            }
        )
        for n in (1, 2)
    ]
    assert not saturated(fine) and saturated(late[0])
    assert saturated(fine, late[0]) and saturated(fine, *late)
    more = load_record("cpp", 4000.0, 1, 9000.0, 3)
    assert not saturated(fine, late[0], more)


def test_no_load_beyond_one_that_saturates_is_kept_up_with() -> None:
    loads = [load_record("cpp", load, 1, 500.0 if load == 300 else 9000.0) for load in (100.0, 300.0, 600.0)]
    assert highest_load(group_records(loads)) == 600.0
    loads[1] = load_record("cpp", 300.0, 1, 100.0)
    assert highest_load(group_records(loads)) == 100.0


# The finding.


def offered(
    runtime: str, capacity: float, amount: int = 1, loads: tuple[float, ...] = (), sessions: int = 1
) -> list[Record]:
    return [
        load_record(runtime, load, sessions, capacity, n)
        for load in loads or (100.0, 1000.0, 4000.0, 8000.0)
        for n in range(amount)
    ]


def odd_repeat() -> list[Record]:
    """Make the sixth run at 4000 requests/s unlike the five before."""
    both = SETS["agreeing"]
    kept = [one for one in both if one.cell.repeat != 5 or one.cell.get("load") != 4000]
    return [*kept, load_record("cpp", 4000.0, 1, 2000.0, 5), load_record("python", 4000.0, 1, 1500.0, 5)]


SETS = Sets(
    three=lambda: [*offered("cpp", 9000.0), *offered("python", 5000.0), *offered("java", 1500.0)],
    agreeing=lambda: [*offered("cpp", 5000.0, 6), *offered("python", 1500.0, 6)],
    odd=odd_repeat,
    alike=lambda: [*offered("cpp", 90000.0, 6), *offered("python", 80000.0, 6)],
    nobody=lambda: [*offered("cpp", 50.0), *offered("python", 50.0)],
    offered_to_some=lambda: [
        *offered("cpp", 9000.0),
        *offered("python", 9000.0, loads=(1000.0,)),
        *offered("java", 500.0, loads=(100.0, 1000.0)),
    ],
    sessions=lambda: [
        *offered("cpp", 5000.0),
        *offered("python", 1500.0),
        *offered("cpp", 90000.0, sessions=2),
        *offered("python", 5000.0, sessions=2),
    ],
)


def test_prose(snapshot: Any) -> None:
    assert prose(SETS, "load") == snapshot
