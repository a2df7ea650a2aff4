"""What distribution costs, part by part, and the frameworks' own speed on one rank."""

from __future__ import annotations

from collections import defaultdict

from transect.analysis.comparisons import Verdict
from transect.analysis.distribution import (
    STEP,
    DistributionCost,
    RelativeSpeed,
    distribution_costs,
    relative_speeds,
)
from transect.analysis.groups import Group, group_labels
from transect.analysis.kinds import main_kind
from transect.analysis.scaling import METRIC
from transect.domain.cell import Cell
from transect.report.blocks import (
    Block,
    Chart,
    Charts,
    Chip,
    Column,
    Prose,
    Value,
    digits,
    table,
    words,
)
from transect.report.charts.chart import MOST_PANELS, drawn, left_out
from transect.report.charts.plots import Bar, bar_plot
from transect.report.charts.theme import MUTED, Style, legend
from transect.report.context import Context
from transect.report.findings.finding import floor_text, median
from transect.report.sections.columns import NOT_TOLD, undecided
from transect.report.sections.framework_charts import MOST
from transect.report.text import count, number, percent, scale_for

__all__ = ["cost_blocks", "single_blocks"]

# A longer table is folded: the charts have tables of their own.
_MOST_OPEN = 24
_PARTS = {"waited": "waited communication", "computing": "slower computing", "input": "input",
          "other": "other or not told"}  # fmt: skip


def cost_blocks(
    context: Context, workload: str, groups: list[Group], *, folded: bool = False
) -> list[Block]:
    """Draw and list the cost of every distributed group of one kind; nothing without a base."""
    floor = context.floors.get("train", workload, STEP, main_kind(groups))
    every = distribution_costs(groups, floor)
    if not every:
        if folded or all(group.cell.get("strategy") == "single" for group in groups):
            return []
        text = "No distributed cell has a base on one rank: what distribution costs is not known."
        return [Prose(text, quiet=True)]
    labels = group_labels(groups, never=("ranks",))
    every.sort(key=lambda cost: (cost.group.cell.ranks == 1, cost.group.cell.ranks, cost.cost,
                                 cost.group.cell.id))  # fmt: skip
    of_ranks: dict[int, list[DistributionCost]] = defaultdict(list)
    for cost in every:
        if cost.group.cell.ranks > 1:
            of_ranks[cost.group.cell.ranks].append(cost)
    blocks: list[Block] = []
    if not folded and of_ranks:
        panels = list(of_ranks.items())[:MOST_PANELS]
        charts = [_chart(context, workload, ranks, costs, labels) for ranks, costs in panels]
        blocks.append(Charts(items=charts))
    scale = scale_for([cost.step_s for cost in every], "s")
    columns: list[Column[DistributionCost]] = [
        words("Framework and strategy", lambda cost: labels[cost.group.cell]),
        digits("Ranks", lambda cost: str(cost.group.cell.ranks)), words("", _mark),
        words("Scaling", lambda cost: cost.scaling.value),
        digits(f"Step ({scale.unit})", lambda cost: scale.text(cost.step_s)),
        digits(f"Ideal ({scale.unit})", lambda cost: scale.text(cost.ideal_s)),
        digits("Cost", lambda cost: _signed(cost.cost)),
        *(_part(part.capitalize(), part) for part in _PARTS),
        words("Base", lambda cost: cost.base.cell.get("strategy") or "–"),
    ]  # fmt: skip
    shown = table(
        every, columns, caption=f"{workload}: what distribution costs; {floor_text(floor)}",
        folded=f"What distribution costs with {main_kind(groups).words}" if folded else "",
        fold_above=_MOST_OPEN,
        fold_title=f"What distribution costs in {workload}, and on one rank",
    )  # fmt: skip
    return [*blocks, shown]


def _part(title: str, part: str) -> Column[DistributionCost]:
    """Return the column of one part of a cost, in shares of the ideal step."""

    def value(cost: DistributionCost) -> Value:
        share: float | None = getattr(cost, part)
        return NOT_TOLD if share is None else _signed(share)

    return digits(title, value)


