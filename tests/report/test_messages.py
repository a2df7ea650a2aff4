"""What a report says of libraries that move messages between ranks."""

from __future__ import annotations

from typing import Any

from said_of_records import context

from factories import bench_cell, log_run, make_record
from transect.domain.record import LogPoint, MetricValue, Record
from transect.report.topics.messages import messages_findings
from transect.stats.comparisons import Confidence


def sweeps(benchmark: str, seconds: float, *, size: int = 2**20, ranks: int = 2, heat: str = "h") -> list[Record]:
    """Three sweeps that took turns."""
    records = []
    for repeat in range(3):
        cell = bench_cell(benchmark, {"compared_size": size}, repeat=repeat, ranks_per_node=ranks)
        times = [seconds * (1 + 0.02 * turn + 0.01 * repeat * (turn % 2)) for turn in range(12)]
        turns = {"heat": f"{heat}{repeat}", "metric": "operation_time", "seconds": times, "quiet": [True] * 12}
        point = LogPoint(series="operation", size=size)
        records.append(
            make_record(
                cell,
                [
                    # The table's own rows, of which the first is of the least size.
                    MetricValue.of("collective_time", 9e-7, "avg_latency 4", LogPoint(series="avg_latency", size=4)),
                    MetricValue.of("operation_time", seconds, f"operation {size}", point),
                ],
                details={
                    "runs": [log_run("output.log", "message-sweep", parameters={"test": "Allreduce Latency"})],
                    "turns": turns | {"counts": [9] * 12},
                },
            )
        )
    return records


def test_prose_of_libraries_that_are_compared_at_one_size_on_equal_ranks_turn_by_turn() -> None:
    both = [*sweeps("message-sweep", 1e-4), *sweeps("message-sweep-torch", 4e-4)]
    # Alone with its size and with its ranks: no rival.
    alone = [*sweeps("message-sweep-torch", 1e-6, size=1024), *sweeps("message-sweep", 1e-6, ranks=4)]
    [found] = messages_findings(context(*both, *alone))
    assert found.text == (
        "All-reduce of 1 MiB, 2 ranks: MPI (mpi4py) takes 100 µs; torch.distributed takes 4 times as long."
    )
    assert found.confidence is Confidence.CONFIRMED
    [pair] = found.contrasts
    assert (pair.metric, pair.by, pair.pairs) == ("operation_time", "turn", 3)
    assert found.decision is not None and found.decision.winner == "MPI (mpi4py)"


def test_one_library_is_no_comparison() -> None:
    assert messages_findings(context(*sweeps("message-sweep-torch", 2e-4, size=1024))) == []


def test_one_library_under_two_settings_is_no_rival_of_itself_and_a_size_that_was_left_out_once_loses_nothing() -> None:
    first, *others = sweeps("message-sweep", 1e-4)
    without = first.model_copy(update={"metrics": first.metrics[:1]})
    again = [
        record.model_copy(update={"cell": record.cell.changed(options=(("compared_size", 2**20), ("seconds", 2)))})
        for record in sweeps("message-sweep", 2e-4)
    ]
    [found] = messages_findings(context(without, *others, *again, *sweeps("message-sweep-torch", 4e-4)))
    assert found.text.count("MPI") == 1 and "torch.distributed takes 4 times" in found.text


def test_imb_of_the_same_operation_and_size_stands_beside_by_library() -> None:
    def imb(mpi: str, test: str, seconds: float, **axes: Any) -> Record:
        point = LogPoint(series="t_avg", size=2**20)
        return make_record(
            bench_cell("imb", {"mpi": mpi, "test": test}, **{"ranks_per_node": 2} | axes),
            [MetricValue.of("collective_time", seconds, "t_avg 1048576", point)],
            details={"runs": [log_run("output.log", "imb", parameters={"test": test})]},
        )

    raced = [*sweeps("message-sweep", 1e-4), *sweeps("message-sweep-torch", 4e-4)]
    others = [imb("mpich", "Bcast", 9e-4), imb("mpich", "Allreduce", 9e-4, ranks_per_node=4)]
    others.append(imb("mpich", "Allreduce", 9e-4, network="slow"))
    (found,) = messages_findings(
        context(*raced, *others, imb("mpich", "Allreduce", 2e-4), imb("intel", "Allreduce", 3e-4))
    )
    assert found.evidence.endswith("IMB has 300 µs with intel, 200 µs with mpich")
    (without,) = messages_findings(context(*raced, *others))
    assert "IMB" not in without.evidence
