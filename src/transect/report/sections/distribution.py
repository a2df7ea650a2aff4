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
from transect.report.blocks import Block, Chart, Charts, Chip, Column, Prose, Table, Value
from transect.report.charts.plots import Bar, bar_plot
from transect.report.charts.theme import MUTED, Style, legend, render
from transect.report.context import Context
from transect.report.findings.steps import floor_text
from transect.report.sections.framework_charts import MOST
from transect.report.sections.throughput import NOT_TOLD, left_out, undecided
from transect.report.text import count, number, percent, scale_for

__all__ = ["cost_blocks", "single_blocks"]

# A longer table is folded: the charts have tables of their own.
_MOST_ROWS = 24
_PARTS = ("waited", "computing", "input", "other")
_WORDS = {"waited": "waited communication", "computing": "slower computing", "input": "input",
          "other": "other or not told"}  # fmt: skip


def cost_blocks(
    context: Context, workload: str, groups: list[Group], *, folded: bool = False
) -> list[Block]:
    """Draw and list the cost of every distributed group of one kind; nothing without a base."""
    floor = context.floors.get("train", workload, STEP, main_kind(groups))
    every = distribution_costs(groups, floor)
    if not every:
        if folded or all(group.cell.strategy == "single" for group in groups):
            return []
        text = "No distributed cell has a base on one rank: what distribution costs is not known."
        return [Prose(text, quiet=True)]
    labels = group_labels(groups, never=("ranks",))
    blocks: list[Block] = []
    spread = [one for one in every if one.group.cell.ranks > 1]
    if not folded and spread:
        ranks = sorted({one.group.cell.ranks for one in spread})
        charts = [
            _chart(context, workload, n, [o for o in spread if o.group.cell.ranks == n], labels)
            for n in ranks
        ]
        blocks.append(Charts(items=charts))
    title = f"What distribution costs with {main_kind(groups).words}" if folded else ""
    return [*blocks, _table(workload, every, labels, floor_text(floor), title)]


def _chart(
    context: Context, workload: str, ranks: int, every: list[DistributionCost],
    labels: dict[Cell, str],
) -> Chart:  # fmt: skip
    every = sorted(every, key=lambda one: (one.cost, one.group.cell.id))
    styles = {
        "waited": context.styles.get("communication"), "computing": context.styles.get("compute"),
        "input": context.styles.get("input"), "other": Style(MUTED),
    }  # fmt: skip
    bars = []
    for one in every[:MOST]:
        parts = [(part, max(0.0, getattr(one, part) or 0.0)) for part in _PARTS]
        mark = " ○" if one.group.over_subscribed else ""
        bars.append(
            Bar(
                label=labels[one.group.cell] + mark, right=_signed(one.cost),
                parts=[(100 * share, styles[part]) for part, share in parts],
            )
        )  # fmt: skip
    over = any(one.group.over_subscribed for one in every[:MOST])
    notes = [
        left_out(len(every), MOST, "costliest"),
        "Bars show what is lost: where computing got faster, the parts exceed the total at the "
        "right.",
        "○ more ranks than cores, no claim." if over else "",
    ]
    first = every[0]
    rows: list[list[Value]] = [
        [labels[one.group.cell], _signed(one.cost), *map(_share, _split(one)), _mark(one)]
        for one in every
    ]
    return Chart(
        title=f"{count(ranks, 'rank')}: what distribution costs",
        svg=render(
            bar_plot(bars, title="cost in % of the ideal step"),
            alt_text=f"{workload}, {ranks} ranks: cost of distribution in percent of the ideal "
            f"step. Least: {labels[first.group.cell]}, {_signed(first.cost)}.",
            name=f"cost-{workload}-{ranks}",
        ),
        alt="Stacked bars of what distribution adds to a step, least first.",
        legend=legend(((_WORDS[part], styles[part]) for part in _PARTS), line=False),
        note=" ".join(note for note in notes if note),
        table=Table(
            columns=[Column("Framework and strategy"), Column("Cost", numeric=True),
                     *(Column(_WORDS[part].capitalize(), numeric=True) for part in _PARTS),
                     Column("")],
            rows=rows, folded="Numbers",
        ),
    )  # fmt: skip


