"""Made-up studies of as many records as are wanted, written as the pipeline writes them: SYNTHETIC."""

from __future__ import annotations

import itertools
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "report"))

from make_framework_records import SPEEDS, STRATEGIES, train_record
from make_records import make_record

from transect.domain.cell import Cell
from transect.domain.record import Cause, MetricValue, Record, Samples, Status, checksum_of

# Of ten records: train, infer, bench, ingest.
SHARES = {"train": 5, "infer": 2, "bench": 2, "ingest": 1}
REPEATS = 3
STUDY = "name: many\ntitle: Many records\nquestions: ['Which is fastest?']\n"
# Of a hundred trainings and inferences: how many ended so.
BAD = {Cause.CRASH: 2, Cause.TIMEOUT: 1, Cause.UNSUPPORTED: 2}


def noise(seed: random.Random) -> float:
    return 1 + seed.gauss(0, 0.01)


def ended(seed: random.Random, record: Record) -> Record:
    """Some cells crash, take too long, or cannot be."""
    at = seed.random() * 100
    for cause, share in BAD.items():
        at -= share
        if at < 0:
            return record.model_copy(
                update={
                    "status": Status.SKIPPED if cause is Cause.UNSUPPORTED else Status.FAILED,
                    "cause": cause,
                    "metrics": [],
                    "message": f"rank {seed.randrange(8)} ended: {cause}",
                    "log_tail": "" if cause is Cause.UNSUPPORTED else "line of a log\n" * 80,
                }
            )
    return record


def trained(seed: random.Random, workloads: Sequence[str]) -> Iterator[Record]:
    """As many cells of each workload as are wanted: batches grow without end."""
    for step in itertools.count(1):
        # Workloads come last: each gets its share of a study that is too small for all combinations.
        for framework, strategy, ranks, repeat, workload in itertools.product(
            SPEEDS, ("single", *STRATEGIES), (1, 2, 4, 8), range(REPEATS), workloads
        ):
            if strategy != "single" or ranks == 1:
                yield ended(
                    seed,
                    train_record(
                        framework,
                        strategy,
                        ranks,
                        repeat,
                        workload=workload,
                        noise=noise(seed),
                        over=ranks > 4,
                        batch=32 * step,
                    ),
                )


def served(seed: random.Random, workloads: Sequence[str]) -> Iterator[Record]:
    for threads in itertools.count(1):
        for runtime, batch, repeat, workload in itertools.product(
            ("python", "c", "cpp", "rust"), (1, 2, 4, 8, 16, 32, 64), range(REPEATS), workloads
        ):
            cell = Cell.of(
                stage="infer",
                workload=workload,
                provider="cpu",
                exporter="torch-dynamo",
                runtime=runtime,
                batch=batch,
                threads=threads,
                repeat=repeat,
            )
            latency = 1e-5 * (1 + batch / 8) * noise(seed)
            samples = [latency * noise(seed) for _ in range(40)]
            yield ended(
                seed,
                make_record(
                    cell,
                    {
                        "latency": latency,
                        "throughput": batch / latency,
                        "top1_agreement": 1.0,
                        "max_abs_difference": 1e-7,
                        "session_time": 0.01,
                    },
                    samples={"latency": Samples(unit="s", values=samples, count=len(samples))},
                    details={
                        "flops_per_run": 4e5 * batch,
                        "bytes_per_run": 8e4,
                        "runtime_version": "1",
                        "session_options": {"inter": 1},
                        "stop_reason": "interval",
                    },
                ),
            )


def probed(seed: random.Random, workloads: Sequence[str]) -> Iterator[Record]:
    for size in itertools.count(1):
        for threads, repeat in itertools.product((1, 2, 4, 8), range(REPEATS)):
            for benchmark, metric, rate, label in (
                ("memory-bandwidth-probe", "memory_bandwidth", 1e10, "triad_best"),
                ("matrix-multiply-probe", "flops", 5e10, "sgemm_best"),
            ):
                cell = Cell.of(
                    stage="bench", benchmark=benchmark, threads=threads, repeat=repeat, options=(("size", 1000 * size),)
                )
                value = rate * threads**0.8 * noise(seed)
                yield make_record(cell, [MetricValue.of(metric, value, label)])


def ingested(seed: random.Random, workloads: Sequence[str]) -> Iterator[Record]:
    for number in itertools.count():
        rate = 1e11 * noise(seed)
        runs = [
            {
                "file": f"/logs/system-{number}/hpl.out",
                "line": 3,
                "benchmark": "hpl",
                "status": "ok" if number % 50 else "invalid",
                "reason": "",
                "variant": "",
                "parameters": {"N": 1000},
                "metrics": [
                    {
                        "name": "gflops",
                        "value": rate,
                        "printed": f"{rate / 1e9:.1f}",
                        "unit": "GFLOP/s",
                        "direction": "higher",
                        "normalised": {"name": "flops", "value": rate, "unit": "FLOP/s"},
                    }
                ],
            }
        ]
        yield make_record(Cell.of(stage="ingest", source=f"logs-{number}"), details={"runs": runs})


_MAKERS: dict[str, Callable[[random.Random, Sequence[str]], Iterator[Record]]] = {
    "train": trained,
    "infer": served,
    "bench": probed,
    "ingest": ingested,
}


def write_study(root: Path, amount: int, workloads: int = 2) -> Path:
    """Write `root/many.yaml` and `root/results/many/STAGE/CELL/record.json`; return the study's file.

    With checksum and layout as `write_record` does, but no fsync, which would take most of the time.
    """
    seed = random.Random(7)
    names = ["digits-cnn", "iris-mlp", *(f"made-up-{n}" for n in range(workloads - 2))][:workloads]
    for stage, share in SHARES.items():
        many = amount * share // sum(SHARES.values())
        for record in itertools.islice(_MAKERS[stage](seed, names), many):
            path = root / "results" / "many" / stage / record.cell_id / "record.json"
            path.parent.mkdir(parents=True)
            content = json.loads(record.model_dump_json())
            content["checksum"] = checksum_of(content)
            text = json.dumps(content, indent=1, ensure_ascii=False)
            path.write_bytes(text.encode() + b"\n")
    study = root / "many.yaml"
    study.write_text(STUDY, encoding="utf-8")
    return study
