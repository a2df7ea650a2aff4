"""What a report says of conversions: how much smaller a file gets, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator

from transect.analysis.entries import AnyRecord
from transect.report.engine.blocks import Lead, Part, digits, table, words
from transect.report.engine.context import Context
from transect.report.engine.parts import Section, StageReport
from transect.report.engine.porting import matrix, reasons, rules, split
from transect.report.engine.text import in_unit, percent


def _model(record: AnyRecord) -> str:
    return f"{record.cell.workload} by {record.cell.get('exporter')}"


def _name(record: AnyRecord) -> str:
    return f"{_model(record)} in {record.cell.precision}"


def _detail(record: AnyRecord, key: str) -> float | None:
    value = record.details.get(key)
    return float(value) if isinstance(value, (int, float)) else None


def _tenths(share: float) -> str:
    return percent(share, 1)


def _share(record: AnyRecord) -> float | None:
    """Return the size of the converted file over that of the float32 one."""
    after, before = record.value("model_bytes"), _detail(record, "model_bytes_before")
    return after / before if after and before else None


def conversions(context: Context) -> Iterator[Part]:
    """Show every model by every precision, then sizes, differences and accuracies."""
    records, good, tried = split(context, "convert")
    if not records:
        return
    scored = [record for record in good if record.value("accuracy") is not None]
    yield Lead(
        f"{len(good)} of {len(tried)} conversions that are offered run in ONNX Runtime. {len(scored)} are of "
        "trained models and scored on their test sets; the others have drawn weights, and say "
        "whether a conversion runs and how far its outputs move, not what it costs in accuracy."
    )
    yield matrix(records, "Model", _model, lambda record: record.cell.precision, "Models by precisions")
    yield reasons(records, _name)
    columns = [
        words("Model", _name),
        digits("File", lambda record: record.value("model_bytes"), in_unit("B")),
        digits("Of float32", _share, percent),
        digits("Accuracy before", lambda record: _detail(record, "accuracy_before"), _tenths),
        digits("After", lambda record: record.value("accuracy"), _tenths),
        digits("Loss", lambda record: record.value("accuracy_loss"), _tenths),
        digits("Scored", lambda record: record.details.get("rows_scored")),
        digits("Same class", lambda record: record.value("top1_agreement"), percent),
        digits("Largest difference", lambda record: record.value("max_abs_difference")),
        digits("Compared", lambda record: record.details.get("rows_compared")),
    ]
    yield table(good, columns, caption="What conversions cost", fold_title="What conversions cost")
    yield from rules(good, "converter", "Converted by")
    yield from rules(good)


REPORT = StageReport(
    stage="convert", sections=(Section(key="conversions", title="Lower precisions", order=540, make=conversions),)
)
