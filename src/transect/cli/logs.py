"""`transect ingest`, and the report of an archive of logs."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transect.cli.output import print_lines, print_table
from transect.domain.errors import BadInput
from transect.domain.terminal import overwrite, say

if TYPE_CHECKING:
    from transect.analysis.log_summary import LogSummary
    from transect.domain.record import Record
    from transect.hpc.archive import Archive
    from transect.hpc.base import Run

_EVERY_S = 1.0
# Of a table on the terminal.
_MAX_ROWS = 200


def ingest(
    paths: Annotated[list[Path], typer.Argument(help="log files or folders")],
    output: Annotated[str, typer.Option("--format", help="table, json or csv")] = "table",
    benchmark: Annotated[
        str | None, typer.Option(help="the benchmark of all logs [default: recognised by content]")
    ] = None,
    limits: Annotated[
        str | None, typer.Option(help="'strict': refuse what is suspicious; or a JSON file, {metric: [low, high]}")
    ] = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="an archive: counts, best values, what was refused")
    ] = False,
) -> None:
    """Read benchmark logs: detect the benchmark, extract its metrics, and validate them.

    A file that nobody recognises is listed as `unknown`; nothing is dropped. With --summary only files that changed are
    read again. Example: transect ingest logs/ --format json
    """
    from transect.hpc.ingest import ingest as read
    from transect.hpc.refusal import refusal_of
    from transect.hpc.table import format_table, to_json, write_csv

    known = ("table", "json") if summary else ("table", "json", "csv")
    if output not in known:
        raise BadInput(f"--format {output!r}: expected {', '.join(known[:-1])} or {known[-1]}")
    refusal = refusal_of(limits)
    if summary:
        from transect.analysis.log_summary import summarise_logs

        if benchmark is not None:
            raise BadInput("--summary reads whatever is there: expected no --benchmark")
        archive = _archive(paths, limits)
        tables = summarise_logs(_records(archive, paths))
        if output == "json":
            facts = {"files": archive.files, "bytes": archive.bytes, "unchanged": archive.known}
            print(json.dumps(facts | tables.plain(), indent=1))
        else:
            _print(tables, archive, paths)
        return
    runs = read(paths, benchmark, refusal)
    if output == "csv":
        write_csv(runs, sys.stdout)
    elif output == "json":
        print(to_json(runs), end="")
    else:
        print_lines(*format_table(runs).split("\n"))


class _Meter:
    """Says in one line of a terminal how far reading is."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._said = False

    def __call__(self, files: int, total: int, size: int, known: int) -> None:
        now = time.monotonic()
        if sys.stderr.isatty() and now - self._last >= _EVERY_S:
            self._last, self._said = now, True
            overwrite(f"read {files:,} of {total:,} files, {size / 1e6:,.0f} MB, {known:,} unchanged")

    def end(self) -> None:
        if self._said:
            overwrite(None)


def _archive(paths: Sequence[Path], limits: str | None) -> Archive:
    from transect.domain.paths import environments_folder
    from transect.hpc.archive import read_archive
    from transect.hpc.refusal import refusal_of

    meter = _Meter()
    cache = environments_folder().parent / "logs"
    archive = read_archive(paths, refusal=refusal_of(limits), cache=cache, progress=meter)
    meter.end()
    if archive.note:
        say(f"transect: {archive.note}", to=sys.stderr)
    return archive


def _records(archive: Archive, paths: Sequence[Path]) -> list[Record]:
    """Return the archive as the ingest records of a study that reads each of the paths.

    A run belongs to the path that it was found below; a link may lead out of it.
    """
    from transect.domain.axes.bench import IngestCell
    from transect.domain.record import Record, Status
    from transect.domain.secrets import without_secrets
    from transect.hpc.sources import log_sources
    from transect.stages.ingest.result import result_of

    sources = log_sources(paths)
    now, records = datetime.now(UTC).isoformat(timespec="seconds"), []
    name_of = {real: name for name, real in sources.items()}
    tops = {_text(path): name_of[Path(os.path.realpath(path))] for path in paths}
    found: dict[str, list[Run]] = {name: [] for name in sources}
    for run in archive.runs:
        above = (run.file, *map(str, Path(run.file).parents))
        found[next((tops[folder] for folder in above if folder in tops), next(iter(sources)))].append(run)
    for name, real in sources.items():
        inside = found[name]
        result = result_of(inside, must_have=False)
        cell = IngestCell(source=name)
        records.append(
            Record(
                study="logs",
                stage="ingest",
                cell=cell,
                cell_id=cell.id,
                status=Status.OK,
                fingerprint="",
                started=now,
                ended=now,
                metrics=result.metrics,
                details=without_secrets(result.details),
                parameters={"path": str(real)},
            )
        )
    return records


def _text(path: Path) -> str:
    """Return a path as runs have it: whatever bytes it has, it can be encoded."""
    return os.fsencode(path).decode("utf-8", "replace")


def _print(tables: LogSummary, archive: Archive, paths: Sequence[Path]) -> None:
    from transect.analysis.log_summary import STATUSES

    # Of one folder the same beginning of every path says nothing.
    above = f"{_text(paths[0])}/" if len(paths) == 1 else ""
    amounts = f"{archive.files:,} files, {archive.bytes / 1e6:,.1f} MB, {len(archive.runs):,} runs"
    print_lines(f"{amounts}; {archive.known:,} files had not changed", "")
    shown = [status for status in STATUSES if any(status in row.counts for row in tables.counted)]
    counts = [
        (row.benchmark, row.system, row.version, str(row.runs), *(str(row.counts.get(status, "")) for status in shown))
        for row in tables.counted
    ]
    print_table(("benchmark", "system", "version", "runs", *shown), counts, _MAX_ROWS)
    if tables.best:
        print_lines("", "Best valid value of each benchmark:")
        best = []
        for best_value in tables.best:
            value = best_value.value
            assert value is not None
            name = " ".join(part for part in (best_value.benchmark, best_value.variant, *best_value.barrier) if part)
            doubt = " (suspicious)" if value.status == "suspicious" else ""
            of = best_value.series if value.size is None else f"{best_value.series}, size {value.size}"
            best.append((name, value.printed + doubt, of, best_value.system, value.where.removeprefix(above)))
        print_table(("benchmark", "value", "of", "system", "where"), best, _MAX_ROWS)
    for title, rows in (("Refused:", tables.refused), ("Suspicious:", tables.doubted)):
        if rows:
            print_lines("", title)
            reasons = [(no.benchmark, no.status, str(no.runs), no.example, no.where.removeprefix(above)) for no in rows]
            print_table(("benchmark", "status", "runs", "why, of the first", "where"), reasons)


def logs_report(folder: Path, output: Path, limits: str | None = None) -> dict[str, Any]:
    """Write the report of an archive of logs, without any study, to `output`; return its summary."""
    from transect.domain.paths import StudyPaths
    from transect.domain.record import write_record
    from transect.report.engine.build import build_report

    if not folder.exists():
        raise BadInput(f"--logs {folder}: no such file or folder")
    archive = _archive([folder], limits)
    title = f"Logs of {folder.resolve().name or folder}"
    with TemporaryDirectory(prefix="transect-logs-") as temporary:
        paths = StudyPaths(results=Path(temporary), study="logs")
        for record in _records(archive, [folder]):
            write_record(paths.record("ingest", record.cell_id), record)
        output.parent.mkdir(parents=True, exist_ok=True)
        # Nothing ran here: sections on training and runtimes would only say so.
        return build_report(paths.folder, output, title=title, questions=[], only=("hardware", "methods"))
