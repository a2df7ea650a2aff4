"""Runs found in logs, as records: each a repeat of one benchmark under its settings on one system.

An ingest record holds all runs below a path. Two of those say nothing of each other; their runs do, wherever
the logs of each lie.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from transect.analysis.entries import AnyRecord
from transect.analysis.groups import grouped
from transect.analysis.hardware import BenchmarkValue, benchmark_values
from transect.analysis.log_paths import DATE, depth_of, system_of, when_of
from transect.domain.cell import Axis, Cell
from transect.domain.files import canonical_json, digest
from transect.domain.metrics import METRICS
from transect.domain.record import Cause, MetricValue, Record, Status

# The detail that says whether a run's date is its own.
DATED = "dated"
# Cells of this stage measure nothing: they read logs that are there.
READS = "ingest"

# Parameters that say who measured, where, when and on what, or what came of it: a whole name, or a name's last word.
# All others are settings: one that is taken for a setting by mistake keeps two runs apart and is named, one that is
# left out mixes unlike work.
_NO_SETTING = re.compile(
    r"(?:began|ended|started|time|total time|\w*fft_time\d|\w+_lcg_time|hosts?|hostname|machine|node_?name|(?:data_)?file|program|driver|sut name|fill_s|cache_bytes|numpy|python|blas|"
    r"build|tensorflow|hplinpack|platform|label|job_?id|state|exit_code|last_\w+|submission_(?:org|platform|poc_\w+)|"
    r"number of cg sets|(?:optimized cg |reference cg )?iterations per set|steps_this_run|(?:copy|scale|add|triad)_block)"
    r"|(?:.*[_\W])?(?:date|timestamp|path|dir|\w*filename|command|compile\w*|(?:api)?version\w*|headers|library|"
    r"(?<!config-)hash|seed|residual\w*|errors\w*|maxerr|max_diff\w*|success|verification|status|evaluations|overhead|mean|"
    r"variance|not_run|unscored|also_prints|rnormi|[abx]norm\w*|checktime|exeupdates|mpi_wtick|avail\w*|cpu_utilized)\W*",
    re.I,
)
# Settings that decide the speed of these benchmarks and that some logs lack; () where logs never have them.
_NEEDED: dict[str, tuple[str, ...]] = {
    "deep500": (),
    "dl-training": (),
    "fio": ("direct",),
    "io500": ("procs",),
    "ior": ("xfersize", "xsize"),
    "minibude": ("poses",),
    "mlperf-hpc": ("number_of_nodes", "number_of_ranks"),
    "mlperf-inference": (),
    "mlperf-training": ("number_of_nodes", "number_of_ranks"),
    "onnxruntime-perf-test": (),
    "osu": (),
    "slurm-accounting": (),
    "superbench-results": (),
}
# Parameters that name the machine that a run was on.
_MACHINE = re.compile(r"(?:device|gpu|gpu_name|machine|platform|cpu|driver_version)", re.I)
# One of them whose value is the kind of processor that was asked for is a setting.
_KINDS = frozenset({"cpu", "gpu", "cuda", "rocm"})


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
    if not isinstance(cell, LogCell):
        return False
    needed = _NEEDED.get(cell.benchmark)
    settings = {name for name, _ in cell.settings}
    return not settings or (needed is not None and settings.isdisjoint(needed))


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
    made: dict[LogCell, int] = {}
    found: dict[str, Record] = {}
    for record in records:
        if not _holds_runs(record):
            continue
        values = benchmark_values([record])
        source = str(record.point.get("source") or "")
        top = depth_of([_file(value) for value in values], source)
        for members in grouped(values, lambda value: value.run).values():
            if members[0].benchmark != "unknown" and members[0].status != "no-result":
                run = _record(record, members, source, top)
                # The same log below two paths counts once, by the day that either path names; a month alone is its first.
                known = found.setdefault(run.fingerprint, run)
                days = known.started[:10], run.started[:10]
                month = days[0][8:] == "01" and days[0][:7] == days[1][:7]
                if run.details[DATED] and (month or not known.details[DATED]):
                    found[run.fingerprint] = run
    numbered = []
    for run in found.values():
        repeat = made.get(run.cell, 0)  # type: ignore[call-overload]
        made[run.cell] = repeat + 1  # type: ignore[index]
        if repeat:
            cell = run.cell.changed(repeat=repeat)
            run = run.model_copy(update={"cell": cell, "cell_id": cell.id})
        numbered.append(run)
    return numbered


def _record(record: AnyRecord, values: Sequence[BenchmarkValue], source: str, top: int) -> Record:
    first = values[0]
    line = first.where.rpartition(":")[2]
    parts = PurePosixPath(_file(first)).parts[top:]
    system = system_of(parts, source, first.benchmark)
    cell = LogCell(
        system=system, benchmark=first.benchmark, variant=first.variant, settings=_settings(first.parameters)
    )
    when = when_of(first.parameters, [source, *parts])
    copy = [
        first.benchmark,
        first.variant,
        first.status,
        [[value.name, value.series, value.size, value.printed, value.value] for value in values],
    ]
    if sum(len(re.sub(r"\D", "", text).strip("0")) for text in {value.printed for value in values}) < _TELLING:
        # A few digits may be the same by chance, of another run.
        copy += [parts[-1:], line, system, when]
    bad = Cause.WRONG_RESULT if first.status == "invalid" else Cause.CRASH
    machine = {name: str(value) for name, value in first.parameters.items() if _of_machine(name, value)}
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


def _metrics(values: Sequence[BenchmarkValue]) -> list[MetricValue]:
    """Return what a run measured, in the registry's units; a number that it prints twice by its middle."""
    named = [value for value in values if value.name in METRICS and value.value is not None]
    series = grouped(named, lambda row: (row.name, f"{row.series} {'' if row.size is None else row.size}".strip()))
    return [
        MetricValue.of(name, statistics.median(value.value or 0.0 for value in members), label)
        for (name, label), members in series.items()
        if all(value.unit == METRICS[name].unit for value in members)
    ]


def _of_machine(name: str, value: Any) -> bool:
    return _MACHINE.fullmatch(name) is not None and str(value).lower() not in _KINDS


def _settings(parameters: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    # Arguments of the program other than paths, such as mdtest's -w, which its log has nowhere else.
    arguments = [
        word for word in str(parameters.get("command", "")).split()[1:] if "/" not in word and not DATE.search(word)
    ]
    if arguments:
        parameters = {**parameters, "arguments": " ".join(arguments)}
    return tuple(
        (name, canonical_json(value).strip('"'))
        for name, value in sorted(parameters.items())
        if not (_NO_SETTING.fullmatch(name) or _of_machine(name, value))
    )


def _file(value: BenchmarkValue) -> str:
    return value.where.rpartition(":")[0]
