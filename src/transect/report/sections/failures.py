"""Section: every cell that failed or was skipped, what is still to come, what cannot be read."""

from __future__ import annotations

from collections import Counter, defaultdict

from transect.analysis.entries import AnyRecord
from transect.analysis.load import by_status
from transect.domain.record import Status
from transect.report.blocks import (
    Block,
    Body,
    Chip,
    Column,
    Failure,
    Heading,
    Prose,
    Table,
    code,
    digits,
    table,
    words,
)
from transect.report.context import Context
from transect.report.findings.finding import names
from transect.report.text import clean, count

__all__ = ["failures_body"]

_TONES = {Status.OK: "good", Status.FAILED: "bad", Status.SKIPPED: "warn"}

# Logs that are shown: of each stage and cause, and in all.
_LOGS_OF_ONE = 4
_MOST_LOGS = 40
_CLIP = 200


def _chip(record: AnyRecord) -> Chip:
    return Chip(record.status.value, _TONES[record.status])


def failures_body(context: Context) -> Body:
    """List failures before skips with cause, message and log tail; of many alike the first ones."""
    bad, counts = context.not_ok, by_status(context.records)
    blocks: list[Block] = []
    if context.records:
        blocks.append(_stages(context))
    blocks += _pending(context)
    if bad:
        blocks += [_causes(bad), *_listed(context, bad)]
    if context.problems:
        blocks.append(Heading("Places in the results that could not be read"))
        blocks.append(table(context.problems, [
            code("Where", lambda problem: clean(problem.where)),
            words("What is wrong", lambda problem: clean(problem.what)),
        ]))  # fmt: skip
    if not bad and not context.problems:
        blocks.append(Prose("Nothing failed and nothing was skipped.", quiet=True))
    lead = (
        f"{counts['failed']} failed, {counts['skipped']} skipped, {counts['ok']} ended well. "
        "A cell that did not end well takes no part in any comparison below."
    )
    return Body(lead=lead, blocks=blocks)


def _stages(context: Context) -> Table:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for record in context.records:
        counts[record.stage][record.status.value] += 1
    states = ["ok", "failed", "skipped"]
    for state, keys in (("running", context.loaded.running), ("waiting", context.loaded.waiting)):
        for stage, _ in keys:
            counts[stage][state] += 1
        states += [state] if keys else []
    columns: list[Column[str]] = [words("Stage", clean)]
    columns += [
        digits("not there yet" if state == "waiting" else state,
               lambda stage, state=state: str(counts[stage][state]))
        for state in states
    ]  # fmt: skip
    return table(sorted(counts), columns, caption="Cells by stage")


def _pending(context: Context) -> list[Block]:
    """Name cells that are at work, and count those to come and those of an earlier study."""
    loaded, said = context.loaded, []
    if loaded.running:
        cells = names(["/".join(key) for key in loaded.running], 6)
        said.append(f"{count(len(loaded.running), 'cell')} running now: {cells}.")
    if loaded.waiting:
        said.append(f"{count(len(loaded.waiting), 'cell')} of the study not there yet.")
    blocks: list[Block] = [Prose(clean(sentence)) for sentence in said]
    if loaded.earlier:
        text = (
            f"{count(len(loaded.earlier), 'earlier cell')} that the study no longer has; "
            "`transect clean` removes them. They are in no count, chart, finding or table but this."
        )
        columns = [
            words("Stage", lambda key: clean(key[0])),
            code("Cell", lambda key: clean(key[1])),
        ]
        listed = table(loaded.earlier, columns, folded="Cells that the study no longer has")
        blocks += [Prose(text, quiet=True), listed]
    return blocks


def _causes(bad: list[AnyRecord]) -> Table:
    causes = Counter((record.status, record.cause.value if record.cause else "") for record in bad)
    rows = sorted(causes.items(), key=lambda item: -item[1])
    return table(rows, [
        words("Status", lambda row: Chip(row[0][0].value, _TONES[row[0][0]])),
        words("Cause", lambda row: row[0][1]), digits("Cells", lambda row: str(row[1])),
    ], caption="Causes")  # fmt: skip


def _listed(context: Context, bad: list[AnyRecord]) -> list[Block]:
    """Show the first cells of each stage and cause with their logs, and list the others."""
    seen: Counter[tuple[str, str]] = Counter()
    shown: list[AnyRecord] = []
    rest: list[AnyRecord] = []
    for record in bad:
        alike = (record.stage, record.cause.value if record.cause else "")
        seen[alike] += 1
        more = seen[alike] <= _LOGS_OF_ONE and len(shown) < _MOST_LOGS
        (shown if more else rest).append(record)
    blocks: list[Block] = [_failure(context, record) for record in shown]
    if rest:
        folder = context.originals.folder(rest[0])
        where = folder.parents[1] if folder else "the results"
        text = (
            f"{count(len(rest), 'more cell')} did not end well, for causes shown above. Each log "
            f"lies in {where}/STAGE/CELL/output.log."
        )
        columns = [
            words("Status", _chip), words("Stage", lambda record: clean(record.stage)),
            code("Cell", lambda record: clean(record.cell_id)),
            words("Cause", lambda record: record.cause.value if record.cause else ""),
            words("Message", lambda record: clean(record.message)[:_CLIP]),
        ]  # fmt: skip
        blocks += [Prose(clean(text), quiet=True), table(rest, columns, folded="The others")]
    return blocks


def _failure(context: Context, record: AnyRecord) -> Failure:
    return Failure(
        cell=record.cell_id,
        stage=record.stage,
        status=_chip(record),
        cause=record.cause.value if record.cause else "",
        message=clean(record.message) or "no message",
        log_tail=clean(context.originals.log_tail(record)),
    )
