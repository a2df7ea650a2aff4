"""Section: every cell that failed or was skipped, what is still to come, what cannot be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from transect.analysis.entries import AnyRecord
from transect.analysis.load import by_status
from transect.domain.record import Status
from transect.report.blocks import (
    Chip,
    Column,
    Failure,
    Heading,
    Lead,
    Part,
    Prose,
    Table,
    code,
    digits,
    note,
    table,
    words,
)
from transect.report.context import Context
from transect.report.findings.finding import names
from transect.report.text import clean, clipped, count

__all__ = ["failures_body"]

_TONES = {Status.OK: "good", Status.FAILED: "bad", Status.SKIPPED: "warn"}

# Logs that are shown: of each stage and cause, and in all.
_LOGS_OF_ONE = 4
_MOST_LOGS = 40
_CLIP = 200


def failures_body(context: Context) -> Iterator[Part]:
    """List failures before skips with cause, message and log tail; of many alike the first ones."""
    counts = by_status(context.records)
    yield Lead(
        f"{counts['failed']} failed, {counts['skipped']} skipped, {counts['ok']} ended well. "
        "A cell that did not end well takes no part in any comparison below."
    )
    bad = context.not_ok
    if context.records:
        yield _stages(context)
    yield from _pending(context)
    if bad:
        yield _causes(bad)
        yield from _listed(context, bad)
    if context.problems:
        yield Heading("Places in the results that could not be read")
        yield table(context.problems, [
            code("Where", lambda problem: clean(problem.where)),
            words("What is wrong", lambda problem: clean(problem.what)),
        ])  # fmt: skip
    if not bad and not context.problems:
        yield note("Nothing failed and nothing was skipped.")


def _chip(record: AnyRecord) -> Chip:
    return Chip(record.status.value, _TONES[record.status])


def _cause(record: AnyRecord) -> str:
    return record.cause.value if record.cause else ""


def _stages(context: Context) -> Table:
    """Count cells by stage and state; the states of cells to come only where there are any."""
    states = [(record.stage, record.status.value) for record in context.records]
    states += [(stage, "running") for stage, _ in context.loaded.running]
    states += [(stage, "not there yet") for stage, _ in context.loaded.waiting]
    counts = Counter(states)
    always = ("ok", "failed", "skipped")
    pending = dict.fromkeys(state for _, state in states if state not in always)
    columns: list[Column[str]] = [words("Stage", clean)]
    columns += [
        digits(state, lambda stage, state=state: counts[stage, state])
        for state in (*always, *pending)
    ]
    return table(sorted({stage for stage, _ in states}), columns, caption="Cells by stage")


def _pending(context: Context) -> Iterator[Part]:
    """Name cells that are at work, and count those to come and those of an earlier study."""
    loaded = context.loaded
    if loaded.running:
        cells = names(["/".join(key) for key in loaded.running], 6)
        yield Prose(clean(f"{count(len(loaded.running), 'cell')} running now: {cells}."))
    if loaded.waiting:
        yield Prose(f"{count(len(loaded.waiting), 'cell')} of the study not there yet.")
    if loaded.earlier:
        yield note(
            f"{count(len(loaded.earlier), 'earlier cell')} that the study no longer has; "
            "`transect clean` removes them. They are in no count, chart, finding or table but this."
        )
        columns = [words("Stage", lambda key: clean(key[0])),
                   code("Cell", lambda key: clean(key[1]))]  # fmt: skip
        yield table(loaded.earlier, columns, folded="Cells that the study no longer has")


def _causes(bad: list[AnyRecord]) -> Table:
    causes = Counter((_chip(record), _cause(record)) for record in bad)
    return table(causes.most_common(), [
        words("Status", lambda row: row[0][0]), words("Cause", lambda row: row[0][1]),
        digits("Cells", lambda row: row[1]),
    ], caption="Causes")  # fmt: skip


def _listed(context: Context, bad: list[AnyRecord]) -> Iterator[Part]:
    """Show the first cells of each stage and cause with their logs, and list the others."""
    seen: Counter[tuple[str, str]] = Counter()
    rest: list[AnyRecord] = []
    for record in bad:
        alike = record.stage, _cause(record)
        seen[alike] += 1
        if seen[alike] > _LOGS_OF_ONE or seen.total() - len(rest) > _MOST_LOGS:
            rest.append(record)
            continue
        yield Failure(
            cell=record.cell_id, stage=record.stage, status=_chip(record), cause=_cause(record),
            message=clean(record.message) or "no message",
            log_tail=clean(context.originals.log_tail(record)),
        )  # fmt: skip
    if rest:
        folder = context.originals.folder(rest[0])
        where = folder.parents[1] if folder else "the results"
        yield note(clean(
            f"{count(len(rest), 'more cell')} did not end well, for causes shown above. Each log "
            f"lies in {where}/STAGE/CELL/output.log."
        ))  # fmt: skip
        yield table(rest, [
            words("Status", _chip), words("Stage", lambda record: clean(record.stage)),
            code("Cell", lambda record: clean(record.cell_id)), words("Cause", _cause),
            words("Message", lambda record: clipped(record.message, _CLIP)),
        ], folded="The others")  # fmt: skip
