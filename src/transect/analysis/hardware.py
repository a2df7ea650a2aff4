"""Benchmark runs of bench and ingest records as flat rows, each with its validity."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from transect.analysis.entries import AnyMetric, AnyRecord
from transect.domain.cell import Cell

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
    known for what ran here. `run` tells the runs of one study apart.
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
    threads: int | None
    parameters: dict[str, Any]
    warnings: tuple[str, ...]
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


def benchmark_values(records: Iterable[AnyRecord]) -> list[BenchmarkValue]:
    """Flatten the runs of all bench and ingest records; a run without metrics gives one row.

    Values are those normalised to the registry's unit where the parser gives them, else as
    printed. A failed or skipped record gives no row here: it stands among the failures.
    """
    rows: list[BenchmarkValue] = []
    for record in records:
        if record.stage not in ("bench", "ingest"):
            continue
        runs = record.details.get("runs")
        entries = [run for run in runs if isinstance(run, dict)] if isinstance(runs, list) else []
        if record.metrics and (record.stage == "bench" or not entries):
            rows += _from_metrics(record)
            # The record's own metrics are the valid runs of a bench record already; an ingest
            # record joins many files, and only its runs tell which number is whose.
            entries = [run for run in entries if not _is_valid(run)]
        for number, run in enumerate(entries):
            rows += _from_run(record, run, number)
    return rows


def _is_valid(run: dict[str, Any]) -> bool:
    return str(run.get("status", "")).lower() in _VALID


def _from_metrics(record: AnyRecord) -> list[BenchmarkValue]:
    status = record.status.value
    rows = []
    for number in record.metrics:
        run, log = _printed(record, number)
        printed = run.get("parameters")
        parameters = dict(record.point.get("options", ())) | (printed if isinstance(printed, dict) else {})
        rows.append(
            BenchmarkValue(
                stage=record.stage,
                cell_id=record.cell_id,
                # As its log calls it, so that it is compared with logs of others.
                benchmark=str(
                    run.get("benchmark") or record.point.get("benchmark") or record.point.get("source") or ""
                ),
                variant=_variant(run),
                version=str(run.get("version") or ""),
                where=_where(run),
                valid=status == "ok",
                status=status,
                reason=record.message,
                name=number.name,
                label=number.label or "",
                value=number.value,
                unit=number.unit,
                threads=record.point.threads,
                parameters=parameters,
                warnings=_warnings(run),
                direction=number.direction.value,
                run=record.cell_id,
                **_series(log, number.label or ""),
                **_place(record),
            )
        )
    return rows


def _variant(run: dict[str, Any]) -> str:
    """Return a run's variant with its test, where a benchmark has many: no best is among them."""
    printed = run.get("parameters")
    parameters = printed if isinstance(printed, dict) else {}
    tests = (parameters.get(name) for name in _TESTS.get(str(run.get("benchmark")), ()))
    return " ".join(str(part) for part in (run.get("variant"), *tests) if part)


def _where(run: dict[str, Any]) -> str:
    line, file = run.get("line"), str(run.get("file") or "")
    return f"{file}:{line}" if file and line is not None else file


def _warnings(run: dict[str, Any]) -> tuple[str, ...]:
    given = run.get("warnings")
    warnings = tuple(str(warning) for warning in given) if isinstance(given, list) else ()
    return (*(f"{DOUBT}{suspicion}" for suspicion in _suspicions(run)), *warnings)


def _suspicions(run: dict[str, Any]) -> list[str]:
    given = run.get("suspicions")
    return [str(suspicion) for suspicion in given] if isinstance(given, list) else []


def _printed(record: AnyRecord, number: AnyMetric) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the run and the log's own number behind a metric; empty where the record has none."""
    runs = record.details.get("runs")
    point = number.log
    if point is None or not isinstance(runs, list) or not point.run < len(runs):
        return {}, {}
    run = runs[point.run]
    metrics = run.get("metrics") if isinstance(run, dict) else None
    if not isinstance(metrics, list) or not point.metric < len(metrics):
        return {}, {}
    log = metrics[point.metric]
    return run, log if isinstance(log, dict) else {}


