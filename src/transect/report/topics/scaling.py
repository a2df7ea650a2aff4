"""What more ranks bring: speed-ups beside the ideal, efficiencies with their bases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from transect.analysis.contrast import Contrast
from transect.analysis.groups import grouped
from transect.analysis.kinds import compared, main_kind
from transect.analysis.labels import people_name
from transect.analysis.scaling import METRIC, Efficiency, efficiencies
from transect.report.engine.blocks import Chip, Heading, Lead, Part, digits, note, words
from transect.report.engine.charts.chart import Point, Series, line_chart
from transect.report.engine.columns import RANKS, labelled
from transect.report.engine.context import Context
from transect.report.engine.parts import Section, StageReport
from transect.report.engine.text import count, number, percent, with_ends

# Lines that one panel holds.
_MAX_LINES = 8


def _speed_up_chart(context: Context, workload: str, gains: list[Efficiency]) -> Part:
    """Draw speed-ups over ranks beside the ideal; one panel holds gains from bases of as many ranks."""
    least = min(gain.base.cell.ranks for gain in gains)
    shown = [gain for gain in gains if gain.base.cell.ranks == least]
    lines = _speed_up_lines(context, shown)
    apart = len(gains) - len(shown)
    label = labelled(gains, always=("ranks",))
    best = max(shown, key=lambda gain: gain.gain)
    base = count(least, "rank")

    def speed_up(gain: Efficiency) -> str | float:
        pair = _pair(context, gain)
        return with_ends(pair.cost.inverse) if pair else gain.gain

    return line_chart(
        lines,
        gains,
        [
            label,
            RANKS,
            digits("samples/s", lambda gain: gain.rate),
            words("Base", lambda gain: f"{gain.base.cell.strategy}, {count(gain.base.cell.ranks, 'rank')}"),
            digits("Base samples/s", lambda gain: gain.base_rate),
            words("Scaling", lambda gain: gain.kind.value),
            digits("Speed-up", speed_up),
            digits("Efficiency", lambda gain: gain.value, percent),
            words("", lambda gain: Chip("superlinear", "warn") if gain.superlinear else None),
        ],
        title=f"At most {number(best.gain)} times the speed of {base}, by "
        f"{people_name(best.group.cell, [best.base.cell], always=('ranks',))}",
        x="ranks",
        y="times the base's samples/s",
        name=f"speed-up-{re.sub(r'[^A-Za-z0-9]+', '-', workload)}",
        most=_MAX_LINES,
        bound={point.x: point.x / least for line in lines for point in line.points},
        bound_name="ideal: as many times as ranks",
        y_log=False,
        notes=[
            "Of planned pairs the ratio that decides; its interval stands in the numbers."
            if any(_pair(context, gain) for gain in shown)
            else "",
            f"{count(apart, 'efficiency', 'efficiencies')} of bases with more ranks stand in the table only."
            if apart
            else "",
        ],
    )


def _pair(context: Context, gain: Efficiency) -> Contrast | None:
    """Return the planned pair of a group and its base, if they are one."""
    pairs = context.contrasts.of("training.scaling", gain.group.cell.workload)
    return next((pair for pair in pairs if (pair.group, pair.base) == (gain.group, gain.base)), None)


def _decided(context: Context, gain: Efficiency) -> Efficiency:
    """Return it by the ratio that decides, where its groups are a planned pair: that of all runs may be another one."""
    pair = _pair(context, gain)
    if pair is None:
        return gain
    times = pair.cost.inverse.value
    share = gain.base.cell.ranks / gain.group.cell.ranks
    above = pair.shown and pair.cost.inverse.low * share > 1
    return replace(gain, gain=times, value=times * share, superlinear=above)


def _speed_up_lines(context: Context, gains: list[Efficiency]) -> list[Series]:
    """Return a line for each way to distribute, from its base on."""

    def line(gain: Efficiency) -> tuple[object, ...]:
        cell = gain.group.cell
        return (
            cell.framework,
            cell.strategy,
            gain.kind,
            cell.network,
            cell.threads,
            gain.group.kind,
            cell.ranks_per_node if cell.nodes > 1 else None,
        )

    lines = grouped(gains, line)
    kinds = {gain.kind for gain in gains}
    made = []
    for members in lines.values():
        cell = members[0].group.cell
        named = [cell.framework, cell.strategy, cell.network, members[0].kind.value if len(kinds) > 1 else None]
        points = [Point(x=members[0].base.cell.ranks, repeats=[1.0], about=members[0].base)]
        points += [
            Point(
                x=gain.group.cell.ranks,
                about=gain.group,
                # Of a planned pair the ratio that decides: that of all runs may be another one.
                repeats=[gain.gain]
                if _pair(context, gain)
                else [value / gain.base_rate for value in gain.group.values(METRIC)],
            )
            for gain in members
        ]
        style = context.style(members[0].group)
        made.append(Series(name=" · ".join(filter(None, named)), style=style, points=points))
    # The lines that go furthest are drawn where there are too many.
    return sorted(made, key=lambda series: (-max(point.x for point in series.points), series.name))


def scaling_body(context: Context) -> Iterator[Part]:
    """Draw speed-ups over ranks, with their bases."""
    found: dict[str, list[Efficiency]] = {}
    for workload in context.workloads("train"):
        right = compared([g for g in context.of("train", workload) if g.ok and not g.wrong])
        groups = [group for group in right if group.kind == main_kind(right)]
        if len({group.cell.ranks for group in groups}) > 1:
            floor = context.floors.get("train", workload, METRIC, main_kind(groups))
            found[workload] = [_decided(context, gain) for gain in efficiencies(groups, floor)]
    every = sorted(gain.value for gains in found.values() for gain in gains)
    if not found:
        return
    odd = sum(gain.superlinear for gains in found.values() for gain in gains)
    ends = percent(every[0]) + (f" to {percent(every[-1])}" if len(every) > 1 else "") if every else ""
    span = f"{ends}, of {count(len(every), 'cell')}" if every else "not known"
    yield Lead(
        f"Efficiency on more ranks: {span}{f'; {odd} above what can be' if odd else ''}. "
        "What more ranks bring, each beside a base that is named with it."
    )
    for workload, gains in found.items():
        if gains:
            yield Heading(workload)
            yield _speed_up_chart(context, workload, gains)
        else:
            yield note(f"{workload}: no cell on more ranks has a base within the cores, so no efficiency is known.")


REPORT = StageReport(stage="train", sections=(Section(key="scaling", title="Scaling", order=210, make=scaling_body),))
