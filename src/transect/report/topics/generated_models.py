"""What a report says of made models: which exporter can do which, and what its file is like."""

from __future__ import annotations

from collections.abc import Iterator

from transect.analysis.entries import AnyRecord
from transect.report.engine.blocks import Lead, Part, digits, table, words
from transect.report.engine.context import Context
from transect.report.engine.parts import Section, StageReport
from transect.report.engine.porting import matrix, reasons, rules, split, tolerance
from transect.report.engine.text import in_unit


def _name(record: AnyRecord) -> str:
    return f"{record.cell.workload} by {record.cell.get('exporter')}"


def models(context: Context) -> Iterator[Part]:
    """Show every model by every exporter, the facts of the files, and the reasons of failures."""
    records, good, tried = split(context, "generated-model")
    if not records:
        return
    yield Lead(
        f"{len(good)} of {len(tried)} exports that exporters offer give a valid file that computes "
        "what the framework computes. Weights and inputs are drawn."
    )
    yield matrix(
        records,
        "Model",
        lambda record: str(record.cell.workload),
        lambda record: str(record.cell.get("exporter")),
        "Models by exporters",
    )
    yield reasons(records, _name)
    columns = [
        words("Model", _name),
        digits("File", lambda record: record.value("model_bytes"), in_unit("B")),
        digits("Opset", lambda record: record.value("opset")),
        digits("IR", lambda record: record.value("ir_version")),
        digits("Operators", lambda record: record.value("operators")),
        digits("Largest difference", lambda record: record.value("max_abs_difference")),
        digits("Tolerance", tolerance),
        words("Rows", lambda r: "any number" if r.details.get("batched") else "fixed"),
        digits("Export time", lambda record: record.value("export_time"), in_unit("s")),
    ]
    yield table(good, columns, caption="The files", fold_title="The files")
    yield from rules(good)


REPORT = StageReport(
    stage="generated-model", sections=(Section(key="models", title="Models by exporters", order=520, make=models),)
)