def _chart(
    context: Context, workload: str, ranks: int, costs: list[DistributionCost],
    labels: dict[Cell, str],
) -> Chart:  # fmt: skip
    styles = {
        "waited": context.styles.get("communication"), "computing": context.styles.get("compute"),
        "input": context.styles.get("input"), "other": Style(MUTED),
    }  # fmt: skip
    bars = [
        Bar(
            label=labels[cost.group.cell] + (" ○" if cost.group.over_subscribed else ""),
            right=_signed(cost.cost),
            parts=[(100 * max(0.0, getattr(cost, part) or 0.0), styles[part]) for part in _PARTS],
        )
        for cost in costs[:MOST]
    ]
    return drawn(
        bar_plot(bars, title="cost in % of the ideal step"), costs,
        [
            words("Framework and strategy", lambda cost: labels[cost.group.cell]),
            digits("Cost", lambda cost: _signed(cost.cost)),
            *(_part(title.capitalize(), part) for part, title in _PARTS.items()),
            words("", _mark),
        ],
        title=f"{count(ranks, 'rank')}: what distribution costs", name=f"cost-{workload}-{ranks}",
        alt=f"{workload}, {ranks} ranks: cost of distribution in percent of the ideal step. "
        f"Least: {bars[0].label}, {bars[0].right}.",
        legend=legend(((title, styles[part]) for part, title in _PARTS.items()), line=False),
        notes=(
            left_out(len(costs), MOST, "costliest"),
            "Bars show what is lost: where computing got faster, the parts exceed the total at "
            "the right.",
            "○ more ranks than cores, no claim."
            if any(cost.group.over_subscribed for cost in costs[:MOST]) else "",
        ),
    )  # fmt: skip


def _signed(share: float) -> str:
    whole = round(100 * share)
    return f"−{-whole} %" if whole < 0 else f"{whole} %"


def _mark(cost: DistributionCost) -> Value:
    if cost.group.over_subscribed:
        return Chip("over-subscribed", "warn")
    if cost.comparison is not None and not cost.real:
        return undecided(cost.comparison)
    if cost.cost < 0:
        return Chip("superlinear", "warn")
    return Chip("disturbed", "warn") if cost.group.disturbed or cost.base.disturbed else None


def single_blocks(context: Context, workload: str, groups: list[Group]) -> list[Block]:
    """List each framework's own speed beside the fastest; nothing for one framework."""
    floor = context.floors.get("train", workload, METRIC, main_kind(groups))
    alike: dict[tuple[str, int, int], list[Group]] = defaultdict(list)
    for group in groups:
        alike[group.cell.device, group.cell.threads, group.global_batch or 0].append(group)
    labels = group_labels(groups, never=("ranks",))
    every: list[RelativeSpeed] = []
    tied: set[int] = set()
    for key in sorted(alike):
        speeds = relative_speeds(alike[key], floor)
        if len(speeds) > 1:
            every += speeds
            if any(s.comparison and s.comparison.verdict is Verdict.SAME for s in speeds):
                tied.add(id(speeds[0]))
    if not every:
        return []

    def verdict(speed: RelativeSpeed) -> Chip:
        if speed.comparison is None:
            alone = id(speed) not in tied
            return Chip("fastest", "good") if alone else Chip("highest median", "plain")
        slower = speed.comparison.verdict is Verdict.BETTER
        return Chip("slower", "plain") if slower else Chip("not distinguishable", "warn")

    columns: list[Column[RelativeSpeed]] = [
        words("Framework", lambda speed: labels[speed.group.cell]),
        digits("samples/s", lambda speed: number(median(speed.group, METRIC) or 0.0)),
        digits("Runs", lambda speed: str(len(speed.group.values(METRIC)))),
        digits("Of the fastest", lambda speed: percent(speed.value, 1)),
        digits("From – to", lambda speed: f"{percent(speed.low, 1)} – {percent(speed.high, 1)}"
               if len(speed.group.values(METRIC)) > 1 else "–"),
        words("Against the fastest", verdict),
        words("Why", lambda speed: speed.comparison.reason if speed.comparison else "–"),
    ]  # fmt: skip
    caption = f"{workload}: the frameworks alone, on one rank; {floor_text(floor)}"
    return [table(every, columns, caption=caption)]
