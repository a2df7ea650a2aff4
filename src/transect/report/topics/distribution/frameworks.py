"""Section: every framework with every way to distribute it, side by side, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator

from transect.analysis.groups import Group
from transect.analysis.kinds import Kind, compared, kinds_of
from transect.analysis.quality import TIME, may_be_ranked, node_hours, quality_target, score_of
from transect.analysis.scaling import METRIC, TrainGroup
from transect.domain.system import SystemPrice
from transect.report.engine.blocks import MAX_OPEN, Column, Explained, Heading, Lead, Part, digits, table, words
from transect.report.engine.columns import MARKS, NOT_TOLD, RANKS, labelled, medians, score_column, time_columns
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import verdict_chip
from transect.report.engine.finding import median
from transect.report.engine.text import clean, count, in_unit, number, percent, scale_for, tenths, with_ends
from transect.report.topics.distribution.costs import cost_blocks, soonest_first
from transect.report.topics.distribution.twins import penalty


def frameworks_body(context: Context) -> Iterator[Part]:
    """Set each workload's training cells side by side: table, charts, costs, twins."""
    workloads = [name for name in context.workloads("train") if _beside(context, name)]
    cells = [group.cell for name in workloads for group in context.of("train", name)]
    if not cells:
        return
    ways = len({(cell.framework, cell.strategy) for cell in cells})
    yield Lead(
        f"{count(ways, 'way')} to train {count(len(workloads), 'workload')}, side by side: how soon each reaches the same "
        "quality, and what distributing costs."
    )
    for workload in workloads:
        yield Heading(workload)
        yield from _workload(context, workload)
    yield Explained(
        "Only cells of one kind of training stand in one table: same input, precision, reduction of gradients and rule "
        "of the learning rate. Ideal: the step of the same framework's single over the ranks (strong scaling), or that "
        "step itself (weak)."
    )
    if context.price is not None:
        yield from _priced(context.price, [group for name in workloads for group in _beside(context, name)])


def _beside(context: Context, workload: str) -> list[TrainGroup]:
    return compared([group for group in context.of("train", workload) if group.ok and not group.wrong])


def _workload(context: Context, workload: str) -> Iterator[Part]:
    beside = _beside(context, workload)
    for place, kind in enumerate(kinds_of(beside)):
        members = [group for group in beside if group.kind == kind]
        yield from _tables(context, workload, members, kind, folded=f"With {kind.words}" if place else "")
        yield from cost_blocks(workload, members, folded=place > 0)
    yield from input_blocks(context, workload)


def _tables(context: Context, workload: str, groups: list[TrainGroup], kind: Kind, folded: str = "") -> Iterator[Part]:
    """List one row per group, soonest at the target first, then by speed; the end may fold."""
    groups = sorted(groups, key=soonest_first)
    columns = [labelled(groups, "Framework and strategy", never=("ranks",)), *_columns(groups, context.price)]
    if kind.synthetic:
        caption = f"{workload} on synthetic input: a speed of the machinery, not of the workload"
    else:
        target = quality_target(groups)
        caption = f"{workload}: " + (
            f"time to {target}, soonest first"
            if any(map(may_be_ranked, groups))
            else f"no cell reached {target} in every run; fastest first"
        )
        caption += f", with {kind.words}" if kind.words else ""
    first = len(groups) if folded else MAX_OPEN
    yield table(groups[:first], columns, caption=caption, folded=folded)
    if groups[first:]:
        title = f"The other {len(groups) - first}, slower or late"
        yield table(groups[first:], columns, caption=caption, folded=title)


