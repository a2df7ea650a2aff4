"""`transect ingest`, and the report of an archive of logs."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transect.cli.output import add_row, new_table, print_lines, print_table
from transect.domain.errors import BadInput
from transect.domain.terminal import overwrite, say

if TYPE_CHECKING:
    from transect.analysis.benchmark_table import Best
    from transect.analysis.log_summary import Counted, LogSummary
    from transect.domain.record import Record
    from transect.hpc.archive import Archive
    from transect.hpc.base import Run

_EVERY_S = 1.0
_MAX_BEST = 200
# Rows of counts beyond which the systems of a benchmark share one: the files of a plain folder are each a system.
_MAX_COUNTED = 200


def ingest(
    paths: Annotated[list[Path], typer.Argument(help="log files or folders")],
    output: Annotated[str, typer.Option("--format", help="table, json or csv")] = "table",
    benchmark: Annotated[str | None, typer.Option(help="do not guess: it is this one")] = None,
    limits: Annotated[
        str | None, typer.Option(help="'strict': refuse what is suspicious; or a JSON file, {metric: [low, high]}")
    ] = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="an archive: counts, best values, what was refused")
    ] = False,
) -> None:
    """Read benchmark logs: what each file is, what it says, and whether to believe it.

    A file that nobody recognises is listed as `unknown`; nothing is dropped. With --summary only files that
    changed are read again.
    Example: transect ingest logs/ --format json
    """
    from transect.hpc.ingest import ingest as read
    from transect.hpc.refusal import refusal_of
    from transect.hpc.table import format_table, to_json, write_csv

    known = ("table", "json") if summary else ("table", "json", "csv")
    if output not in known:
        raise BadInput(f"--format {output!r}: expected {', '.join(known[:-1])} or {known[-1]}")
    refusal = refusal_of(limits)
    if summary:
        if benchmark is not None:
            raise BadInput("--summary reads whatever is there: expected no --benchmark")
        archive = _archive(paths, limits)
        tables = _summary(archive, paths)
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
    """Says on stderr how far reading is: in one line of a terminal, else in a line each ten seconds."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._last = time.monotonic()
        self._said = False

    def __call__(self, files: int, total: int, size: int, known: int) -> None:
        now = time.monotonic()
        if now - self._last < (_EVERY_S if self._terminal else 10 * _EVERY_S):
            return
        self._last, self._said = now, True
        text = f"read {files:,} of {total:,} files, {size / 1e6:,.0f} MB, {known:,} unchanged"
        if self._terminal:
            overwrite(text)
        else:
            say(text)

    def end(self) -> None:
        if self._said and self._terminal:
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


def _records(archive: Archive, paths: Sequence[Path], study: str) -> list[Record]:
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
        found[next((tops[one] for one in above if one in tops), next(iter(sources)))].append(run)
    for name, real in sources.items():
        inside = found[name]
        result = result_of(inside, must_have=False)
        cell = IngestCell(source=name)
        records.append(
            Record(
                study=study,
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


def _summary(archive: Archive, paths: Sequence[Path]) -> LogSummary:
    from transect.analysis.log_summary import summarise_logs

    return summarise_logs(_records(archive, paths, "logs"))


def _shortened(counted: Sequence[Counted]) -> Sequence[Counted]:
    """Return the rows of counts, where they are too many with all systems of a benchmark together."""
    from transect.analysis.log_summary import Counted

    if len(counted) <= _MAX_COUNTED:
        return counted
    alike: dict[tuple[str, str], list[Counted]] = {}
    for row in counted:
        alike.setdefault((row.benchmark, row.version), []).append(row)
    return [
        Counted(
            benchmark=benchmark,
            version=version,
            system=rows[0].system if len(rows) == 1 else f"{len(rows):,} systems",
            counts=dict(sum((Counter(row.counts) for row in rows), Counter())),
        )
        for (benchmark, version), rows in alike.items()
    ]


def _fair(rows: Sequence[Best]) -> Sequence[Best]:
    """Return the rows to be printed: of many, as many of each benchmark as fit, and no benchmark left out."""
    seen: Counter[str] = Counter()
    places = []
    for row in rows:
        places.append(seen[row.benchmark])
        seen[row.benchmark] += 1
    if len(rows) <= _MAX_BEST:
        return rows
    most = max(1, sorted(places)[_MAX_BEST])
    return [row for row, place in zip(rows, places, strict=True) if place < most]


def _print(tables: LogSummary, archive: Archive, paths: Sequence[Path]) -> None:
    from transect.analysis.log_summary import STATUSES

    # Of one folder the same beginning of every path says nothing.
    above = f"{_text(paths[0])}/" if len(paths) == 1 else ""
    said = f"{archive.files:,} files, {archive.bytes / 1e6:,.1f} MB, {len(archive.runs):,} runs"
    print_lines(f"{said}; {archive.known:,} files had not changed", "")
    shown = [one for one in STATUSES if any(one in row.counts for row in tables.counted)]
    counts = new_table("benchmark", "system", "version", "runs", *shown)
    for row in _shortened(tables.counted):
        numbers = [str(row.counts.get(one, "")) for one in shown]
        add_row(counts, row.benchmark, row.system, row.version, str(row.runs), *numbers)
    print_table(counts)
    if tables.best:
        print_lines("", "Best valid value of each benchmark:")
        best = new_table("benchmark", "value", "of", "system", "where")
        shown_best = _fair(tables.best)
        for one in shown_best:
            value = one.value
            assert value is not None
            name = " ".join(part for part in (one.benchmark, one.variant, *one.barrier) if part)
            doubt = " (suspicious)" if value.status == "suspicious" else ""
            of = one.series if value.size is None else f"{one.series}, size {value.size}"
            add_row(best, name, value.printed + doubt, of, one.system, value.where.removeprefix(above))
        print_table(best)
        if left := len(tables.best) - len(shown_best):
            print_lines(f"and {left} more of benchmarks with many: --format json has all")
    for title, rows in (("Not believed:", tables.refused), ("Believed, with a doubt:", tables.doubted)):
        if rows:
            print_lines("", title)
            reasons = new_table("benchmark", "status", "runs", "why, of the first", "where")
            for no in rows:
                where = no.where.removeprefix(above)
                add_row(reasons, no.benchmark, no.status, str(no.runs), no.example, where)
            print_table(reasons)


def logs_report(folder: Path, output: Path, limits: str | None = None) -> dict[str, Any]:
    """Write the report of an archive of logs, without any study, to `output`; return its summary."""
    from transect.domain.paths import StudyPaths
    from transect.domain.record import write_record
    from transect.report.build import build_report

    if not folder.exists():
        raise BadInput(f"--logs {folder}: no such file or folder")
    archive = _archive([folder], limits)
    title = f"Logs of {folder.resolve().name or folder}"
    with TemporaryDirectory(prefix="transect-logs-") as temporary:
        paths = StudyPaths(results=Path(temporary), study="logs")
        for record in _records(archive, [folder], "logs"):
            write_record(paths.record("ingest", record.cell_id), record)
        output.parent.mkdir(parents=True, exist_ok=True)
        # Nothing ran here: sections on training and runtimes would only say so.
        return build_report(paths.folder, output, title=title, questions=[], only=("hardware", "methods"))
