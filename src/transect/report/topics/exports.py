"""What a report says of exports: does the ONNX model compute what the framework computes?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from transect.analysis.entries import AnyRecord
from transect.analysis.groups import is_wrong
from transect.analysis.labels import word
from transect.domain.record import Status
from transect.report.engine.blocks import Chip, Lead, Part, digits, table, words
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, names
from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.engine.text import count, number, percent, tenths
from transect.report.topics.ported import DIFFERENCE, FILE, detail, metric, rules
from transect.stats.comparisons import Confidence


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether an export is faithful; None when its record holds nothing to judge by."""

    faithful: bool | None
    reason: str


def judge_export(record: AnyRecord) -> Judgement:
    """Judge one export record by its difference, its tolerance and the predicted classes."""
    if is_wrong(record):
        return Judgement(False, record.message.split("\n")[0][:120] or "wrong result")
    if record.status is not Status.OK:
        return Judgement(None, f"{record.status.value}: {record.cause}")
    difference, agreement = record.value("max_abs_difference"), record.value("top1_agreement")
    tolerance = detail(record, "tolerance")
    if difference is None:
        return Judgement(None, "outputs were not compared")
    if tolerance is not None and difference > tolerance:
        return Judgement(False, f"difference {number(difference)} over {number(tolerance)}")
    if agreement is not None and agreement < 1:
        return Judgement(False, f"another class for {percent(1 - agreement, 1)} of the test set")
    return Judgement(True, f"difference {number(difference)}")


def export_findings(context: Context) -> list[Finding]:
    """One finding on all exports together."""
    records = [record for record in context.records if record.stage == "export"]
    judged = [(record, judge_export(record)) for record in records]
    known = [pair for pair in judged if pair[1].faithful is not None]
    if not known:
        return []
    bad = [pair for pair in known if not pair[1].faithful]
    worst = max((record.value("max_abs_difference") or 0.0 for record, _ in known), default=0.0)
    unknown = len(judged) - len(known)
    right = f"{len(known) - len(bad)} of {count(len(judged), 'ONNX export')} compute"
    if not bad and not unknown:
        right = "the one ONNX export computes" if len(known) == 1 else f"all {len(known)} ONNX exports compute"
    listed = names([f"{r.cell_id.split('~')[0]} ({verdict.reason})" for r, verdict in bad])
    claim = f"{right} what the framework computes" + (f"; not {listed}" if bad else "")
    claim += f"; {unknown} could not be judged." if unknown else "."
    return [
        Finding(
            subject="export",
            claim=claim,
            evidence=f"largest output difference {number(worst)}, same test inputs on both sides",
            confidence=Confidence.CONFIRMED,
            kind="export",
            alarm=bool(bad),
        )
    ]


def export_body(context: Context) -> Iterator[Part]:
    """List each export with its verdict, its difference beside its tolerance, and what its file is like."""
    exports = [record for group in context.of("export") for record in group.records if record.metrics]
    faithful = sum(judge_export(record).faithful is True for record in exports)
    lead = f"{faithful} of {count(len(exports), 'export')} are faithful to the model. " if exports else ""
    yield Lead(
        f"{lead}The exported model and the framework get the same test inputs. An export is faithful if "
        "its outputs stay within the tolerance and every predicted class is the same."
    )
    if exports:
        columns = [
            words("Export", _name),
            words("", _verdict),
            DIFFERENCE,
            digits("Tolerance", lambda record: detail(record, "tolerance")),
            metric("Largest relative", "max_rel_difference"),
            metric("Same class", "top1_agreement", tenths),
            *FILE,
            words("Batch", lambda record: "any" if record.details.get("dynamic_batch") else "fixed"),
        ]
        yield table(exports, columns, caption="The exports beside their frameworks")
    yield from rules(exports)


def _name(record: AnyRecord) -> str:
    cell = record.point
    parts = [str(cell.workload), *(word(axis, cell.get(axis)) for axis in ("framework", "exporter"))]
    return " · ".join(parts + ([cell.precision] if cell.precision != "fp32" else []))


def _verdict(record: AnyRecord) -> Chip:
    faithful = judge_export(record).faithful
    if faithful is None:
        return Chip("not judged", "warn")
    return Chip("faithful", "good") if faithful else Chip("not faithful", "bad")


REPORT = StageReport(
    stage="export",
    sections=(Section(key="export", title="Export check", order=500, make=export_body),),
    findings=(FindingMaker(name="export", order=600, make=export_findings, section="export"),),
)
