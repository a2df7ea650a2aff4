"""Who answers first, who serves most, and under which load a queue grows."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import pytest
from make_records import make_record
from make_runtime_records import infer_record, load_record, runs
from said_of_records import Made, Sets, prose

from factories import infer_cell
from transect.analysis.groups import group_records
from transect.domain.record import Record
from transect.report.topics.serving.load_facts import highest_load, is_saturated
from transect.runtimes.prepare import arrival_times

WIDE = (1.0, 1.3, 0.8, 1.1, 0.9, 1.2)
TIMES = (1.0, 1.001, 1.002, 1.003, 1.004, 1.005)
IDENTITY = {"workload": "identity-1k", "exporter": "onnx"}
COMPARED = ("top1_agreement", "max_abs_difference", "max_rel_difference")


def inside(runtime: str, latency: float, parts: list[str], **more: Any) -> list[Record]:
    """Repeats of a language whose Run is the whole call."""
    return [
        infer_record(
            runtime,
            latency * t,
            n,
            details={"run_includes": parts},
            metrics={"bind_time": 0.0, "copy_time": 0.0, "end_to_end_time": latency * t},
            **more,
        )
        for n, t in enumerate(TIMES)
    ]


def without(records: list[Record], *names: str) -> list[Record]:
    return [
        record.model_copy(update={"metrics": [m for m in record.metrics if m.name not in names]}) for record in records
    ]


def calls() -> list[Record]:
    """Make calls of C, and of Rust that does as much inside of Run."""
    return [
        *runs("c", 1e-6, metrics={"end_to_end_time": 2e-6}, **IDENTITY),
        *runs("rust", 1.1e-6, metrics={"end_to_end_time": 4e-6}, **IDENTITY),
    ]


SETS = Sets(
    # Run alone: cpp 100 us and go 110 us; whole calls: cpp 120 us and go 110 us.
    whole_calls=lambda: [
        *(infer_record("cpp", 1e-4 * t, n, metrics={"end_to_end_time": 1.2e-4 * t}) for n, t in enumerate(TIMES)),
        *inside("go", 1.1e-4, ["copy"]),
    ],
    batches=lambda: [
        *runs("cpp", 1e-4),
        *inside("go", 1e-4, ["copy"]),
        *runs("cpp", 4e-4, batch=8),
        *inside("go", 8e-4, ["copy"], batch=8),
    ],
    # Nothing is told apart at either batch: one sentence.
    open_at_both=lambda: [
        *(infer_record("c", 1e-4 * t, n, batch=b) for b in (1, 8) for n, t in enumerate(WIDE)),
        *(infer_record("python", 1.1e-4 * t, n, batch=b) for b in (1, 8) for n, t in enumerate(WIDE[::-1])),
        *(infer_record("go", 5e-4 * t, n, batch=b) for b in (1, 8) for n, t in enumerate(TIMES)),
    ],
    same_parts=lambda: [*inside("python", 1e-4, ["bind"]), *inside("go", 2e-4, ["bind"])],
    run_alone=lambda: [*without(runs("cpp", 1e-4), "end_to_end_time"), *inside("go", 2e-4, ["copy"])],
    no_classes=lambda: without([*runs("cpp", 1e-4), *runs("c", 2e-4)], "top1_agreement"),
    not_compared=lambda: without([*runs("cpp", 1e-4), *runs("c", 2e-4)], *COMPARED),
    calls=lambda: [*calls(), *inside("go", 3e-6, ["bind", "copy"], **IDENTITY)],
)


def test_prose(snapshot: Any) -> None:
    sections = [Made("runtimes", *runs).prose for runs in (SETS["calls"], calls())]
    assert prose(SETS, "runtime", "call") | {"sections": sections} == snapshot


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
    both = LOAD_SETS["agreeing"]
    kept = [run for run in both if run.cell.repeat != 5 or run.cell.get("load") != 4000]
    return [*kept, load_record("cpp", 4000.0, 1, 2000.0, 5), load_record("python", 4000.0, 1, 1500.0, 5)]


LOAD_SETS = Sets(
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


def test_prose_load(snapshot: Any) -> None:
    assert prose(LOAD_SETS, "load") == snapshot
