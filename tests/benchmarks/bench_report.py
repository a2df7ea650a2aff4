"""Speed and memory of a report over many small records: prints seconds and peak resident memory.

Run by hand: `python tests/benchmarks/bench_report.py [number of records ...]`, by default 5000 and
50000. The records are synthetic, of all stages: training, inference, benchmarks and ingested logs,
some of them failed. Each report runs in a process of its own, so that its peak memory is its own;
the second report of a study finds what the first kept of the records. Prints the time of each
per record and how it grows between the two numbers (1 is linear); asserts nothing.
"""

from __future__ import annotations

import itertools
import multiprocessing
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "report"))

from make_framework_records import SPEEDS, STRATEGIES, train_record
from make_records import make_record

from transect.domain.cell import Cell
from transect.domain.record import Cause, MetricValue, Record, Samples, Status
from transect.execution.make_report import make_report

# Of ten records: train, infer, bench, ingest.
SHARES = {"train": 5, "infer": 2, "bench": 2, "ingest": 1}
REPEATS = 3
STUDY = "name: many\ntitle: Many records\n"


def noise(seed: random.Random) -> float:
    return 1 + seed.gauss(0, 0.01)


def trained(seed: random.Random) -> Iterator[Record]:
    """Few workloads with as many cells of each as are wanted: batches grow without end."""
    for step in itertools.count(1):
        for workload, framework, strategy, ranks, repeat in itertools.product(
            ("digits-cnn", "iris-mlp"),
            SPEEDS,
            ("single", *STRATEGIES),
            (1, 2, 4, 8),
            range(REPEATS),
        ):
            if strategy == "single" and ranks > 1:
                continue
            record = train_record(
                framework, strategy, ranks, repeat, workload=workload, noise=noise(seed),
                over=ranks > 4, batch=32 * step,
            )  # fmt: skip
            if seed.random() < 0.02:
                record = record.model_copy(update={
                    "status": Status.FAILED, "cause": Cause.CRASH, "metrics": [],
                    "message": "rank 1 ended with signal 11", "log_tail": "line of a log\n" * 80,
                })  # fmt: skip
            yield record


def served(seed: random.Random) -> Iterator[Record]:
    for threads in itertools.count(1):
        for runtime, batch, repeat in itertools.product(
            ("python", "c", "cpp", "rust"), (1, 2, 4, 8, 16, 32, 64), range(REPEATS)
        ):
            cell = Cell.of(stage="infer", workload="digits-cnn", provider="cpu",
                        exporter="torch-dynamo", runtime=runtime, batch=batch, threads=threads,
                        repeat=repeat)  # fmt: skip
            latency = 1e-5 * (1 + batch / 8) * noise(seed)
            samples = [latency * noise(seed) for _ in range(40)]
            yield make_record(
                cell, {"latency": latency, "throughput": batch / latency, "top1_agreement": 1.0,
                       "max_abs_difference": 1e-7, "session_time": 0.01},
                samples={"latency": Samples(unit="s", values=samples, count=len(samples))},
                details={"flops_per_run": 4e5 * batch, "bytes_per_run": 8e4, "runtime_version": "1",
                         "session_options": {"inter": 1}, "stop_reason": "interval"},
            )  # fmt: skip


def probed(seed: random.Random) -> Iterator[Record]:
    for size in itertools.count(1):
        for threads, repeat in itertools.product((1, 2, 4, 8), range(REPEATS)):
            for benchmark, metric, rate, label in (
                ("memory-bandwidth-probe", "memory_bandwidth", 1e10, "triad_best"),
                ("matrix-multiply-probe", "flops", 5e10, "sgemm_best"),
            ):
                cell = Cell.of(stage="bench", benchmark=benchmark, threads=threads, repeat=repeat,
                            options=(("size", 1000 * size),))  # fmt: skip
                value = rate * threads**0.8 * noise(seed)
                yield make_record(cell, [MetricValue.of(metric, value, label)])


def ingested(seed: random.Random) -> Iterator[Record]:
    for number in itertools.count():
        rate = 1e11 * noise(seed)
        runs = [{
            "file": f"/logs/system-{number}/hpl.out", "line": 3, "benchmark": "hpl",
            "status": "ok" if number % 50 else "invalid", "reason": "", "variant": "",
            "parameters": {"N": 1000}, "metrics": [{
                "name": "gflops", "value": rate, "printed": f"{rate / 1e9:.1f}", "unit": "GFLOP/s",
                "direction": "higher",
                "normalised": {"name": "flops", "value": rate, "unit": "FLOP/s"},
            }],
        }]  # fmt: skip
        yield make_record(Cell.of(stage="ingest", source=f"logs-{number}"), details={"runs": runs})


def write_study(results: Path, amount: int) -> None:
    """Write `results/many/STAGE/CELL/record.json`; no fsync, which would take most of the time."""
    seed = random.Random(7)
    makers = {"train": trained, "infer": served, "bench": probed, "ingest": ingested}
    for stage, share in SHARES.items():
        many = amount * share // sum(SHARES.values())
        for record in itertools.islice(makers[stage](seed), many):
            path = results / "many" / stage / record.cell_id / "record.json"
            path.parent.mkdir(parents=True)
            path.write_text(record.model_dump_json(), encoding="utf-8")


def measure(study: Path, results: Path, pipe: Any) -> None:
    started = time.perf_counter()
    summary = make_report(study, results)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    pipe.send((seconds, peak, summary["counts"], summary["problems"]))


def report(study: Path, results: Path) -> tuple[float, float]:
    """Make the report in a fresh process; return its seconds and peak bytes."""
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=measure, args=(study, results, theirs)
    )
    process.start()
    theirs.close()
    seconds, peak, counts, problems = ours.recv()
    process.join()
    size = (results / "many" / "report.html").stat().st_size
    print(f"  {seconds:7.1f} s  {peak / 2**20:6.0f} MiB  page {size / 2**20:.1f} MiB  {counts}"
          f"  {len(problems)} problems {problems[:3]}", flush=True)  # fmt: skip
    return seconds, peak


def main(amounts: list[int]) -> None:
    found: dict[int, list[float]] = {}
    for amount in amounts:
        with tempfile.TemporaryDirectory() as folder:
            study, results = Path(folder) / "many.yaml", Path(folder) / "results"
            study.write_text(STUDY, encoding="utf-8")
            write_study(results, amount)
            # What is younger is read again each time, as it may still change.
            time.sleep(2.5)
            print(f"{amount} records", flush=True)
            found[amount] = [report(study, results)[0] for _ in ("first", "second")]
    for place, name in enumerate(("first", "second")):
        each = {amount: 1e3 * times[place] / amount for amount, times in found.items()}
        told = ", ".join(f"{value:.2f} ms of {amount}" for amount, value in each.items())
        growth = f", {each[amounts[-1]] / each[amounts[0]]:.2f} times" if len(amounts) > 1 else ""
        print(f"{name} report per record: {told}{growth}")


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]] or [5_000, 50_000])
