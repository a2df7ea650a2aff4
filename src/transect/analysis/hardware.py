"""Benchmark runs of bench and ingest records as flat rows, each with its validity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from transect.analysis.entries import AnyMetric, AnyRecord
from transect.hpc.log_paths import depth_of, system_of

_VALID = ("ok",)

# How the warnings of a run begin that counts with doubts.
DOUBT = "suspicious: "
# Parameters that say which of its tests a benchmark ran: a barrier's time is none of a reduction.
_TESTS = {"imb": ("test", "mode"), "osu": ("test",), "nccl-tests": ("op",), "npb": ("benchmark",)}


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkValue:
    """One number of one benchmark run. `valid` is False unless the run says that it passed.

    `name` is the registry's where the number could be converted to the registry's unit, else the log's own. `placement`
    says how several ranks were placed, and the network between them. `series` is the log's own name of it with the
    phase, `size` a message or problem size. `printed` holds the log's own digits and unit. `nodes` and `ranks` are
    known for what ran here. `run` tells the runs of one study apart, and `path` is a log's below the path that was read.
    """

    stage: str
    cell_id: str
    benchmark: str
    variant: str
    version: str
    where: str
    valid: bool
    status: str  # `suspicious`: ok, with doubts among its warnings
    reason: str
    name: str
    label: str
    value: float | None
    unit: str
    parameters: dict[str, Any]
    warnings: tuple[str, ...]
    threads: int | None = None
    placement: str = ""
    system: str = ""
    series: str = ""
    phase: str = ""
    size: int | None = None
    printed: str = ""
    direction: str = ""
    nodes: int | None = None
    ranks: int | None = None
    options: str = ""
    run: str = ""
    path: tuple[str, ...] = ()


def benchmark_values(records: Iterable[AnyRecord]) -> list[BenchmarkValue]:
    """Flatten the runs of all bench and ingest records; a run without metrics gives one row.

    Values are those normalised to the registry's unit where the parser gives them, else as
    printed. A failed or skipped record gives no row here: it stands among the failures.
    """
    rows: list[BenchmarkValue] = []
    for record in records:
        if record.stage not in ("bench", "ingest"):
            continue
        runs = _dictionaries(record.details.get("runs"))
        if record.metrics and (record.stage == "bench" or not runs):
            rows += [_of_metric(record, number) for number in record.metrics]
            # The record's own metrics are the valid runs of a bench record already; an ingest
            # record joins many files, and only its runs tell which number is whose.
            runs = [run for run in runs if not _is_valid(run)]
        top = depth_of([str(run.get("file") or "") for run in runs], record.point.get("source") or "")
        for number, run in enumerate(runs):
            rows += [_of_run(record, run, number, top, metric) for metric in _dictionaries(run.get("metrics")) or [{}]]
    return rows


def _dictionaries(given: object) -> list[dict[str, Any]]:
    return [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []


def _dictionary(given: object) -> dict[str, Any]:
    return given if isinstance(given, dict) else {}


def _texts(run: dict[str, Any], key: str) -> list[str]:
    given = run.get(key)
    return [str(text) for text in given] if isinstance(given, list) else []


def _is_valid(run: dict[str, Any]) -> bool:
    return str(run.get("status", "")).lower() in _VALID


def _of_metric(record: AnyRecord, number: AnyMetric) -> BenchmarkValue:
    """Make a row of a record's own metric, with what its log says of it."""
    runs, point, log = record.details.get("runs"), number.log, {}
    run = _dictionary(runs[point.run]) if point and isinstance(runs, list) and point.run < len(runs) else {}
    metrics = run.get("metrics")
    if point and isinstance(metrics, list) and point.metric < len(metrics):
        log = _dictionary(metrics[point.metric])
    run = run if log else {}
    cell, status = record.point, record.status.value
    return _row(
        record,
        run,
        log,
        number.label or "",
        # As its log calls it, so that it is compared with logs of others.
        benchmark=str(run.get("benchmark") or cell.get("benchmark") or cell.get("source") or ""),
        valid=status == "ok",
        status=status,
        reason=record.message,
        name=number.name,
        label=number.label or "",
        value=number.value,
        unit=number.unit,
        parameters=dict(cell.get("options", ())) | _dictionary(run.get("parameters")),
        direction=number.direction.value,
        run=record.cell_id,
        **_place(record),
    )


