"""Section: what failed or was skipped, by cause and with the next step for each; what is still to come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from transect.analysis.entries import AnyRecord, Key
from transect.analysis.load import Problem, by_status
from transect.domain.record import Status
from transect.report.engine.blocks import (
    Chip,
    Column,
    Failure,
    Heading,
    Lead,
    Part,
    Prose,
    code,
    digits,
    note,
    table,
    words,
)
from transect.report.engine.context import Context
from transect.report.engine.facets import facets_of
from transect.report.engine.finding import names
from transect.report.engine.text import clean, clipped, count
from transect.report.topics.study.failure_facts import Ending, SameMessage, endings
from transect.report.topics.study.next_steps import NEXT_STEPS, command_of

# Logs that are shown: of one next step, each of another message, and in all.
_LOGS_OF_ONE = 3
_MAX_LOGS = 40
# Messages that stand open, the others behind a click.
_MAX_SAID = 4
_CLIP = 400


def failures_body(context: Context) -> Iterator[Part]:
    """List failures before skips by cause: what it means, what to do now, messages, logs, cells."""
    counts = by_status(context.records)
    yield Lead(
        f"{counts['failed']} failed, {counts['skipped']} skipped, {counts['ok']} ended well. "
        "A cell that did not end well takes no part in any comparison below."
    )
    bad = context.not_ok
    yield from _pending(context)
    if bad:
        yield from _endings(context, bad)
    if context.problems:
        yield Heading("Places in the results that could not be read")
        yield Prose(
            "A record that cannot be read counts as missing: the next run makes it again and keeps what was there "
            "under damaged/. `transect verify` reads all files and names every one that is not as it was written."
        )
        columns: list[Column[Problem]] = [
            code("Where", lambda problem: clean(problem.where)),
            words("What is wrong", lambda problem: clean(problem.what)),
        ]
        yield table(context.problems, columns, caption="What could not be read")
    if not bad and not context.problems:
        yield note("Nothing failed and nothing was skipped.")


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
        columns: list[Column[Key]] = [
            words("Stage", lambda key: clean(key[0])),
            code("Cell", lambda key: clean(key[1])),
        ]
        yield table(loaded.earlier, columns, folded="Cells that the study no longer has")


def _endings(context: Context, bad: list[AnyRecord]) -> Iterator[Part]:
    """Show each cause, or part of one that has a next step of its own, as one block."""
    yield Heading("By cause, and what to do now")
    yield note(
        "A failed cell is kept as long as nothing that it is made from changes; `transect reset` deletes its record, "
        "so that the next run makes it, and `transect retry` runs it at once. A study that is no file of config/studies is named by its file; on a cluster "
        "`snakemake --profile profiles/slurm` stands for `make report`."
    )
    left = _MAX_LOGS
    for ending in endings(bad):
        made = _failure(context, ending, min(left, _LOGS_OF_ONE))
        left -= len(made.logs)
        yield made
    folder = context.originals.folder(bad[0])
    where = folder.parents[1] if folder else "the results"
    yield note(clean(f"The whole log of each cell lies in {where}/STAGE/CELL/output.log."))


def _failure(context: Context, ending: Ending, most_logs: int) -> Failure:
    records, step = ending.records, NEXT_STEPS[ending.cause]
    of_stages = Counter(record.stage for record in records)
    amount = ", ".join(f"{amount} in {stage}" for stage, amount in sorted(of_stages.items()))
    held = f"; {count(ending.followers, 'other')} wait for them" if ending.followers else ""
    # Of each message the first cell's log, then further cells of the most frequent one.
    spread = [message.records[0] for message in ending.messages] + [*ending.messages[0].records[1:]]
    logs: list[tuple[str, str]] = []
    for record in spread[: 4 * most_logs]:
        tail = clean(context.originals.log_tail(record)) if len(logs) < most_logs else ""
        if tail.strip():
            logs.append((clean(f"{record.stage}/{record.cell_id}"), tail))
    columns: list[Column[SameMessage]] = [
        digits("Cells", lambda row: len(row.records)),
        words("Said", lambda row: clipped(row.message, _CLIP) or "no message"),
        words("Stages", lambda row: clean(", ".join(row.stages))),
        code("First cell", lambda row: clean(row.records[0].cell_id)),
    ]
    many = f"{len(ending.messages)} different messages" if len(ending.messages) > _MAX_SAID else ""
    return Failure(
        status=Chip(ending.status.value, "bad" if ending.status is Status.FAILED else "warn"),
        cause=ending.cause.value,
        amount=clean(f"{count(len(records), 'cell')}: {amount}{held}"),
        meaning=step.meaning,
        action=step.action,
        command=clean(command_of(step, study=context.study, cell=f"{records[0].stage}/{records[0].cell_id}")),
        messages=table(ending.messages, columns, folded=many),
        logs=logs,
        facets=facets_of(records),
    )
