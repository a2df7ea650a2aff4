"""What distribution costs, part by part, and the frameworks' own speed on one rank."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from transect.analysis.groups import grouped
from transect.analysis.kinds import main_kind
from transect.analysis.scaling import METRIC, TrainGroup
from transect.report.engine.blocks import Chip, Column, Part, digits, note, table, words
from transect.report.engine.charts.chart import MAX_PANELS, drawn, left_out
from transect.report.engine.charts.inks import MUTED
from transect.report.engine.charts.marks import Bar
from transect.report.engine.charts.plots import bar_plot
from transect.report.engine.charts.theme import Style, legend
from transect.report.engine.columns import NOT_TOLD, RANKS, labelled, medians, undecided
from transect.report.engine.context import Context
from transect.report.engine.finding import floor_text
from transect.report.engine.text import count, multiplying, scale_for, tenths, with_ends
from transect.report.topics.distribution.facts import (
    STEP,
    DistributionCost,
    RelativeSpeed,
    distribution_costs,
    relative_speeds,
)
from transect.report.topics.training.throughput import MAX_COUNT
from transect.stats.comparisons import Verdict

_PARTS = {
    "waited": "waited communication",
    "computing": "slower computing",
    "input": "input",
    "other": "other or not told",
}


def cost_blocks(context: Context, workload: str, groups: list[TrainGroup], *, folded: bool = False) -> Iterator[Part]:
    """Draw and list the cost of every distributed group of one kind; nothing without a base."""
    kind = main_kind(groups)
    floor = context.floors.get("train", workload, STEP, kind)
    every = distribution_costs(groups, floor)
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
        digits("Cost", lambda cost: cost.cost, _signed),
        *(digits(part.capitalize(), attrgetter(part), _signed, NOT_TOLD) for part in _PARTS),
        words("Base", lambda cost: cost.base.cell.strategy),
    ]
    spread_out = [cost for cost in every if cost.group.cell.ranks > 1 and not folded]
    of_ranks = grouped(spread_out, lambda cost: cost.group.cell.ranks)
    for ranks, costs in list(of_ranks.items())[:MAX_PANELS]:
        yield _chart(context, workload, ranks, costs, columns)
    yield table(
        every,
        columns,
        caption=f"{workload}: what distribution costs; {floor_text(floor)}",
        folded=f"What distribution costs with {kind.words}" if folded else "",
        fold_title=f"What distribution costs in {workload}, and on one rank",
    )


def _chart(
    context: Context, workload: str, ranks: int, costs: list[DistributionCost], columns: list[Column[DistributionCost]]
) -> Part:
    styles = {
        "waited": context.styles.get("communication"),
        "computing": context.styles.get("compute"),
        "input": context.styles.get("input"),
        "other": Style(MUTED),
    }
    bars = [
        Bar(
            label=f"{columns[0].entry(cost)}{' ○' if cost.group.over_subscribed else ''}",
            right=_signed(cost.cost),
            about=cost,
            parts=[(100 * max(0.0, getattr(cost, part) or 0.0), styles[part]) for part in _PARTS],
        )
        for cost in costs[:MAX_COUNT]
    ]
    hollow = any(cost.group.over_subscribed for cost in costs[:MAX_COUNT])
    return drawn(
        bar_plot(bars, title="cost in % of the ideal step"),
        costs,
        columns,
        title=f"{count(ranks, 'rank')}: what distribution costs",
        name=f"cost-{workload}-{ranks}",
        alt=f"{workload}, {ranks} ranks: cost of distribution in percent of the ideal step. "
        f"Least: {bars[0].label}, {bars[0].right}.",
        legend=legend(((title, styles[part]) for part, title in _PARTS.items()), line=False),
        notes=(
            left_out(len(costs), MAX_COUNT, "costliest"),
            "Bars show what is lost: where computing got faster, the parts exceed the total at the right.",
            "○ more ranks than cores, no claim." if hollow else "",
        ),
    )


@multiplying(100.0)
def _signed(share: float) -> str:
    whole = round(100 * share)
    return f"−{-whole} %" if whole < 0 else f"{whole} %"


def _mark(cost: DistributionCost) -> Chip | None:
    if cost.group.over_subscribed:
        return Chip("over-subscribed", "warn")
    if cost.comparison is not None and not cost.real:
        return undecided(cost.comparison)
    if cost.cost < 0:
        return Chip("superlinear", "warn")
    return Chip("disturbed", "warn") if cost.group.disturbed or cost.base.disturbed else None


def single_blocks(context: Context, workload: str, groups: list[TrainGroup]) -> Iterator[Part]:
    """List each framework's own speed beside the fastest; nothing for one framework."""
    floor = context.floors.get("train", workload, METRIC, main_kind(groups))
    alike = grouped(groups, lambda g: (g.cell.device, g.cell.threads, g.global_batch or 0))
    every: list[RelativeSpeed] = []
    tied: set[int] = set()
    for key in sorted(alike):
        speeds = relative_speeds(alike[key], floor)
        if len(speeds) > 1:
            every += speeds
            if any(s.comparison and s.comparison.verdict is Verdict.SAME for s in speeds):
                tied.add(id(speeds[0]))
    if not every:
        return

    def verdict(speed: RelativeSpeed) -> Chip:
        if speed.comparison is None:
            alone = id(speed) not in tied
            return Chip("fastest", "good") if alone else Chip("first")
        slower = speed.comparison.verdict is Verdict.BETTER
        return Chip("slower") if slower else Chip("not distinguishable", "warn")

    columns: list[Column[RelativeSpeed]] = [
        labelled(groups, "Framework", never=("ranks",)),
        medians("samples/s", METRIC),
        digits("Runs", lambda speed: len(speed.group.values(METRIC))),
        digits("Of the fastest", lambda speed: speed.ratio, lambda ratio: with_ends(ratio, tenths)),
        words("Against the fastest", verdict),
        words("Why", lambda speed: speed.comparison.reason if speed.comparison else "–"),
    ]
    caption = f"{workload}: the frameworks alone, on one rank; {floor_text(floor)}"
    yield table(every, columns, caption=caption)
