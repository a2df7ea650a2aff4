"""What more ranks bring: speed-ups beside the ideal, efficiencies with their bases, and what is behind one above 100 %."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from transect.analysis.bounds import Rates, step_bound
from transect.analysis.contrast import Contrast
from transect.analysis.groups import Group, grouped
from transect.analysis.kinds import compared, main_kind
from transect.analysis.labels import people_name
from transect.analysis.scaling import METRIC, Efficiency, ScalingKind, efficiencies
from transect.report.engine.blocks import Chip, Heading, Lead, Part, digits, note, words
from transect.report.engine.charts.chart import Point, Series, line_chart
from transect.report.engine.columns import RANKS, labelled
from transect.report.engine.context import Context
from transect.report.engine.parts import Section, StageReport
from transect.report.engine.text import count, number, percent, with_ends

# Repeats that lie further apart than this share of their median are no base to count from.
_WIDE = 0.1
# Below this share of its own roofline a base leaves much that has nothing to do with ranks.
_SLOW = 0.25
# By how much more of its step a base has to spend on its input.
_INPUT = 0.05
_FEW = 3
_MACHINE = ("host", "cpu_model", "cores", "memory_bytes", "gpus")


def possible_causes(gain: Efficiency, rates: Rates) -> list[str]:
    """Return what about base and group may explain an efficiency above 100 %, the likeliest first.

    `rates` are those of the machine, for the base's distance from its roofline. Without any cause
    that can be seen in the records the list is empty.
    """
    return [*_faults(gain), *_properties(gain, rates)]


def _faults(gain: Efficiency) -> Iterator[str]:
    """Yield faults of the measurement."""
    base, group = gain.base, gain.group
    if base.disturbed:
        yield "other processes disturbed the base"
    for fact in _MACHINE:
        before, now = ({repr(record.provenance.get(fact)) for record in side.ok} for side in (base, group))
        if not before & now:
            yield f"the base ran on another machine: its {fact.replace('_', ' ')} differs"
            break
    summary = base.summary(METRIC)
    if summary is None or summary.count < _FEW:
        yield f"the base has {0 if summary is None else summary.count} runs only"
    elif (wide := (summary.high - summary.low) / summary.median) > _WIDE:
        yield f"the base's runs lie {percent(wide)} apart"
    base_share, share = _share(base, "input_time"), _share(group, "input_time")
    if base_share is not None and share is not None and base_share - share > _INPUT:
        yield f"the base spends {percent(base_share)} of a step on its input, these ranks {percent(share)}"


def _properties(gain: Efficiency, rates: Rates) -> Iterator[str]:
    """Yield properties of cells and machine."""
    base, group = gain.base, gain.group
    if base.cell.strategy != group.cell.strategy:
        yield f"the base takes another path: {base.cell.strategy}, not {group.cell.strategy}"
    base_bytes, own_bytes = base.detail("bytes_per_step"), group.detail("bytes_per_step")
    if gain.kind is ScalingKind.STRONG and base_bytes and own_bytes and own_bytes < base_bytes:
        share = percent(own_bytes / base_bytes)
        yield f"a rank moves {share} of the base's bytes a step: they may fit a cache that the base's do not"
    if group.cell.nodes > base.cell.nodes:
        yield "more nodes have more memory bandwidth and cache"
    bound, batch = step_bound(base, rates), base.global_batch
    if bound is not None and batch and (reached := gain.base_rate / bound.rate(batch)) < _SLOW:
        yield f"the base reaches {percent(reached)} of its own bound: it leaves room that has nothing to do with ranks"


def _share(group: Group, part: str) -> float | None:
    whole, part_time = group.summary("step_time"), group.summary(part)
    return None if whole is None or part_time is None or not whole.median else part_time.median / whole.median


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

    def behind(gain: Efficiency) -> str | None:
        causes = possible_causes(gain, context.rates) if gain.superlinear else []
        return ("; ".join(causes) or "nothing that the records show") if gain.superlinear else None

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
            *([words("May be behind it", behind)] if any(gain.superlinear for gain in gains) else []),
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
    return replace(gain, gain=times, value=times * gain.base.cell.ranks / gain.group.cell.ranks)


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
