"""Section: every framework with every way to distribute it, side by side, and what that costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from transect.analysis.groups import Group, group_labels
from transect.analysis.kinds import Kind, compared, kinds_of
from transect.domain.record import Status
from transect.report.blocks import (
    Block,
    Body,
    Charts,
    Chip,
    Column,
    Heading,
    Prose,
    Value,
    digits,
    table,
    words,
)
from transect.report.context import Context
from transect.report.findings.finding import median
from transect.report.findings.training import TIME, quality_target, reaches_target
from transect.report.sections.columns import (
    NOT_TOLD,
    RANKS,
    label_column,
    marks,
    median_of,
    metric_columns,
)
from transect.report.sections.distribution import cost_blocks, single_blocks
from transect.report.sections.framework_charts import panels
from transect.report.sections.twins import input_blocks, rule_blocks
from transect.report.text import Scale, clean, number, percent, quantity, scale_for

__all__ = ["frameworks_body"]

_REASON = 140
# Rows that stand open; what follows them is folded.
_MOST_OPEN = 24
_READING = (
    "Waited: time of a step in which a rank does nothing but wait for messages. Overlap: share of "
    "the communication that hides behind computing. Cost: a step beside the ideal, which is the "
    "step of the same framework's single over the ranks (strong scaling) or that step itself "
    "(weak); it is split in waited communication, slower computing (cores and memory bandwidth "
    "that ranks share, less work per rank), input, and what the medians of the parts leave over. "
    "Cells with more ranks than cores are marked and carry no claim."
)


def frameworks_body(context: Context) -> Body:
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
    return Body(lead=lead, blocks=blocks)


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


def _tables(workload: str, groups: list[Group], kind: Kind, folded: str = "") -> list[Block]:
    """List one row per group, soonest at the target first, then by speed; the end may fold."""
    groups = sorted(groups, key=_place)
    labels = group_labels(groups, never=("ranks",))
    columns = [label_column(labels, "Framework and strategy"), *_columns(groups)]
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
        return [table(groups, columns, caption=caption, folded=folded)]
    first, rest = groups[:_MOST_OPEN], groups[_MOST_OPEN:]
    blocks: list[Block] = [table(first, columns, caption=caption)]
    if rest:
        title = f"The other {len(rest)}, slower or late"
        blocks.append(table(rest, columns, caption=caption, folded=title))
    return blocks


def _columns(groups: list[Group]) -> list[Column[Group]]:
    def has(name: str) -> bool:
        return any(group.values(name) for group in groups)

    def parts(title: str, name: str) -> Column[Group]:
        return digits(f"{title} ({step.unit})", median_of(name, step, NOT_TOLD))

    def quantities(title: str, name: str, unit: str) -> Column[Group]:
        return digits(title, lambda group: quantity(median(group, name), unit))

    def shares(title: str, name: str) -> Column[Group]:
        return digits(title, lambda group: percent(median(group, name)))

    step = scale_for([median(group, "step_time") for group in groups], "s")
    columns = [RANKS]
    if any(marks(group) for group in groups):
        columns.append(words("", marks))
    if has(TIME):
        time = scale_for([median(group, TIME) for group in groups], "s")
        middle, ends, _ = metric_columns(TIME, time, "Time to quality")
        columns += [
            digits(middle.title, _if_reached(middle.value)),
            digits(ends.title, lambda group: ends.value(group) if reaches_target(group) else "–"),
        ]
    columns += [
        digits("Runs", _runs),
        digits("samples/s", median_of("samples_per_second", Scale(factor=1, unit=""), NOT_TOLD)),
        parts("Step", "step_time"), parts("Compute", "compute_time"),
        parts("Waited", "communication_time"), parts("Input", "input_time"),
        digits("Overlap", _overlap), quantities("Start-up", "startup_time", "s"),
        quantities("First step", "first_step_time", "s"),
        quantities("Peak memory per rank", "peak_memory", "B"),
    ]  # fmt: skip
    optional = {
        "cpu_utilisation": shares("CPU use", "cpu_utilisation"),
        "gpu_utilisation": shares("GPU use", "gpu_utilisation"),
        "gpu_memory": quantities("GPU memory", "gpu_memory", "B"),
        "energy": digits("Energy", _energy),
    }
    return columns + [column for name, column in optional.items() if has(name)]


def _place(group: Group) -> tuple[bool, float, str]:
    reached = reaches_target(group)
    value = median(group, TIME) if reached else -(median(group, "samples_per_second") or 0.0)
    return not reached, value or 0.0, group.cell.id


def _if_reached(write: Callable[[Group], Value]) -> Callable[[Group], Value]:
    """Write a time only where every run reached the target; else say how many did."""

    def value(group: Group) -> Value:
        if reaches_target(group):
            return write(group)
        if group.kind.synthetic:
            return "–"
        reached = len(group.values(TIME))
        said = f"reached in {reached} of {len(group.ok)}" if reached else "not reached"
        return Chip(said, "warn")

    return value


def _runs(group: Group) -> str:
    ended, all_ = len(group.ok), len(group.records)
    return str(ended) if ended == all_ else f"{ended} of {all_}"


def _overlap(group: Group) -> str:
    if group.cell.ranks == 1:
        return "–"
    value = median(group, "overlap")
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
    bad.sort(key=lambda group: (_outcome(group)[1], labels[group.cell], group.cell.ranks))
    columns = [
        label_column(labels, "Framework and strategy"), RANKS,
        words("Outcome", lambda group: _outcome(group)[0]), words("Reason", _reason),
    ]  # fmt: skip
    return [table(bad, columns, caption="Not in the comparison: wrong, failed or skipped")]


def _reason(group: Group) -> str:
    first = next((r for r in group.records if r.cause and r.message), group.records[0])
    cause = first.cause.value if first.cause else "loss or weights outside their tolerance"
    message = clean(first.message.split("\n")[0])
    reason = f"{cause}: {message}" if message else cause
    return reason if len(reason) <= _REASON else reason[: _REASON - 1] + "…"


def _outcome(group: Group) -> tuple[Chip, int]:
    """Return what became of a group, and its place among the others."""
    if group.wrong:
        return Chip("diverged" if group.diverged else "wrong result", "bad"), 0
    if any(record.status is Status.FAILED for record in group.records):
        return Chip("failed", "bad"), 1
    return Chip("skipped", "warn"), 2
