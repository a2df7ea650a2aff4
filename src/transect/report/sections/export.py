"""Section: is each ONNX export faithful to the model it came from?"""

from __future__ import annotations

from collections.abc import Mapping

from transect.domain.record import Record
from transect.report.blocks import Block, Chart, Charts, Chip, Column, Prose, Section, Table, Value
from transect.report.charts.plots import Dot, dot_plot
from transect.report.charts.theme import render
from transect.report.context import Context
from transect.report.findings.models import judge_export
from transect.report.text import clean, number, percent, quantity

__all__ = ["export_section"]


def export_section(context: Context) -> Section:
    """Draw the output difference of each export as a share of its tolerance, and list the facts."""
    records = [record for record in context.records if record.stage == "export"]
    judged = [record for record in records if record.metrics]
    blocks: list[Block] = []
    if judged:
        chart = _chart(context, judged)
        if chart is not None:
            blocks.append(Charts(items=[chart]))
        blocks += [_facts(judged), _operators(judged)]
        rules = {str(r.details["tolerance_rule"]) for r in judged if "tolerance_rule" in r.details}
        blocks += [Prose(clean(f"Tolerance: {rule}."), quiet=True) for rule in sorted(rules)]
    else:
        blocks.append(Prose("No model was exported.", quiet=True))
    lead = (
        "The exported model and the framework get the same test inputs. An export is faithful if "
        "its outputs stay within the tolerance and every predicted class is the same."
    )
    return Section(id="export", title="Export check", lead=lead, blocks=blocks)


def _name(record: Record) -> str:
    cell = record.cell
    parts = (cell.workload, cell.framework, cell.exporter)
    extra = [cell.precision] if cell.precision != "fp32" else []
    return " · ".join([*(part for part in parts if part), *extra])


def _verdict(record: Record) -> Chip:
    faithful = judge_export(record).faithful
    if faithful is None:
        return Chip("not judged", "warn")
    return Chip("faithful", "good") if faithful else Chip("not faithful", "bad")


def _tolerance(record: Record) -> float | None:
    value = record.details.get("tolerance")
    return float(value) if isinstance(value, (int, float)) and value > 0 else None


def _chart(context: Context, records: list[Record]) -> Chart | None:
    dots: list[Dot] = []
    rows: list[list[Value]] = []
    for record in records:
        difference, tolerance = record.value("max_abs_difference"), _tolerance(record)
        relative = record.value("max_rel_difference")
        agreement = record.value("top1_agreement")
        rows.append([
            _name(record), number(difference) if difference is not None else "–",
            number(tolerance) if tolerance else "–",
            number(relative) if relative is not None else "–",
            percent(agreement, 1), _verdict(record),
        ])  # fmt: skip
        if difference is not None and tolerance:
            # An exact match has no place on a log axis; a thousandth of the rule stands for it.
            share = max(difference / tolerance, 1e-3)
            dots.append(
                Dot(
                    label=_name(record),
                    value=share,
                    style=context.styles.get(record.cell.exporter),
                    right=f"{number(difference)} · {_verdict(record).text}",
                )
            )
    if not dots:
        return None
    columns = [
        Column("Export"), Column("Largest difference", numeric=True),
        Column("Tolerance", numeric=True), Column("Largest relative", numeric=True),
        Column("Same class", numeric=True), Column(""),
    ]  # fmt: skip
    drawing = dot_plot(dots, title="difference / tolerance (log scale)", rule=1.0, log=True)
    return Chart(
        title="Output difference over tolerance",
        svg=render(drawing, name="export",
                   alt_text=f"Largest output difference of {len(dots)} exports as a share of their "
                   "tolerance; 1 or less passes."),
        alt="Difference over tolerance per export.",
        note="Left of the dashed line passes. At the right: the largest absolute difference.",
        table=Table(columns=columns, rows=rows, folded="Numbers"),
    )  # fmt: skip


def _facts(records: list[Record]) -> Table:
    columns = [
        Column("Export"), Column("File", numeric=True), Column("Opset", numeric=True),
        Column("IR", numeric=True), Column("Operators", numeric=True),
        Column("Initialisers", numeric=True), Column("Shared"), Column("Dynamic batch"), Column("Checker"),
        Column("Export time", numeric=True),
    ]  # fmt: skip
    rows = []
    for record in records:
        details = record.details
        opset, version = record.value("opset"), record.value("ir_version")
        operators = record.value("operators")
        rows.append([
            _name(record), quantity(record.value("model_bytes"), "B"),
            number(opset) if opset else "–", number(version) if version else "–",
            number(operators) if operators else "–", clean(str(details.get("initialisers", "–"))),
            _yes(details.get("initialisers_shared")), _yes(details.get("dynamic_batch")), clean(str(details.get("checker", "–"))),
            quantity(record.value("export_time"), "s"),
        ])  # fmt: skip
    return Table(columns=columns, rows=rows, caption="The exported files")


def _yes(value: object) -> str:
    return "–" if value is None else "yes" if value else "no"


def _operators(records: list[Record]) -> Table:
    counts: list[Mapping[str, object]] = []
    for record in records:
        found = record.details.get("operators_by_type")
        counts.append(found if isinstance(found, dict) else {})
    kinds = sorted({kind for one in counts for kind in one})
    rows = [[clean(kind), *(clean(str(one.get(kind, "–"))) for one in counts)] for kind in kinds]
    columns = [Column("Operator"), *(Column(_name(record), numeric=True) for record in records)]
    return Table(columns=columns, rows=rows, folded="Operators by type")
