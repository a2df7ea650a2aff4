"""Section: every framework with every way to distribute it, side by side, and what that costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from transect.analysis.groups import Group, group_labels
from transect.analysis.kinds import Kind, compared, kinds_of
from transect.domain.record import Status
from transect.report.blocks import (
    Block,
    Charts,
    Chip,
    Column,
    Heading,
    Prose,
    Section,
    Table,
    Value,
)
from transect.report.context import Context
from transect.report.findings.training import TIME, quality_target, reaches_target
from transect.report.sections.distribution import cost_blocks, single_blocks
from transect.report.sections.framework_charts import panels
from transect.report.sections.throughput import NOT_TOLD, marks
from transect.report.sections.twins import input_blocks, rule_blocks
from transect.report.text import Scale, clean, number, percent, quantity, scale_for, spread

__all__ = ["frameworks_section"]

_REASON = 140
# Rows that stand open; what follows them is folded.
_MOST_ROWS = 24
_READING = (
    "Waited: time of a step in which a rank does nothing but wait for messages. Overlap: share of "
    "the communication that hides behind computing. Cost: a step beside the ideal, which is the "
    "step of the same framework's single over the ranks (strong scaling) or that step itself "
    "(weak); it is split in waited communication, slower computing (cores and memory bandwidth "
    "that ranks share, less work per rank), input, and what the medians of the parts leave over. "
    "Cells with more ranks than cores are marked and carry no claim."
)


def frameworks_section(context: Context) -> Section:
    """Set each workload's training cells side by side: table, charts, costs, twins."""
    blocks: list[Block] = []
    if context.workloads("train"):
        blocks.append(Prose(_READING, quiet=True))
    for workload in context.workloads("train"):
        blocks += [Heading(workload), *_workload(context, workload)]
    if not blocks:
        blocks.append(Prose("This study has no training cells.", quiet=True))
    lead = (
        "Which framework and which way of distributing trains this workload fastest to the same "
        "quality, and what does the distribution cost? Only cells of one kind of training stand in "
        "one table: same input, precision, reduction of gradients and rule of the learning rate. "
        "A value that a library does not tell is called so, and is no zero."
    )
    return Section(id="frameworks", title="Frameworks side by side", lead=lead, blocks=blocks)


def _workload(context: Context, workload: str) -> list[Block]:
    groups = context.of("train", workload)
    usable = [group for group in groups if group.ok and not group.wrong]
    beside = compared(usable)
    blocks: list[Block] = []
    for place, kind in enumerate(kinds_of(beside)):
        own = [group for group in beside if group.kind == kind]
        if place == 0:
            blocks.append(Charts(items=panels(context, workload, own)))
            blocks += _tables(workload, own, kind)
            blocks += _not_compared(groups)
            blocks += cost_blocks(context, workload, own)
            blocks += single_blocks(context, workload, own)
        else:
            blocks += _tables(workload, own, kind, folded=f"With {kind.words}")
            blocks += cost_blocks(context, workload, own, folded=True)
    if not beside:
        blocks += [Prose("No training cell ended well.", quiet=True), *_not_compared(groups)]
    return [*blocks, *input_blocks(context, workload, groups), *rule_blocks(workload, groups)]


Maker = Callable[[Group], Value]


def _tables(workload: str, groups: list[Group], kind: Kind, folded: str = "") -> list[Block]:
    """List one row per group, soonest at the target first, then by speed; the end may fold."""
    labels = group_labels(groups, never=("ranks",))
    groups = sorted(groups, key=_place)
    made = _columns(groups)
    columns = [Column("Framework and strategy"), *(column for column, _ in made)]
    rows: list[list[Value]] = [
        [labels[group.cell], *(make(group) for _, make in made)] for group in groups
    ]
    if kind.synthetic:
        caption = f"{workload} on synthetic input: a speed of the machinery, not of the workload"
    else:
        target = quality_target(groups)
        reached = any(reaches_target(group) for group in groups)
        caption = f"{workload}: " + (
            f"time to {target}, soonest first" if reached
            else f"no cell reached {target} in every run; fastest first"
        )  # fmt: skip
        caption += f", with {kind.words}" if kind.words else ""
    if folded:
        return [Table(columns=columns, rows=rows, caption=caption, folded=folded)]
    first, rest = rows[:_MOST_ROWS], rows[_MOST_ROWS:]
    blocks: list[Block] = [Table(columns=columns, rows=first, caption=caption)]
    if rest:
        title = f"The other {len(rest)}, slower or late"
        blocks.append(Table(columns=columns, rows=rest, caption=caption, folded=title))
    return blocks


