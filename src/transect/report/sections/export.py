"""Section: is each ONNX export faithful to the model it came from?"""

from __future__ import annotations

from transect.analysis.entries import AnyRecord
from transect.report.blocks import (
    Block,
    Body,
    Chart,
    Charts,
    Chip,
    Column,
    Prose,
    Table,
    digits,
    table,
    words,
)
from transect.report.charts.chart import dot_chart
from transect.report.charts.plots import Dot
from transect.report.context import Context
from transect.report.findings.models import judge_export
from transect.report.text import clean, number, percent, quantity

__all__ = ["export_body"]

# Columns of one table: beyond them it is read from the records.
_MOST_COLUMNS = 24


def export_body(context: Context) -> Body:
    """Draw the output difference of each export as a share of its tolerance, and list the facts."""
    exports = [
        record for group in context.of("export") for record in group.records if record.metrics
    ]
    blocks: list[Block] = []
    if exports:
        chart = _chart(context, exports)
        if chart is not None:
            blocks.append(Charts(items=[chart]))
        blocks += [table(exports, _facts(), caption="The exported files"), _operators(exports)]
        rules = {str(r.details["tolerance_rule"]) for r in exports if "tolerance_rule" in r.details}
        blocks += [Prose(clean(f"Tolerance: {rule}."), quiet=True) for rule in sorted(rules)]
    else:
        blocks.append(Prose("No model was exported.", quiet=True))
    lead = (
        "The exported model and the framework get the same test inputs. An export is faithful if "
        "its outputs stay within the tolerance and every predicted class is the same."
    )
    return Body(lead=lead, blocks=blocks)


def _name(record: AnyRecord) -> str:
    cell = record.cell
    parts = (cell.workload, cell.get("framework"), cell.get("exporter"))
    extra = [cell.precision] if cell.precision != "fp32" else []
    return " · ".join([*(part for part in parts if part), *extra])


def _verdict(record: AnyRecord) -> Chip:
    faithful = judge_export(record).faithful
    if faithful is None:
        return Chip("not judged", "warn")
    return Chip("faithful", "good") if faithful else Chip("not faithful", "bad")


def _tolerance(record: AnyRecord) -> float | None:
    value = record.details.get("tolerance")
    return float(value) if isinstance(value, (int, float)) and value > 0 else None


def _metric(title: str, name: str, unit: str | None = None) -> Column[AnyRecord]:
    def value(record: AnyRecord) -> str:
        found = record.value(name)
        if unit is not None:
            return quantity(found, unit)
        return "–" if found is None else number(found)

    return digits(title, value)


def _chart(context: Context, exports: list[AnyRecord]) -> Chart | None:
    def dot(record: AnyRecord) -> Dot:
        difference = record.value("max_abs_difference") or 0.0
        return Dot(
            label=_name(record),
            # An exact match has no place on a log axis; a thousandth of the rule stands for it.
            value=max(difference / (_tolerance(record) or 1.0), 1e-3),
            style=context.styles.get(record.cell.get("exporter")),
            right=f"{number(difference)} · {_verdict(record).text}",
        )

    def tolerance(record: AnyRecord) -> str:
        value = _tolerance(record)
        return number(value) if value else "–"

    known = [r for r in exports if r.value("max_abs_difference") is not None and _tolerance(r)]
    drawn = {id(record) for record in known}
    return dot_chart(
        known, dot,
        [
            words("Export", _name), _metric("Largest difference", "max_abs_difference"),
            digits("Tolerance", tolerance), _metric("Largest relative", "max_rel_difference"),
            digits("Same class", lambda record: percent(record.value("top1_agreement"), 1)),
            words("", _verdict),
        ],
        title="Output difference over tolerance", axis="difference / tolerance (log scale)",
        name="export", first="First", rule=1.0, log=True, cut="later",
        others=[record for record in exports if id(record) not in drawn],
        notes=["Left of the dashed line passes. At the right: the largest absolute difference."],
    )  # fmt: skip


def _facts() -> list[Column[AnyRecord]]:
    def told(title: str, key: str) -> Column[AnyRecord]:
        return words(title, lambda record: clean(str(record.details.get(key, "–"))))

    def yes(title: str, key: str) -> Column[AnyRecord]:
        answers = {None: "–", True: "yes", False: "no"}
        return words(
            title, lambda r: answers[None if (v := r.details.get(key)) is None else bool(v)]
        )

    return [
        words("Export", _name), _metric("File", "model_bytes", "B"), _metric("Opset", "opset"),
        _metric("IR", "ir_version"), _metric("Operators", "operators"),
        digits("Initialisers", told("", "initialisers").value),
        yes("Shared", "initialisers_shared"), yes("Dynamic batch", "dynamic_batch"),
        told("Checker", "checker"), _metric("Export time", "export_time", "s"),
    ]  # fmt: skip


def _operators(exports: list[AnyRecord]) -> Table:
    def counts(record: AnyRecord) -> dict[str, object]:
        given = record.details.get("operators_by_type")
        return given if isinstance(given, dict) else {}

    shown = exports[:_MOST_COLUMNS]
    kinds = sorted({kind for record in shown for kind in counts(record)})

    def amounts(record: AnyRecord) -> Column[str]:
        of_kind = counts(record)
        return digits(_name(record), lambda kind: clean(str(of_kind.get(kind, "–"))))

    columns: list[Column[str]] = [words("Operator", clean), *map(amounts, shown)]
    return table(kinds, columns, folded="Operators by type")
