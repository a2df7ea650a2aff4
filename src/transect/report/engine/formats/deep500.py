"""Training runs in Deep500's metrics: what its own training loop would have written of them.

For each run `training_stats_train.csv` and `training_stats_test.csv`, whose columns are those of
`EpochSummary.to_dict` and `TrainingStatistics` (deep500/lv2/summaries.py, written by `CsvWriterEvent`), and
`metrics.txt`, the lines that `test_training` prints for the metrics TrainingAccuracy, TestAccuracy and
WallclockTime (deep500/lv2/validation, deep500/utils/metrics.py) of https://github.com/deep500/deep500.
What was never measured has Deep500's own word for that: an accuracy of -1; other places stay empty.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from transect.report.engine.formats import REPORT_FORMATS, Contents, ReportFormat
from transect.report.engine.formats._runs import Run, as_name, read_runs
from transect.report.engine.report import Made

COLUMNS = (
    "epoch",
    "avg_loss",
    "accuracy",
    "wrong",
    "n_batches",
    "avg_time_inference",
    "train",
    "start_time",
    "time_used",
    "total_used_time",
    "train_batch_size",
)
_NEVER = -1.0


@REPORT_FORMATS.register("deep500")
class Deep500(ReportFormat):
    """Training runs in Deep500's metrics: its CSV summaries and its printed metrics."""

    place = "deep500/"
    needs: Sequence[str] = ()

    def contents(self, made: Made) -> Contents:
        """Write three files for every classification that ended well."""
        left_out: list[str] = []
        files = {}
        for run in read_runs(made, left_out):
            if run.score != "accuracy":
                left_out.append(
                    f"train/{run.record.cell_id}: its quality is {run.score}, and Deep500 has accuracies only"
                )
                continue
            folder = f"train/{as_name(run.record.cell_id)}"
            files[f"{folder}/training_stats_train.csv"] = _csv(_training(run))
            files[f"{folder}/training_stats_test.csv"] = _csv(_tests(run))
            files[f"{folder}/metrics.txt"] = _printed(run).encode()
        return Contents(files=files, left_out=left_out)


def _csv(rows: Iterable[Mapping[str, Any]]) -> bytes:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    total = 0.0
    for row in rows:
        total += row["time_used"]
        writer.writerow({**row, "total_used_time": total})
    return stream.getvalue().encode()


def _epochs(run: Run) -> Iterable[tuple[int, float, float, float]]:
    """Yield each epoch from 0 with when it began, how long it trained, and how long it evaluated."""
    begin = 0.0
    for number, end in enumerate(run.epoch_ends):
        trained = min(sum(run.of_epoch(run.steps, number + 1)), end - begin)
        yield number, run.began + begin, trained, end - begin - trained
        begin = end


def _training(run: Run) -> Iterable[dict[str, Any]]:
    for number, begin, trained, _ in _epochs(run):
        losses = run.of_epoch(run.losses, number + 1)
        yield {
            "epoch": number,
            "avg_loss": fmean(losses) if losses else None,
            "accuracy": _NEVER,
            "n_batches": len(run.steps) // len(run.epoch_ends),
            "train": True,
            "start_time": begin,
            "time_used": trained,
            "train_batch_size": run.global_batch,
        }


def _tests(run: Run) -> Iterable[dict[str, Any]]:
    for number, begin, trained, tested in _epochs(run):
        score = run.scores[number]
        wrong = None if run.eval_samples is None else round((1 - score) * run.eval_samples)
        yield {
            "epoch": number,
            "accuracy": 100 * score,
            "wrong": wrong,
            "train": False,
            "start_time": begin + trained,
            "time_used": tested,
        }


def _printed(run: Run) -> str:
    return (
        f"TrainingAccuracy: {_NEVER}\nTestAccuracy: {100 * run.scores[-1]}\n"
        f"WallclockTime: {duration(run.epoch_ends[-1])}\n"
    )


def duration(seconds: float) -> str:
    """Write a time as Deep500's WallclockTime does, whose limits are its own.

    >>> duration(12.3456), duration(0.5), duration(0.002)
    ('12.35 seconds', '500.00 ms', '2000.00 us')
    """
    if seconds >= 10:
        return f"{seconds:.2f} seconds"
    if seconds >= 1e-2:
        return f"{seconds * 1e3:.2f} ms"
    if seconds >= 1e-6:
        return f"{seconds * 1e6:.2f} us"
    return f"{seconds * 1e9:f} ns"
