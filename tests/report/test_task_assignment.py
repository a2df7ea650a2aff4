"""The section on how loops are dealt out to threads: who is fastest, what a chunk costs, and where threads are."""

from __future__ import annotations

import pytest
from make_records import make_record
from said_of_records import Made, context

from factories import bench_cell, log_run
from transect.analysis.groups import group_records
from transect.domain.record import MetricValue, Record
from transect.report.engine.finding import Finding
from transect.report.topics.docking.assignment import assignment_findings, assignments, pinnings
from transect.report.topics.docking.facts import contests, docking_rows
from transect.report.topics.docking.findings import docking_findings

REPEATS, POSES, THREADS = 6, 262144, 2
BASE_S, CHUNK_S = 0.02, 1.3e-7


def dealt(
    schedule: str,
    chunk: int = 0,
    *,
    pin: str = "close",
    cost: float = CHUNK_S,
    times: float = 1.0,
    container: str | None = None,
) -> list[Record]:
    """Return runs of one work-item for each pose, of which each chunk costs a thread so many seconds."""
    records = []
    size = chunk or (POSES // THREADS if schedule == "static" else 1)
    for repeat in range(REPEATS):
        options = {"implementation": "openmp", "deck": "tiny", "poses": POSES, "ppwi": 1, "schedule": schedule}
        options |= {"chunk": chunk} if chunk else {}
        options |= {"pin": pin} if pin != "none" else {}
        dealing = cost * (POSES / size) / THREADS if schedule == "dynamic" else 0.0
        seconds = times * (BASE_S + dealing) * (1 + 0.002 * repeat) / POSES
        parameters = {
            "implementation": "openmp",
            "deck": "tiny",
            "poses": POSES,
            "poses_per_item": 1,
            "schedule": schedule,
        }
        cell = bench_cell("docking-probe", options, threads=THREADS, repeat=repeat, container=container)
        run = log_run("output.log", "docking-probe", parameters=parameters)
        metric = MetricValue.of("pose_time", seconds, "pose-time_median")
        records.append(make_record(cell, [metric], details={"runs": [run]}))
    return records


SET = [
    *dealt("static"),
    *dealt("dynamic", 1),
    *dealt("dynamic", 4),
    *dealt("dynamic", 64),
    *dealt("guided", 1, times=1.3),
    *dealt("static", pin="none", times=1.5),
]


def findings_of(records: list[Record]) -> list[Finding]:
    return assignment_findings(context(*records))


def test_the_slope_over_chunks_is_what_a_chunk_costs_a_thread() -> None:
    [one] = assignments(docking_rows(group_records(SET)))
    assert len(one.rows) == 5, "what is pinned otherwise is another set"
    cost = one.cost("dynamic")
    assert cost is not None and cost.count == REPEATS
    assert cost.low < cost.median < cost.high and cost.median == pytest.approx(CHUNK_S, rel=0.02)
    assert one.cost("static") is None, "one size of chunks has no slope"
    chunks = {(row.schedule, row.chunk): one.chunks(row) for row in one.rows}
    assert chunks == {
        ("static", 0): 2,
        ("dynamic", 1): POSES,
        ("dynamic", 4): POSES // 4,
        ("dynamic", 64): POSES // 64,
        ("guided", 1): None,
    }


def test_what_runs_in_a_container_is_another_set() -> None:
    sizes = (1, 4, 64)
    slow = [*dealt("static", container="apptainer"), *dealt("static", container="apptainer", pin="none")]
    slow += [run for size in sizes for run in dealt("dynamic", size, cost=3 * CHUNK_S, container="apptainer")]
    rows = docking_rows(group_records([*SET, *slow]))
    plain, inside = (one.cost("dynamic") for one in assignments(rows))
    assert plain is not None and plain.high < 1.1 * CHUNK_S
    assert inside is not None and inside.low > 2.9 * CHUNK_S
    assert [one.title.endswith("in apptainer") for one in assignments(rows)] == [False, True]
    assert [len(alike) for alike in pinnings(rows)] == [2, 2]


def test_the_fastest_schedule_is_decided_and_a_chunk_has_its_price() -> None:
    [found] = findings_of(SET)
    assert found.confidence == "confirmed" and found.topic == "schedule"
    assert "dealt out static" in found.claim and "guided, chunk 1 takes 1.3 times as long" in found.claim
    assert (
        "each chunk of a dynamic schedule costs 0.131 µs (" in found.claim
        and "6 runs) of a thread's time" in found.claim
    )
    assert found.scope == "tiny, 262144 work-items of 1 pose, 2 threads, pinned close"


def test_chunks_that_cost_nothing_that_is_seen_are_said_to_be_so() -> None:
    noisy = [
        record.model_copy(
            update={"metrics": [MetricValue.of(m.name, m.value * (1 + 0.2 * (i % 3)), m.label) for m in record.metrics]}
        )
        for size in (1, 4, 64)
        for i, record in enumerate(dealt("dynamic", size, cost=0.0, times=1.0 + 0.01 * (size == 64)))
    ]
    [found] = findings_of([*dealt("static"), *noisy])
    assert "what a chunk of a dynamic schedule costs a thread is not seen" in found.claim


def test_where_threads_are_is_set_beside_threads_that_nobody_pins() -> None:
    [alike] = pinnings(docking_rows(group_records(SET)))
    assert [(row.schedule, row.where) for row in alike] == [("static", "close"), ("static", "")]
    said = [found.claim for found in docking_findings(context(*SET)) if found.topic == "threads"]
    assert said == ["OpenMP on 2 threads pinned as close (static) is 1.5 times as fast as not pinned."]


def test_ways_to_deal_out_are_no_contest_of_models() -> None:
    assert contests(docking_rows(group_records(SET))) == []


def test_the_section_draws_every_schedule_and_every_place() -> None:
    made = Made("task-assignment", *SET)
    assert "what dealing out costs" in made.prose and "a chunk of a dynamic schedule costs 0.13" in made.prose
    assert "pinned close is fastest by the median" in made.prose
