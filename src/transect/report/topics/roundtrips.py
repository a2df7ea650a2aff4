"""What a report says of round trips: which framework loads whose files."""

from __future__ import annotations

from collections.abc import Iterator

from transect.analysis.entries import AnyRecord
from transect.report.engine.blocks import Lead, Part, digits, table, words
from transect.report.engine.context import Context
from transect.report.engine.parts import Section, StageReport
from transect.report.engine.porting import matrix, reasons, split, tolerance


def _model(record: AnyRecord) -> str:
    return f"{record.cell.workload} by {record.cell.get('exporter')}"


def _loader(record: AnyRecord) -> str:
    return str(record.cell.get("loader"))


def _name(record: AnyRecord) -> str:
    return f"{_model(record)} into {_loader(record)}"


def round_trips(context: Context) -> Iterator[Part]:
    """Show every file by every framework, the reasons of failures, and the differences."""
    records, good, tried = split(context, "roundtrip")
    if not records:
        return
    yield Lead(
        f"In {len(good)} of {len(tried)} cases another framework loads the file, and computes what "
        "the one that made it does, within the file's own tolerance."
    )
    yield matrix(records, "File", _model, _loader, "Files by frameworks that load them")
    yield reasons(records, _name)
    columns = [
        words("Round trip", _name),
        digits("Largest difference", lambda record: record.value("max_abs_difference")),
        digits("Tolerance", tolerance),
        words("Rows", lambda r: str(r.details.get("rows_compared") or "all")),
    ]
    yield table(good, columns, folded="Differences of round trips")


REPORT = StageReport(
    stage="roundtrip", sections=(Section(key="roundtrips", title="Round trips", order=560, make=round_trips),)
)