def _split(one: DistributionCost) -> tuple[float | None, ...]:
    return one.waited, one.computing, one.input, one.other


def _signed(share: float) -> str:
    whole = round(100 * share)
    return f"−{-whole} %" if whole < 0 else f"{whole} %"


def _share(share: float | None) -> str:
    return NOT_TOLD if share is None else _signed(share)


def _table(
    workload: str, every: list[DistributionCost], labels: dict[Cell, str], floor: str, folded: str
) -> Table:
    scale = scale_for([one.step_s for one in every], "s")
    every = sorted(
        every, key=lambda one: (one.group.cell.ranks == 1, one.group.cell.ranks, one.cost,
                                one.group.cell.id)
    )  # fmt: skip
    rows: list[list[Value]] = [
        [
            labels[one.group.cell], str(one.group.cell.ranks), _mark(one), one.scaling.value,
            scale.text(one.step_s), scale.text(one.ideal_s), _signed(one.cost),
            *map(_share, _split(one)), one.base.cell.strategy or "–",
        ]
        for one in every
    ]  # fmt: skip
    columns = [
        Column("Framework and strategy"), Column("Ranks", numeric=True), Column(""),
        Column("Scaling"), Column(f"Step ({scale.unit})", numeric=True),
        Column(f"Ideal ({scale.unit})", numeric=True), Column("Cost", numeric=True),
        Column("Waited", numeric=True), Column("Computing", numeric=True),
        Column("Input", numeric=True), Column("Other", numeric=True), Column("Base"),
    ]  # fmt: skip
    caption = f"{workload}: what distribution costs; {floor}"
    if len(rows) > _MOST_ROWS:
        folded = folded or f"What distribution costs in {workload}, and on one rank"
    return Table(columns=columns, rows=rows, caption=caption, folded=folded)


def _mark(one: DistributionCost) -> Value:
    if one.group.over_subscribed:
        return Chip("over-subscribed", "warn")
    if one.comparison is not None and not one.real:
        return undecided(one.comparison)
    if one.cost < 0:
        return Chip("superlinear", "warn")
    return Chip("disturbed", "warn") if one.group.disturbed or one.base.disturbed else None


def single_blocks(context: Context, workload: str, groups: list[Group]) -> list[Block]:
    """List each framework's own speed beside the fastest; nothing for one framework."""
    floor = context.floors.get("train", workload, METRIC, main_kind(groups))
    sets: dict[tuple[str, int, int], list[Group]] = defaultdict(list)
    for group in groups:
        cell = group.cell
        sets[cell.device, cell.threads, group.global_batch or 0].append(group)
    labels = group_labels(groups, never=("ranks",))
    rows: list[list[Value]] = []
    for key in sorted(sets):
        every = relative_speeds(sets[key], floor)
        if len(every) > 1:
            tied = any(one.comparison and one.comparison.verdict is Verdict.SAME for one in every)
            rows += [_speed(one, labels, tied=tied) for one in every]
    if not rows:
        return []
    columns = [
        Column("Framework"), Column("samples/s", numeric=True), Column("Runs", numeric=True),
        Column("Of the fastest", numeric=True), Column("From – to", numeric=True),
        Column("Against the fastest"), Column("Why"),
    ]  # fmt: skip
    caption = f"{workload}: the frameworks alone, on one rank; {floor_text(floor)}"
    return [Table(columns=columns, rows=rows, caption=caption)]


def _speed(one: RelativeSpeed, labels: dict[Cell, str], *, tied: bool) -> list[Value]:
    summary = one.group.summary(METRIC)
    assert summary is not None
    if one.comparison is None:
        verdict = Chip("highest median", "plain") if tied else Chip("fastest", "good")
        why = "–"
    else:
        slower = one.comparison.verdict is Verdict.BETTER
        verdict = Chip("slower", "plain") if slower else Chip("not distinguishable", "warn")
        why = one.comparison.reason
    return [
        labels[one.group.cell], number(summary.median), str(summary.count),
        percent(one.value, 1), f"{percent(one.low, 1)} – {percent(one.high, 1)}"
        if summary.count > 1 else "–", verdict, why,
    ]  # fmt: skip