def _of_run(record: AnyRecord, run: dict[str, Any], number: int, top: int, metric: dict[str, Any]) -> BenchmarkValue:
    """Make a row of a number of a log's run, or of a run without any: then `metric` is empty.

    `top`: how many parts of the log's path lead to the path that was read.
    """
    # Name, value and unit are those of the registry where the parser gives them, else as printed.
    normal = metric.get("normalised")
    given = normal if isinstance(normal, dict) else metric
    name, value = str(given.get("name") or metric.get("name") or ""), given.get("value")
    label = [str(metric[key]) for key in ("label", "phase", "size") if metric.get(key) is not None]
    if metric.get("name") and metric["name"] != name:
        label.insert(0, str(metric["name"]))
    valid, benchmark = _is_valid(run), str(run.get("benchmark") or record.point.get("benchmark") or "")
    path, source = PurePosixPath(str(run.get("file") or "")).parts[top:], record.point.get("source") or ""
    system = _system_of(path, source, benchmark)
    return _row(
        record,
        run,
        metric,
        str(metric.get("label") or ""),
        benchmark=benchmark,
        valid=valid,
        status="suspicious" if valid and _texts(run, "suspicions") else str(run.get("status") or "unknown"),
        reason=str(run.get("reason") or ""),
        name=name,
        label=" ".join(label),
        value=float(value) if isinstance(value, (int, float)) and value == value else None,
        unit=str(given.get("unit") or ""),
        parameters=_dictionary(run.get("parameters")),
        direction=str(metric.get("direction") or ""),
        run=f"{record.cell_id} {number}",
        **(_place(record) if record.stage == "bench" else {"system": system, "path": path}),
    )


def _system_of(path: Sequence[str], source: str, benchmark: str) -> str:
    """Name a log's system by the first name below the path that was read that names one, else by that path.

    Dates, numbers and the benchmark's name name none. A name short of its numbers, as `system_of` gives, would make one
    system of `v3-256.out` and `v3-1024.out`.
    """
    return next((name for name in path if system_of((name,), "", benchmark)), source)


def _row(record: AnyRecord, run: dict[str, Any], log: dict[str, Any], unnamed: str, /, **told: Any) -> BenchmarkValue:
    """Add what a run and the log's own number, which may be `unnamed`, say to what is told of a value."""
    # Of a benchmark that has many tests, which one: no best is among them.
    tests = (_dictionary(run.get("parameters")).get(name) for name in _TESTS.get(str(run.get("benchmark")), ()))
    line, file = run.get("line"), str(run.get("file") or "")
    # The series that a printed number belongs to, with the number's size apart.
    size, digits, unit = log.get("size"), str(log.get("printed") or ""), str(log.get("unit") or "")
    name, phase = str(log.get("name") or unnamed), str(log.get("phase") or "")
    return BenchmarkValue(
        stage=record.stage,
        cell_id=record.cell_id,
        variant=" ".join(str(part) for part in (run.get("variant"), *tests) if part),
        version=str(run.get("version") or ""),
        where=f"{file}:{line}" if file and line is not None else file,
        warnings=(*(f"{DOUBT}{doubt}" for doubt in _texts(run, "suspicions")), *_texts(run, "warnings")),
        series=" ".join(filter(None, [phase if phase not in name else "", name])),
        size=size if isinstance(size, int) else None,
        phase=phase or name,
        printed=f"{digits} {unit if unit != '1' else ''}".strip() if digits else "",
        **told,
    )


def _place(record: AnyRecord) -> dict[str, Any]:
    """Say where a run of this study ran, and as what."""
    cell = record.point
    ranks = f"{cell.nodes} x {cell.ranks_per_node} ranks" if cell.ranks > 1 else ""
    name = _dictionary(record.provenance.get("system")).get("name")
    return {
        "placement": " · ".join(filter(None, [ranks, cell.network if ranks else None])),
        "nodes": cell.nodes,
        "ranks": cell.ranks,
        "threads": cell.threads,
        "system": str(name or record.provenance.get("host") or "unknown"),
        "options": " ".join(f"{key}={value}" for key, value in cell.get("options", ())),
    }