def _columns(groups: list[Group]) -> list[tuple[Column, Maker]]:
    step = scale_for([_median(g, "step_time") for g in groups], "s")
    found: list[tuple[Column, Maker]] = [
        (Column("Ranks", numeric=True), lambda group: str(group.cell.ranks)),
    ]
    if any(marks(group) for group in groups):
        found.append((Column(""), marks))
    if any(group.values(TIME) for group in groups):
        time = scale_for([_median(g, TIME) for g in groups], "s")
        found += [
            (Column(f"Time to quality ({time.unit})", numeric=True), lambda g: _time(g, time)),
            (Column("Range or interval", numeric=True),
             lambda g: spread(g.summary(TIME), time) if reaches_target(g) else "–"),
        ]  # fmt: skip
    found += [
        (Column("Runs", numeric=True), _runs),
        (Column("samples/s", numeric=True), lambda g: _text(g, "samples_per_second", Scale(factor=1, unit=""))),
        (Column(f"Step ({step.unit})", numeric=True), lambda g: _text(g, "step_time", step)),
        (Column(f"Compute ({step.unit})", numeric=True), lambda g: _text(g, "compute_time", step)),
        (Column(f"Waited ({step.unit})", numeric=True),
         lambda g: _text(g, "communication_time", step)),
        (Column(f"Input ({step.unit})", numeric=True), lambda g: _text(g, "input_time", step)),
        (Column("Overlap", numeric=True), _overlap),
        (Column("Start-up", numeric=True), lambda g: quantity(_median(g, "startup_time"), "s")),
        (Column("First step", numeric=True),
         lambda g: quantity(_median(g, "first_step_time"), "s")),
        (Column("Peak memory per rank", numeric=True),
         lambda g: quantity(_median(g, "peak_memory"), "B")),
    ]  # fmt: skip
    optional: list[tuple[str, str, Maker]] = [
        ("cpu_utilisation", "CPU use", lambda g: percent(_median(g, "cpu_utilisation"))),
        ("gpu_utilisation", "GPU use", lambda g: percent(_median(g, "gpu_utilisation"))),
        ("gpu_memory", "GPU memory", lambda g: quantity(_median(g, "gpu_memory"), "B")),
        ("energy", "Energy", _energy),
    ]
    return found + [
        (Column(title, numeric=True), maker)
        for name, title, maker in optional
        if any(group.values(name) for group in groups)
    ]


def _place(group: Group) -> tuple[bool, float, str]:
    reached = reaches_target(group)
    value = _median(group, TIME) if reached else -(_median(group, "samples_per_second") or 0.0)
    return not reached, value or 0.0, group.cell.id


def _median(group: Group, name: str) -> float | None:
    summary = group.summary(name)
    return summary.median if summary else None


def _text(group: Group, name: str, scale: Scale) -> str:
    value = _median(group, name)
    return NOT_TOLD if value is None else scale.text(value)


def _time(group: Group, scale: Scale) -> Value:
    if reaches_target(group):
        return scale.text(_median(group, TIME))
    if group.kind.synthetic:
        return "–"
    reached = len(group.values(TIME))
    return Chip(f"reached in {reached} of {len(group.ok)}" if reached else "not reached", "warn")


def _runs(group: Group) -> str:
    ended, all_ = len(group.ok), len(group.records)
    return str(ended) if ended == all_ else f"{ended} of {all_}"


def _overlap(group: Group) -> str:
    if group.cell.ranks == 1:
        return "–"
    value = _median(group, "overlap")
    return NOT_TOLD if value is None else percent(value)


def _energy(group: Group) -> str:
    """Write the energy of each kind of counter: they may count the same joules twice."""
    kinds = sorted({
        one.label or "" for record in group.ok for one in record.metrics if one.name == "energy"
    })  # fmt: skip
    parts = []
    for kind in kinds:
        summary = group.summary("energy", kind or None)
        if summary is not None:
            parts.append(f"{number(summary.median)} J {clean(kind)}".strip())
    return ", ".join(parts) or "–"


def _not_compared(groups: Sequence[Group]) -> list[Block]:
    """List groups without a usable run, or with a wrong one: nothing drops out unseen."""
    bad = [group for group in groups if group.wrong or not group.ok]
    if not bad:
        return []
    labels = group_labels(groups, never=("ranks",))
    rows: list[list[Value]] = []
    for group in sorted(bad, key=lambda g: (_outcome(g)[2], labels[g.cell], g.cell.ranks)):
        text, tone, _ = _outcome(group)
        first = next((r for r in group.records if r.cause and r.message), group.records[0])
        cause = first.cause.value if first.cause else "loss or weights outside their tolerance"
        message = clean(first.message.split("\n")[0])
        reason = f"{cause}: {message}" if message else cause
        if len(reason) > _REASON:
            reason = reason[: _REASON - 1] + "…"
        rows.append([labels[group.cell], str(group.cell.ranks), Chip(text, tone), reason])
    columns = [Column("Framework and strategy"), Column("Ranks", numeric=True), Column("Outcome"),
               Column("Reason")]  # fmt: skip
    caption = "Not in the comparison: wrong, failed or skipped"
    return [Table(columns=columns, rows=rows, caption=caption)]


def _outcome(group: Group) -> tuple[str, str, int]:
    if group.wrong:
        return "wrong result", "bad", 0
    if any(record.status is Status.FAILED for record in group.records):
        return "failed", "bad", 1
    return "skipped", "warn", 2
