"""Section: is each ONNX export faithful to the model it came from?"""

from __future__ import annotations

from collections.abc import Iterator

from transect.analysis.entries import AnyRecord
from transect.report.engine.blocks import Chip, Column, Lead, Part, Table, digits, note, table, words
from transect.report.engine.charts.chart import dot_chart
from transect.report.engine.charts.marks import Dot
from transect.report.engine.context import Context
from transect.report.engine.text import clean, count, in_unit, number, tenths
from transect.report.topics.exports.findings import judge_export

# Columns of one table: beyond them it is read from the records.
_MAX_COLUMNS = 24


def export_body(context: Context) -> Iterator[Part]:
    """Draw the output difference of each export as a share of its tolerance, and list the facts."""
    exports = [record for group in context.of("export") for record in group.records if record.metrics]
    faithful = sum(judge_export(record).faithful is True for record in exports)
    lead = f"{faithful} of {count(len(exports), 'export')} are faithful to the model. " if exports else ""
    yield Lead(
        f"{lead}The exported model and the framework get the same test inputs. An export is faithful if "
        "its outputs stay within the tolerance and every predicted class is the same."
    )
    if exports:
        yield _chart(context, exports)
        yield table(exports, _facts(), caption="The exported files")
        yield _operators(exports)
    rules = {str(r.details["tolerance_rule"]) for r in exports if "tolerance_rule" in r.details}
    for rule in sorted(rules):
        yield note(clean(f"Tolerance: {rule}."))


def _name(record: AnyRecord) -> str:
    cell = record.point
    extra = [cell.precision] if cell.precision != "fp32" else []
    return " · ".join([*(str(cell.get(axis)) for axis in ("workload", "framework", "exporter")), *extra])


def _verdict(record: AnyRecord) -> Chip:
    faithful = judge_export(record).faithful
    if faithful is None:
        return Chip("not judged", "warn")
    return Chip("faithful", "good") if faithful else Chip("not faithful", "bad")


def _tolerance(record: AnyRecord) -> float | None:
    value = record.details.get("tolerance")
    return float(value) if isinstance(value, (int, float)) and value > 0 else None


def _chart(context: Context, exports: list[AnyRecord]) -> Part:
    def dot(record: AnyRecord) -> Dot:
        difference = record.value("max_abs_difference") or 0.0
        return Dot(
            label=_name(record),
            # An exact match has no place on a log axis; a thousandth of the rule stands for it.
            value=max(difference / (_tolerance(record) or 1.0), 1e-3),
            style=context.styles.get(record.point.get("exporter")),
            right=f"{number(difference)} · {_verdict(record).text}",
        )

    known = [r for r in exports if r.value("max_abs_difference") is not None and _tolerance(r)]
    drawn = {id(record) for record in known}
    return dot_chart(
        known,
        dot,
        [
            words("Export", _name),
            digits("Largest difference", lambda record: record.value("max_abs_difference")),
            digits("Tolerance", _tolerance),
            digits("Largest relative", lambda record: record.value("max_rel_difference")),
            digits("Same class", lambda record: record.value("top1_agreement"), tenths),
            words("", _verdict),
        ],
        title="Output difference over tolerance",
        axis="difference / tolerance (log scale)",
        name="export",
        first="First",
        rule=1.0,
        log=True,
        cut="later",
        others=[record for record in exports if id(record) not in drawn],
        notes=["Left of the dashed line passes. At the right: the largest absolute difference."],
    )


def _facts() -> list[Column[AnyRecord]]:
    def fact(record: AnyRecord, key: str) -> str:
        return clean(str(record.details.get(key, "–")))

    def yes(record: AnyRecord, key: str) -> str:
        answer = record.details.get(key)
        return "–" if answer is None else "yes" if answer else "no"

    return [
        words("Export", _name),
        digits("File", lambda record: record.value("model_bytes"), in_unit("B")),
        digits("Opset", lambda record: record.value("opset")),
        digits("IR", lambda record: record.value("ir_version")),
        digits("Operators", lambda record: record.value("operators")),
        digits("Initialisers", lambda record: fact(record, "initialisers")),
        words("Shared", lambda record: yes(record, "initialisers_shared")),
        words("Dynamic batch", lambda record: yes(record, "dynamic_batch")),
        words("Checker", lambda record: fact(record, "checker")),
        digits("Export time", lambda record: record.value("export_time"), in_unit("s")),
    ]


def _operators(exports: list[AnyRecord]) -> Table:
    def counts(record: AnyRecord) -> dict[str, object]:
        given = record.details.get("operators_by_type")
        return given if isinstance(given, dict) else {}

    shown = exports[:_MAX_COLUMNS]
    kinds = sorted({kind for record in shown for kind in counts(record)})

    def amounts(record: AnyRecord) -> Column[str]:
        of_kind = counts(record)
        return digits(_name(record), lambda kind: clean(str(of_kind.get(kind, "–"))))

    columns: list[Column[str]] = [words("Operator", clean), *map(amounts, shown)]
    return table(kinds, columns, folded="Operators by type")
