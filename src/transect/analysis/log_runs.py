"""Runs found in logs, as records: each a repeat of one benchmark under its settings on one system.

An ingest record holds all runs below a path. Two of those say nothing of each other; their runs do, wherever
the logs of each lie.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Annotated, Literal

from transect.analysis.entries import AnyRecord
from transect.analysis.groups import grouped
from transect.analysis.hardware import BenchmarkValue, benchmark_values
from transect.domain.cell import Axis, Cell
from transect.domain.files import canonical_json, digest
from transect.domain.metrics import METRICS
from transect.domain.record import Cause, MetricValue, Record, Status
from transect.hpc.log_paths import system_of, when_of
from transect.hpc.log_settings import of_machine, settings_of, tell_what_ran

# The detail that says whether a run's date is its own.
DATED = "dated"
# Cells of this stage measure nothing: they read logs that are there.
READS = "ingest"

# Numbers of so many digits together are no other run's.
_TELLING = 12


class LogCell(Cell):
    """One benchmark under one choice of settings, on one system: what runs that logs tell are repeats of."""

    stage: Literal["ingest"] = "ingest"
    system: Annotated[str, Axis(place=4, name=True)] = ""
    benchmark: Annotated[str, Axis(place=5, name=True)]
    variant: Annotated[str, Axis(place=6, name=True)] = ""
    settings: Annotated[
        tuple[tuple[str, str], ...], Axis(place=150, word=None, label=lambda pairs: settings_in_words(pairs))
    ] = ()


# Why a verdict on such logs is not confirmed.
SETTINGS_UNKNOWN = "the logs do not tell all settings, which may be unlike"


def settings_unknown(cell: Cell) -> bool:
    """Whether its logs do not state what was run, or on how many ranks: two runs may then be different work."""
    return isinstance(cell, LogCell) and not tell_what_ran(cell.benchmark, dict(cell.settings))


def settings_in_words(settings: Iterable[tuple[str, str]]) -> str:
    """Write settings as `N 1000, NB 192`."""
    return ", ".join(f"{name} {value}" for name, value in settings)


def with_log_runs(sets: Sequence[Sequence[AnyRecord]], *, over_time: bool = False) -> list[list[AnyRecord]]:
    """Return the records of each set with runs in the place of ingest records that hold any.

    A cell names its system only where a set has logs of several. Where each is of one, which it is is a
    difference between sets, and not between cells. `over_time`: two systems are no history of one, as they are
    where both ran in the same days, or one of them is in two sets; else a name may be a month's.
    """
    made = [log_records(records) for records in sets]
    several = any(len({record.cell.get("system") for record in records}) > 1 for records in made)
    if over_time and not several:
        spans = sorted(
            (min(days), max(days), str(records[0].cell.get("system")))
            for records in made
            if (days := [record.started[:10] for record in records])
        )
        systems = {system for *_, system in spans}
        several = 1 < len(systems) < len(spans) or any(
            a[2] != b[2] and b[0] <= a[1] and a[0] < a[1] for a, b in pairwise(spans)
        )
    return [
        [*(record for record in records if not _holds_runs(record)), *(runs if several else map(_nameless, runs))]
        for records, runs in zip(sets, made, strict=True)
    ]


def _holds_runs(record: AnyRecord) -> bool:
    return record.stage == READS and bool(record.details.get("runs"))


def _nameless(record: Record) -> Record:
    cell = record.cell.changed(system="")
    return record.model_copy(update={"cell": cell, "cell_id": cell.id})


def log_records(records: Iterable[AnyRecord]) -> list[Record]:
    """Return a record for each run of a known benchmark in ingest records, numbered as repeats of its cell.

    `started` is when it ran, as the log or else its path tells (`DATED` in the details), or when it was read.
    `fingerprint` tells a copy of the log. Runs that are not ok stand as failed, what is no run is left out.
    """
    found: dict[str, Record] = {}
    for record in records:
        if not _holds_runs(record):
            continue
        for members in grouped(benchmark_values([record]), lambda value: value.run).values():
            if members[0].benchmark != "unknown" and members[0].status != "no-result":
                run = _record(record, members)
                # The same log below two paths counts once, by the day that either path names; a month alone is its first.
                known = found.setdefault(run.fingerprint, run)
                days = known.started[:10], run.started[:10]
                month = days[0][8:] == "01" and days[0][:7] == days[1][:7]
                if run.details[DATED] and (month or not known.details[DATED]):
                    found[run.fingerprint] = run
    numbered, amounts = [], Counter[Cell]()
    for run in found.values():
        cell = run.cell.changed(repeat=amounts[run.cell])
        amounts[run.cell] += 1
        numbered.append(run.model_copy(update={"cell": cell, "cell_id": cell.id}))
    return numbered


def _record(record: AnyRecord, values: Sequence[BenchmarkValue]) -> Record:
    first, source = values[0], str(record.point.get("source") or "")
    line = first.where.rpartition(":")[2]
    system = system_of(first.path, source, first.benchmark)
    cell = LogCell(
        system=system, benchmark=first.benchmark, variant=first.variant, settings=settings_of(first.parameters)
    )
    when = when_of(first.parameters, [source, *first.path])
    copy = [
        first.benchmark,
        first.variant,
        first.status,
        [[value.name, value.series, value.size, value.printed, value.value] for value in values],
    ]
    if few_digits(value.printed for value in values):
        # They may be of another run.
        copy += [first.path[-1:], line, system, when]
    bad = Cause.WRONG_RESULT if first.status == "invalid" else Cause.CRASH
    machine = {name: str(value) for name, value in first.parameters.items() if of_machine(name, value)}
    return Record(
        study=record.study,
        stage=READS,
        cell=cell,
        cell_id=cell.id,
        status=Status.OK if first.valid else Status.FAILED,
        cause=None if first.valid else bad,
        message="" if first.valid else f"{first.status}: {first.reason}",
        fingerprint=digest([canonical_json(copy)]),
        started=when or record.started,
        ended=when or record.ended,
        details={DATED: bool(when)},
        metrics=_metrics(values) if first.valid else [],
        provenance={
            "system": {"name": system},
            "gpus": machine,
            "environment": {"name": "log of"},
            "libraries": {first.benchmark: first.version} if first.version else {},
        },
    )


def few_digits(printed: Iterable[str]) -> bool:
    """Whether numbers have so few digits together that those of another run may be the same by chance."""
    return sum(len(re.sub(r"\D", "", text).strip("0")) for text in {*printed}) < _TELLING


def _metrics(values: Sequence[BenchmarkValue]) -> list[MetricValue]:
    """Return what a run measured, in the registry's units; a number that it prints twice by its middle."""
    named = [value for value in values if value.name in METRICS and value.value is not None]
    series = grouped(named, lambda row: (row.name, f"{row.series} {'' if row.size is None else row.size}".strip()))
    return [
        MetricValue.of(name, statistics.median(value.value or 0.0 for value in members), label)
        for (name, label), members in series.items()
        if all(value.unit == METRICS[name].unit for value in members)
    ]
