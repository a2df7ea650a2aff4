"""Section: every cell that failed or was skipped, and what could not be read."""

from __future__ import annotations

from collections import Counter

from transect.analysis.load import by_status
from transect.domain.record import Record, Status
from transect.report.blocks import (
    Block,
    Chip,
    Column,
    Failure,
    Heading,
    Prose,
    Section,
    Table,
    Value,
)
from transect.report.context import Context
from transect.report.text import clean

__all__ = ["failures_section", "status_chip"]

_TONES = {Status.OK: "good", Status.FAILED: "bad", Status.SKIPPED: "warn"}


def status_chip(status: Status) -> Chip:
    """Return the chip of a status."""
    return Chip(status.value, _TONES[status])


def failures_section(context: Context) -> Section:
    """List failures before skips, each with cause, message and log tail."""
    bad = context.not_ok()
    counts = by_status(context.records)
    blocks: list[Block] = []
    if context.records:
        blocks.append(_stages(context))
    if bad:
        blocks.append(_causes(bad))
        blocks += [_failure(record) for record in bad]
    if context.problems:
        blocks.append(Heading("Places in the results that could not be read"))
        columns = [Column("Where", code=True), Column("What is wrong")]
        rows = [[clean(one.where), clean(one.what)] for one in context.problems]
        blocks.append(Table(columns=columns, rows=rows))
    if not bad and not context.problems:
        blocks.append(Prose("Nothing failed and nothing was skipped.", quiet=True))
    lead = (
        f"{counts['failed']} failed, {counts['skipped']} skipped, {counts['ok']} ended well. "
        "A cell that did not end well takes no part in any comparison below."
    )
    return Section(id="failures", title="Failures and skips", lead=lead, blocks=blocks)


def _stages(context: Context) -> Table:
    stages = sorted({record.stage for record in context.records})
    rows = []
    for stage in stages:
        counts = by_status(record for record in context.records if record.stage == stage)
        rows.append([stage, str(counts["ok"]), str(counts["failed"]), str(counts["skipped"])])
    columns = [Column("Stage")]
    columns += [Column(status.value, numeric=True) for status in Status if status is Status.OK]
    columns += [Column("failed", numeric=True), Column("skipped", numeric=True)]
    return Table(columns=columns, rows=rows, caption="Cells by stage")


def _causes(bad: list[Record]) -> Table:
    causes = Counter((record.status, record.cause.value if record.cause else "") for record in bad)
    rows: list[list[Value]] = [
        [status_chip(status), cause, str(amount)]
        for (status, cause), amount in sorted(causes.items(), key=lambda item: -item[1])
    ]
    columns = [Column("Status"), Column("Cause"), Column("Cells", numeric=True)]
    return Table(columns=columns, rows=rows, caption="Causes")


def _failure(record: Record) -> Failure:
    return Failure(
        cell=record.cell_id,
        stage=record.stage,
        status=status_chip(record.status),
        cause=record.cause.value if record.cause else "",
        message=clean(record.message) or "no message",
        log_tail=clean(record.log_tail),
    )
