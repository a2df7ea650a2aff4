"""What a sceptical reader asks of the page's front: is a winner named where nothing shows one, is anything missing?"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from make_records import make_record, provenance

from factories import infer_cell, train_cell, write_records
from transect.domain.record import Cause, Record, Status
from transect.report.engine.report import Made as Report
from transect.report.engine.report import make_all

OTHER = provenance(host="other", cpu_model="Another CPU", cores=64)


class Made:
    """Records of one study; `noise` is drawn from a stored seed."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._random = random.Random(5)

    def noise(self, size: float = 0.01) -> float:
        return 1 + self._random.gauss(0, size)

    def train(
        self,
        workload: str,
        framework: str = "numpy",
        strategy: str = "single",
        *,
        time: float | None = 1.0,
        rate: float = 100.0,
        ranks: int = 1,
        repeats: int = 5,
        batch: int = 64,
        target: float = 0.9,
        accuracy: float = 0.95,
        checked: bool = True,
        over: bool = False,
        cause: Cause | None = None,
        first: int = 0,
        **more: Any,
    ) -> None:
        axes = more.pop("axes", {})
        for repeat in range(first, repeats):
            cell = train_cell(
                framework, repeat, workload=workload, strategy=strategy, ranks_per_node=ranks, batch=batch, **axes
            )
            if cause is not None:
                self.records.append(make_record(cell, status=Status.FAILED, cause=cause))
                continue
            metrics = {"samples_per_second": rate * self.noise(), "accuracy": accuracy}
            metrics |= {"equality_ratio": 0.5} if checked else {}
            metrics |= {"time_to_quality": time * self.noise()} if time is not None else {}
            quality = {"metric": "accuracy", "target": target, "reached": time is not None}
            details = {"quality": quality, "over_subscribed": over, "global_batch": batch}
            self.records.append(make_record(cell, metrics, details=details, **more))

    def infer(
        self,
        workload: str,
        runtime: str,
        latency: float,
        *,
        batch: int = 1,
        threads: int = 1,
        cause: Cause | None = None,
        repeats: int = 5,
        first: int = 0,
        axes: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        for repeat in range(first, repeats):
            cell = infer_cell(
                runtime, repeat, workload=workload, exporter="dynamo", batch=batch, threads=threads, **(axes or {})
            )
            if cause is not None:
                self.records.append(make_record(cell, status=Status.FAILED, cause=cause))
                continue
            time = latency * self.noise()
            metrics = {"latency": time, "throughput": batch / time, "max_abs_difference": 1e-7, "top1_agreement": 1.0}
            self.records.append(make_record(cell, metrics, **more))

    def report(self, **more: Any) -> Report:
        """Everything but the sections."""
        with tempfile.TemporaryDirectory() as folder:
            write_records(Path(folder) / "s", *self.records)
            return make_all(Path(folder) / "s", title="t", only=(), **more)


def ways() -> Made:
    """Two ways on as many ranks: a tie, a winner, and both slower than fewer ranks."""
    made = Made()
    for framework, strategy, rate in (("numpy", "mpi-allreduce", 350), ("torch", "ddp-gloo", 351)):
        made.train("tie", framework, time=4.0)
        made.train("tie", framework, strategy, ranks=4, time=1.2, rate=rate)
        made.train("won", framework, time=4.0)
        made.train("won", framework, strategy, ranks=4, time=None, rate=rate + 200 * (framework == "torch"))
        made.train("slow", framework, time=4.0)
    made.train("slow", "torch", "ddp-gloo", ranks=4, time=9.0, rate=40)
    # More samples a second with a larger batch are another training.
    made.train("tie", "numpy", "mpi-allreduce", ranks=4, batch=256, rate=900, time=3.0)
    return made


def lacking() -> Made:
    """Workloads of which nothing can be decided, each for another reason."""
    made = Made()
    made.train("broken", time=4.0)
    made.train("broken", "numpy", "mpi-allreduce", ranks=4, cause=Cause.CRASH)
    made.train("shared", time=4.0)
    made.train("shared", "numpy", "mpi-allreduce", ranks=8, over=True)
    made.train("random", time=None, axes={"input": "synthetic"})
    made.infer("none", "cpp", 1e-4, cause=Cause.TIMEOUT)
    return made


def unequal() -> Made:
    """Winners that lost runs, or ran on another machine, beside fair ones."""
    made = Made()
    for workload, more in (("lost", {}), ("apart", {"provenance": OTHER}), ("fair", {})):
        made.train(workload, "numpy", time=5.0)
        made.infer(workload, "python", 1e-4)
        kept = 3 if workload == "lost" else 5
        made.train(workload, "torch", time=1.0, repeats=kept, **more)
        made.infer(workload, "cpp", 1e-5, repeats=kept, **more)
    made.train("lost", "torch", first=3, cause=Cause.TIMEOUT)
    made.infer("lost", "cpp", 1e-5, first=3, cause=Cause.TIMEOUT)
    return made


def targets() -> Made:
    """Races with other targets, other trainings, and what ends below its target."""
    made = Made()
    for framework, target, time in (("numpy", 0.99, 3.0), ("torch", 0.99, 2.0), ("keras", 0.5, 0.1)):
        made.train("iris", framework, time=time, target=target, accuracy=target + 0.001)
    made.train("iris", "numpy", time=0.01, axes={"precision": "fp64"})
    made.train("below", "numpy", time=1.0, accuracy=0.3)
    made.train("below", "torch", time=3.0, checked=False)
    return made


def elsewhere() -> Made:
    """Runtimes that were not all measured at the same batches and threads."""
    made = Made()
    for batch in (1, 64):
        made.infer("iris", "python", 1e-4 * batch**0.5, batch=batch)
    made.infer("iris", "cpp", 5e-5)
    made.infer("small", "rust", 5e-5)
    for runtime in ("python", "cpp"):
        made.infer("small", runtime, 4e-5, batch=8)
    for threads in (1, 2):
        made.infer("alike", "python", 1e-5, threads=threads)
    made.infer("alike", "cpp", 9e-5, threads=1)
    return made


Table = dict[tuple[str, str], dict[str, Any]]
SETS = {"ways": ways, "lacking": lacking, "unequal": unequal, "targets": targets, "elsewhere": elsewhere}


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    return {name: make().report() for name, make in SETS.items()}


@pytest.fixture(scope="module")
def tables(reports: dict[str, Report]) -> dict[str, Table]:
    """Entries of each set's decision table by workload and column: the first thing told, or why not."""
    return {
        name: {
            (entry["workload"], entry["question"]): entry["decided"][0] if entry["decided"] else entry
            for entry in report.summary["decisions"]
        }
        for name, report in reports.items()
    }


def test_prose(tables: dict[str, Table], snapshot: Any) -> None:
    kept = (
        "winner",
        "confidence",
        "second",
        "tied",
        "instead",
        "gain",
        "value",
        "quality",
        "limit",
        "left_out",
        "why_not",
    )
    assert {
        name: {" ".join(place): {key: entry[key] for key in kept if entry.get(key)} for place, entry in table.items()}
        for name, table in tables.items()
    } == snapshot


def test_no_workload_is_missing_and_nothing_that_was_asked_is_called_not_asked(reports: dict[str, Report]) -> None:
    # None of its calls has a batch.
    assert reports["lacking"].front.table.absent == ("Serve many (Offline)",)