def _columns(groups: list[TrainGroup], price: SystemPrice | None) -> list[Column[Group]]:
    def has(name: str) -> bool:
        return any(group.values(name) for group in groups)

    step = scale_for([median(group, "step_time") for group in groups], "s")
    columns = [RANKS]
    if any(map(MARKS.entry, groups)):
        columns.append(MARKS)
    if has(TIME):
        time = scale_for([median(group, TIME) for group in groups], "s")
        columns += time_columns(time, "Time to quality")
    if price is not None and any(node_hours(group, price) is not None for group in groups):
        columns += _cost_columns(price)
    columns += [
        digits("Runs", _runs),
        *([score_column(groups)] if any(map(score_of(groups).values, groups)) else []),
        medians("samples/s", METRIC, number, NOT_TOLD),
        medians(f"Step ({step.unit})", "step_time", step, NOT_TOLD),
        medians("Start-up", "startup_time", in_unit("s")),
        medians("First step", "first_step_time", in_unit("s")),
        medians("Peak memory per rank", "peak_memory", in_unit("B")),
    ]
    optional = {
        "overlap": digits("Overlap", _overlap),
        "cpu_utilisation": medians("CPU use", "cpu_utilisation", percent),
        "gpu_utilisation": medians("GPU use", "gpu_utilisation", percent),
        "gpu_memory": medians("GPU memory", "gpu_memory", in_unit("B")),
        "energy": digits("Energy", _energy),
    }
    return columns + [column for name, column in optional.items() if has(name)]


def _cost_columns(price: SystemPrice) -> list[Column[Group]]:
    """Return the columns of what the target costs, and of what that was computed from."""

    def cost(group: Group) -> float | None:
        hours = node_hours(group, price)
        return None if hours is None else hours * price.amount

    return [
        digits("Node-hours to quality", lambda group: node_hours(group, price)),
        digits(f"Cost to quality ({clean(price.currency)})", cost),
    ]


def _priced(price: SystemPrice, groups: list[TrainGroup]) -> Iterator[Part]:
    """Say how a cost was computed, and of which cells none is known."""
    timed = [group for group in groups if may_be_ranked(group)]
    elsewhere = [group for group in timed if node_hours(group, price) is None]
    if len(elsewhere) < len(timed):
        yield Explained(
            f"Cost to quality: nodes × hours to quality × {number(price.amount)} {clean(price.currency)}, which the file of the "
            f"system {clean(price.system)} says for a node and hour. Nodes are paid whole, whatever a cell uses of them. As in "
            "the time, starting and tests of the model are not counted. It is arithmetic on that time: which is cheaper is known no "
            "better than which is sooner."
        )
    if elsewhere:
        yield Explained(
            f"No cost is shown of {count(len(elsewhere), 'cell')}: the price is of the system {clean(price.system)}, and they ran "
            "on another one."
        )


def _runs(group: Group) -> str:
    ended, every = len(group.ok), len(group.records)
    return str(ended) if ended == every else f"{ended} of {every}"


def _overlap(group: Group) -> str:
    if group.cell.ranks == 1:
        return "–"
    value = median(group, "overlap")
    return NOT_TOLD if value is None else percent(value)


def _energy(group: Group) -> str:
    """Write the energy of each kind of counter: they may count the same joules twice."""
    kinds = sorted(
        {measured.label or "" for record in group.ok for measured in record.metrics if measured.name == "energy"}
    )
    summaries = [(kind, group.summary("energy", kind or None)) for kind in kinds]
    parts = [f"{number(s.median)} J {clean(kind)}".strip() for kind, s in summaries if s]
    return ", ".join(parts) or "–"


def input_blocks(context: Context, workload: str) -> Iterator[Part]:
    """List what each group loses to its input against its synthetic twin; nothing without twins."""
    every = context.contrasts.of("twin.input", workload)
    if not every:
        return
    columns = [
        labelled(every),
        words("Input", lambda loss: loss.group.cell.input),
        medians("samples/s", METRIC),
        digits("Synthetic samples/s", lambda loss: median(loss.base, METRIC)),
        digits("Pairs", lambda loss: loss.pairs),
        digits("Penalty", penalty, lambda lost: with_ends(lost, tenths)),
        words("", lambda loss: verdict_chip(loss, "faster than its twin", "slower")),
    ]
    caption = f"{workload}: what input costs beside a twin that trains on random numbers, and learns nothing"
    yield table(every, columns, caption=caption)
