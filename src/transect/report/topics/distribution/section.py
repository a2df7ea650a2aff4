"""What distribution costs, part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from transect.analysis.groups import grouped
from transect.analysis.kinds import main_kind
from transect.analysis.scaling import TrainGroup
from transect.report.engine.blocks import Chip, Column, Part, digits, note, table, words
from transect.report.engine.charts.chart import MAX_PANELS, drawn, left_out
from transect.report.engine.charts.inks import MUTED
from transect.report.engine.charts.marks import Bar
from transect.report.engine.charts.plots import bar_plot
from transect.report.engine.charts.theme import Style, legend
from transect.report.engine.columns import NOT_TOLD, RANKS, labelled
from transect.report.engine.context import Context
from transect.report.engine.text import count, quantity, scale_for, tenths
from transect.report.topics.distribution.facts import LOST, DistributionCost, distribution_costs

# Rows of one panel: with more, names and marks are no longer found again.
_MAX_COUNT = 12


def cost_blocks(context: Context, workload: str, groups: list[TrainGroup], *, folded: bool = False) -> Iterator[Part]:
    """Draw and list the cost of every distributed group of one kind; nothing without a base."""
    kind = main_kind(groups)
    every = distribution_costs(groups)
    if not every:
        if not folded and any(group.cell.strategy != "single" for group in groups):
            yield note("No distributed cell has a base on one rank: what distribution costs is not known.")
        return
    every.sort(key=lambda cost: (cost.group.cell.ranks == 1, cost.group.cell.ranks, cost.cost, cost.group.cell.id))
    scale = scale_for([cost.step_s for cost in every], "s")
    columns: list[Column[DistributionCost]] = [
        labelled(groups, "Framework and strategy", never=("ranks",)),
        RANKS,
        words("", _mark),
        words("Scaling", lambda cost: cost.scaling.value),
        digits(f"Step ({scale.unit})", lambda cost: cost.step_s, scale),
        digits(f"Ideal ({scale.unit})", lambda cost: cost.ideal_s, scale),
        digits("Cost", lambda cost: cost.cost, tenths),
        *(digits(f"{what.capitalize()} ({scale.unit})", _lost(part), scale, NOT_TOLD) for part, what in LOST.items()),
        digits(f"Other ({scale.unit})", lambda cost: cost.other_s, scale),
        words("Base", lambda cost: cost.base.cell.strategy),
    ]
    spread_out = [cost for cost in every if cost.group.cell.ranks > 1 and not folded]
    of_ranks = grouped(spread_out, lambda cost: cost.group.cell.ranks)
    for ranks, costs in list(of_ranks.items())[:MAX_PANELS]:
        yield _chart(context, workload, ranks, costs, columns)
    yield table(
        every,
        columns,
        caption=f"{workload}: what distribution costs; medians",
        folded=f"What distribution costs with {kind.words}" if folded else "",
        fold_title=f"What distribution costs in {workload}, and on one rank",
    )


def _lost(part: str) -> Callable[[DistributionCost], float | None]:
    return lambda cost: cost.parts[part]


def _chart(
    context: Context, workload: str, ranks: int, costs: list[DistributionCost], columns: list[Column[DistributionCost]]
) -> Part:
    scale = scale_for([cost.step_s for cost in costs], "s")
    styles = {"ideal": Style(MUTED), **{part: context.styles.get(part) for part in LOST}, "other": Style(MUTED)}

    def bar(cost: DistributionCost) -> Bar:
        parts = {"ideal": min(cost.ideal_s, cost.step_s), **cost.drawn_s}
        return Bar(
            label=f"{columns[0].entry(cost)}{' ○' if cost.group.over_subscribed else ''}",
            right=quantity(cost.step_s, "s"),
            about=cost,
            parts=[(value / scale.factor, styles[part]) for part, value in parts.items()],
        )

    bars = [bar(cost) for cost in costs[:_MAX_COUNT]]
    hollow = any(cost.group.over_subscribed for cost in costs[:_MAX_COUNT])
    named = {"ideal": "a perfect split", **LOST, "other": "other or not told"}
    return drawn(
        bar_plot(bars, title=f"median step ({scale.unit})"),
        costs,
        columns,
        title=f"{count(ranks, 'rank')}: what distribution costs",
        name=f"cost-{workload}-{ranks}",
        alt=f"{workload}, {ranks} ranks: the step beside a perfect split, and what is lost in which part. "
        f"Least: {bars[0].label}, {bars[0].right}.",
        legend=legend(((title, styles[part]) for part, title in named.items()), line=False),
        notes=(
            left_out(len(costs), _MAX_COUNT, "costliest"),
            "Where computing got faster, what the other parts lose is shown less that."
            if any((value or 0.0) < 0 for cost in costs for value in cost.parts.values())
            else "",
            "○ more ranks than cores, no claim." if hollow else "",
        ),
    )


def _mark(cost: DistributionCost) -> Chip | None:
    if cost.group.over_subscribed:
        return Chip("over-subscribed", "warn")
    if cost.cost < 0:
        return Chip("superlinear", "warn")
    return Chip("disturbed", "warn") if cost.group.disturbed or cost.base.disturbed else None