def _series(log: dict[str, Any], label: str) -> dict[str, Any]:
    """Name of the series that a printed number belongs to, with the number's size apart."""
    size = log.get("size")
    name, phase = str(log.get("name") or label), str(log.get("phase") or "")
    parts = [phase, name] if phase and phase not in name else [name]
    text = " ".join(part for part in parts if part)
    digits = str(log.get("printed") or "")
    unit = str(log.get("unit") or "")
    return {
        "series": text,
        "size": size if isinstance(size, int) else None,
        "phase": phase or name,
        "printed": f"{digits} {unit if unit != '1' else ''}".strip() if digits else "",
    }


def _place(record: AnyRecord) -> dict[str, Any]:
    cell = record.point
    about = record.provenance.get("system")
    name = about.get("name") if isinstance(about, dict) else None
    return {
        "placement": _placement(cell),
        "nodes": cell.nodes,
        "ranks": cell.ranks,
        "system": str(name or record.provenance.get("host") or "unknown"),
        "options": " ".join(f"{key}={value}" for key, value in cell.get("options", ())),
    }


def _log_system(file: str, source: str, benchmark: str) -> str:
    """Name the system that a log came from: the first name below the path that was read.

    `source` is the last name of that path. A log that lies directly in it is a system of its own. A
    folder that is called like the benchmark is no system: the name below it is taken.
    """
    parts = PurePosixPath(file).parts
    if source in parts[:-1]:
        parts = parts[parts.index(source) + 1 :]
    elif file.startswith("/"):
        parts = parts[-1:]
    if len(parts) > 1 and _letters(parts[0]) == _letters(benchmark):
        parts = parts[1:]
    return parts[0] if parts else source


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _from_run(record: AnyRecord, run: dict[str, Any], number: int) -> list[BenchmarkValue]:
    file = str(run.get("file") or "")
    given = run.get("metrics")
    metrics = [metric for metric in given if isinstance(metric, dict)] if isinstance(given, list) else []
    parameters = run.get("parameters")
    ran_here = record.stage == "bench"
    benchmark = str(run.get("benchmark") or record.point.get("benchmark") or "")
    system = _log_system(file, record.point.get("source") or "", benchmark)
    place = _place(record) if ran_here else {"system": system}
    rows = []
    for metric in metrics or [{}]:
        name, value, unit = _normalised(metric)
        extra = [str(metric[key]) for key in ("label", "phase", "size") if metric.get(key) is not None]
        if metric.get("name") and metric["name"] != name:
            extra.insert(0, str(metric["name"]))
        rows.append(
            BenchmarkValue(
                stage=record.stage,
                cell_id=record.cell_id,
                benchmark=benchmark,
                variant=_variant(run),
                version=str(run.get("version") or ""),
                where=_where(run),
                valid=_is_valid(run),
                status="suspicious" if _is_valid(run) and _suspicions(run) else str(run.get("status") or "unknown"),
                reason=str(run.get("reason") or ""),
                name=name,
                label=" ".join(extra),
                value=value,
                unit=unit,
                threads=record.point.threads if ran_here else None,
                parameters=parameters if isinstance(parameters, dict) else {},
                warnings=_warnings(run),
                direction=str(metric.get("direction") or ""),
                run=f"{record.cell_id} {number}",
                **_series(metric, str(metric.get("label") or "")),
                **place,
            )
        )
    return rows


def _placement(cell: Cell) -> str:
    if cell.ranks == 1:
        return ""
    ranks = f"{cell.nodes} x {cell.ranks_per_node} ranks"
    return f"{ranks} · {cell.network}" if cell.network else ranks


def _normalised(metric: dict[str, Any]) -> tuple[str, float | None, str]:
    """Name, value and unit: those of the registry where the parser gives them, else as printed."""
    normal = metric.get("normalised")
    given = normal if isinstance(normal, dict) else metric
    name = str(given.get("name") or metric.get("name") or "")
    return name, _number(given.get("value")), str(given.get("unit") or "")


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and value == value else None
