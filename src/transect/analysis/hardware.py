"""Benchmark runs of bench and ingest records as flat rows, each with its validity."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from transect.domain.cell import Cell
from transect.domain.record import Record

__all__ = ["BenchmarkValue", "benchmark_values"]

_VALID = ("ok",)


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkValue:
    """One number of one benchmark run. `valid` is False unless the run says that it passed.

    `name` is the registry's where the number could be converted to the registry's unit, else
    the log's own. `placement` says how several ranks were placed, and the network between them.
    """

    stage: str
    cell_id: str
    benchmark: str
    variant: str
    version: str
    where: str
    valid: bool
    status: str
    reason: str
    name: str
    label: str
    value: float | None
    unit: str
    threads: int | None
    parameters: dict[str, Any]
    warnings: tuple[str, ...]
    placement: str = ""


def benchmark_values(records: Iterable[Record]) -> list[BenchmarkValue]:
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
        for run in entries:
            rows += _from_run(record, run)
    return rows


def _is_valid(run: dict[str, Any]) -> bool:
    return str(run.get("status", "")).lower() in _VALID


def _from_metrics(record: Record) -> list[BenchmarkValue]:
    status = record.status.value
    return [
        BenchmarkValue(
            stage=record.stage, cell_id=record.cell_id,
            benchmark=record.cell.benchmark or record.cell.source or "",
            variant="", version="", where="", valid=status == "ok", status=status,
            reason=record.message, name=one.name, label=one.label or "", value=one.value,
            unit=one.unit, threads=record.cell.threads, parameters={}, warnings=(),
            placement=_placement(record.cell),
        )
        for one in record.metrics
    ]  # fmt: skip


def _from_run(record: Record, run: dict[str, Any]) -> list[BenchmarkValue]:
    line = run.get("line")
    file = str(run.get("file") or "")
    warnings = run.get("warnings")
    given = run.get("metrics")
    metrics = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    parameters = run.get("parameters")
    rows = []
    for one in metrics or [{}]:
        name, value, unit = _normalised(one)
        extra = [str(one[key]) for key in ("label", "phase", "size") if one.get(key) is not None]
        if one.get("name") and one["name"] != name:
            extra.insert(0, str(one["name"]))
        rows.append(
            BenchmarkValue(
                stage=record.stage,
                cell_id=record.cell_id,
                benchmark=str(run.get("benchmark") or record.cell.benchmark or ""),
                variant=str(run.get("variant") or ""),
                version=str(run.get("version") or ""),
                where=f"{file}:{line}" if file and line is not None else file,
                valid=_is_valid(run),
                status=str(run.get("status") or "unknown"),
                reason=str(run.get("reason") or ""),
                name=name,
                label=" ".join(extra),
                value=value,
                unit=unit,
                threads=record.cell.threads if record.stage == "bench" else None,
                parameters=parameters if isinstance(parameters, dict) else {},
                warnings=tuple(str(w) for w in warnings) if isinstance(warnings, list) else (),
                placement=_placement(record.cell),
            )
        )
    return rows


def _placement(cell: Cell) -> str:
    if cell.ranks == 1:
        return ""
    ranks = f"{cell.nodes} x {cell.ranks_per_node} ranks"
    return f"{ranks} · {cell.network}" if cell.network else ranks


def _normalised(one: dict[str, Any]) -> tuple[str, float | None, str]:
    """Name, value and unit: those of the registry where the parser gives them, else as printed."""
    normal = one.get("normalised")
    given = normal if isinstance(normal, dict) else one
    name = str(given.get("name") or one.get("name") or "")
    return name, _number(given.get("value")), str(given.get("unit") or "")


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and value == value else None
