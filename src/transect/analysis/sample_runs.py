"""Samples that hyperfine, pyperf or asv wrote, as records: each process that was timed is a repeat of its benchmark."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from transect.analysis.entries import AnyRecord, Entry, MetricNames
from transect.analysis.load import Loaded, Problem
from transect.analysis.log_runs import few_digits, settings_in_words
from transect.analysis.sample_formats import read_samples
from transect.analysis.sampled import Sampled
from transect.domain.cell import Axis, Cell
from transect.domain.files import canonical_json, digest
from transect.domain.metrics import Direction
from transect.domain.record import Cause, Status
from transect.domain.secrets import without_secrets

# The detail that says why no verdict on a record is confirmed.
DOUBT = "doubt"

_METRICS = {"s": "benchmark_time", "B": "benchmark_memory", "1": "value"}


class SampleCell(Cell):
    """One benchmark of a program, which is the stage, with its parameters."""

    parameters: Annotated[
        tuple[tuple[str, str], ...], Axis(place=150, word=None, label=lambda pairs: settings_in_words(pairs))
    ] = ()


def load_samples(path: Path) -> Loaded:
    """Return the benchmarks of a file as records, and what is missing there. Raises BadInput for what is no such file."""
    found = read_samples(path)
    records: list[AnyRecord] = [record for one in found for record in _records(one, path)]
    doubts = Counter(one.doubt for one in found if one.doubt)
    problems = [
        Problem(where=path.name, what=f"{doubt}: nothing is confirmed on {amount} of {len(found)} benchmarks")
        for doubt, amount in doubts.items()
    ]
    return Loaded(study=found[0].program, records=records, problems=problems)


def _records(one: Sampled, path: Path) -> Iterator[Entry]:
    """Yield a record for each process."""
    name = _METRICS.get(one.unit, f"value in {one.unit}")
    measured = MetricNames([(name, one.unit, Direction.LOWER, None, None)])
    nothing = MetricNames([])
    point = SampleCell(stage=one.program, workload=one.name, parameters=one.parameters)
    fingerprint = _fingerprint(one, path)
    provenance = without_secrets(dict(one.provenance))
    status = Status.SKIPPED if one.skipped else Status.FAILED
    cause = Cause.UNSUPPORTED if one.skipped else Cause.CRASH
    for number, repeat in enumerate(one.repeats):
        ok = repeat.value is not None
        yield Entry(
            study=one.program,
            stage=one.program,
            point=point,
            repeat=number,
            cell_id=point.id,
            status=Status.OK if ok else status,
            cause=None if ok else cause,
            message=one.skipped or ("" if ok else "its program failed"),
            fingerprint=fingerprint,
            started=repeat.started,
            ended=repeat.ended,
            metric_names=measured if ok else nothing,
            metric_values=array("d", [repeat.value] if repeat.value is not None else []),
            sample_names=[],
            details={DOUBT: one.doubt} if one.doubt else {},
            parameters=dict(one.settings),
            provenance=provenance,
        )


def _fingerprint(one: Sampled, path: Path) -> str:
    """Return what two copies of one measurement share."""
    repeats = [[repeat.value, repeat.started] for repeat in one.repeats]
    copy = [one.program, one.name, one.parameters, repeats]
    if few_digits(str(value) for value, _ in repeats) and not all(started for _, started in repeats):
        # A few digits may be the same by chance.
        copy.append(str(path.resolve()))
    return digest([canonical_json(copy)])
