"""Section: what more ranks bring: speed-ups beside ideal and bound, parts of a step, efficiencies with their bases."""

from __future__ import annotations

import re
from collections.abc import Iterator

from transect.analysis.bounds import step_bound
from transect.analysis.groups import Group, grouped
from transect.analysis.kinds import compared, main_kind
from transect.analysis.scaling import METRIC, Efficiency, TrainGroup, efficiencies
from transect.report.engine.blocks import Chip, Column, Heading, Lead, Part, digits, note, table, words
from transect.report.engine.charts.chart import MAX_PANELS, Point, Series, line_chart
from transect.report.engine.columns import ACCURACY, RANKS, labelled, medians, training_series
from transect.report.engine.context import Context
from transect.report.engine.text import count, number, percent
from transect.report.topics.distribution.twins import own_batch
from transect.report.topics.scaling.superlinear import possible_causes
from transect.report.topics.training.throughput import split_chart

# Lines from which on each framework has a panel, and that one panel holds.
_MAX_LINES, _MAX_DRAWN = 8, 24


def scaling_charts(context: Context, workload: str, groups: list[TrainGroup]) -> Iterator[Part]:
    """Draw samples/s over ranks; nothing with one rank count."""
    measured = [group for group in groups if group.values(METRIC)]
    if _several_ranks(measured):
        for name, members in list(_panels(measured).items())[:MAX_PANELS]:
            yield _chart(context, workload, name, members)


def _several_ranks(groups: list[TrainGroup]) -> bool:
    return len({group.cell.ranks for group in groups}) > 1


def _panels(groups: list[TrainGroup]) -> dict[str, list[TrainGroup]]:
    """Part groups whose lines would look alike, or be more than can be told apart.

    Each kind of scaling has a panel, and each framework when there are many lines. One rank is where
    both kinds of scaling begin. A panel shows more than one number of ranks.
    """
    many = len(_series(groups)) > _MAX_LINES
    of_framework = grouped(groups, lambda group: group.cell.framework if many else "")
    parts: dict[str, list[TrainGroup]] = {}
    for framework, pool in sorted(of_framework.items()):
        grown = [group for group in pool if group.cell.ranks > 1 and _weak(group)]
        ways = {(group.cell.framework, group.cell.strategy) for group in grown}
        bases = [
            group for group in pool if group.cell.ranks == 1 and (group.cell.framework, group.cell.strategy) in ways
        ]
        strong = [group for group in pool if group not in grown]
        for members, how in ((strong, ""), (bases + grown, "weak scaling")):
            if _several_ranks(members):
                parts[", ".join(part for part in (framework, how) if part)] = members
    return parts or {"": groups}


def _weak(group: Group) -> bool:
    expected, batch = own_batch(group), group.global_batch
    return expected is not None and batch is not None and batch != expected


def _series(groups: list[TrainGroup]) -> list[list[TrainGroup]]:
    """Part groups by line, each in the order of its ranks."""
    # Ranks are added on one node or node by node: a line never changes from one to the other.
    several_nodes = any(group.cell.nodes > 1 for group in groups)
    weak = all(_weak(group) or group.cell.ranks == 1 for group in groups)

    def line(group: TrainGroup) -> tuple[object, ...]:
        cell = group.cell
        batch = "weak" if weak or _weak(group) else cell.batch
        per_node = cell.ranks_per_node if several_nodes else None
        return (cell.framework, cell.strategy, cell.threads, group.kind, batch, cell.device, cell.network, per_node)

    lines = grouped(groups, line).values()
    return [sorted(members, key=lambda group: group.cell.ranks) for members in lines]


def _chart(context: Context, workload: str, name: str, groups: list[TrainGroup]) -> Part:
    every = _series(groups)
    ranks = ", ".join(str(ranks) for ranks in sorted({group.cell.ranks for group in groups}))
    return line_chart(
        training_series(context, every, lambda group: group.cell.ranks, lambda group: group.values(METRIC)),
        [group for members in every for group in members],
        [
            labelled(groups, always=("ranks",)),
            RANKS,
            medians("Median (samples/s)", METRIC),
            digits("Runs", lambda group: len(group.values(METRIC))),
            ACCURACY,
            words("", lambda group: Chip("over-subscribed", "warn") if group.over_subscribed else None),
        ],
        title="Throughput over ranks" + (f": {name}" if name else ""),
        x="ranks",
        y="samples/s",
        name=f"ranks-{workload}" + re.sub(r"[^a-z0-9]+", "-", f"-{name}" if name else ""),
        alt=f"{workload}: samples per second over {ranks} ranks, a line per framework and strategy.",
        notes=["Lines join only points within the machine's cores."],
        most=_MAX_DRAWN,
        bound=_bounds(context, groups),
        bound_name="roofline bound",
    )


def _bounds(context: Context, groups: list[TrainGroup]) -> dict[float, float]:
    """The bound by ranks of cells with one thread per rank; it is the same for every framework.

    As many ranks on more nodes have more memory bandwidth: the highest bound is drawn.
    """
    bounds: dict[float, float] = {}
    for group in groups:
        bound, batch = step_bound(group, context.rates), group.global_batch
        if bound is not None and batch:
            ranks = group.cell.ranks
            bounds[ranks] = max(bounds.get(ranks, 0.0), bound.rate(batch))
    return bounds


def _speed_up_chart(context: Context, workload: str, gains: list[Efficiency]) -> Part:
    """Draw speed-ups over ranks beside the ideal; one panel holds gains from bases of as many ranks."""
    least = min(gain.base.cell.ranks for gain in gains)
    shown = [gain for gain in gains if gain.base.cell.ranks == least]
    lines = _speed_up_lines(context, shown)
    ranks = sorted({point.x for line in lines for point in line.points})
    apart = len(gains) - len(shown)
    label = labelled(shown, always=("ranks",))
    return line_chart(
        lines,
        shown,
        [
            label,
            RANKS,
            words("Base", _base_words),
            digits("Speed-up", lambda gain: gain.gain),
            digits("Ideal", lambda gain: gain.group.cell.ranks / gain.base.cell.ranks),
            digits("Efficiency", lambda gain: gain.value, percent),
            words("", _superlinear),
        ],
        title=f"Speed-up over {count(least, 'rank')}",
        x="ranks",
        y="times the base's samples/s",
        name=f"speed-up-{_slug(workload)}",
        most=_MAX_LINES,
        alt=f"{workload}: speed-up over ranks beside the ideal, from bases on {count(least, 'rank')}. "
        f"Highest: {label.entry(best := max(shown, key=lambda gain: gain.rate / gain.base_rate))}, "
        f"{number(best.rate / best.base_rate)} times.",
        bound={x: x / least for x in ranks},
        bound_name="ideal: as many times as ranks",
        y_log=False,
        notes=[
            f"{count(apart, 'efficiency', 'efficiencies')} of bases with more ranks stand in the table only."
            if apart
            else ""
        ],
    )


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
                repeats=[value / gain.base_rate for value in gain.group.values(METRIC)],
            )
            for gain in members
        ]
        style = context.style(members[0].group)
        made.append(Series(name=" · ".join(filter(None, named)), style=style, points=points))
    # The lines that go furthest are drawn where there are too many.
    return sorted(made, key=lambda series: (-max(point.x for point in series.points), series.name))


def _slug(workload: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", workload)


def _base_words(gain: Efficiency) -> str:
    cell = gain.base.cell
    return f"{cell.strategy}, {count(cell.ranks, 'rank')}"


def _superlinear(gain: Efficiency) -> Chip | None:
    return Chip("superlinear", "warn") if gain.superlinear else None


def scaling_body(context: Context) -> Iterator[Part]:
    """Draw speed-ups and throughput over ranks, what a step consists of there, and efficiencies."""
    found: dict[str, tuple[list[TrainGroup], list[Efficiency]]] = {}
    for workload in context.workloads("train"):
        right = compared([g for g in context.of("train", workload) if g.ok and not g.wrong])
        main = main_kind(right)
        groups = [group for group in right if group.kind == main]
        if groups and _several_ranks(groups):
            floor = context.floors.get("train", workload, METRIC, main_kind(groups))
            found[workload] = groups, efficiencies(groups, floor)
    yield Lead(
        f"{_counted([gain for _, gains in found.values() for gain in gains])}What more ranks bring. A speed-up is counted from a base that is named beside it; the ideal is as many "
        "times as ranks, the bound what the roofline allows. More than 100 % efficiency is flagged, with what may be "
        "behind it. Cells with more ranks than cores carry no claim: they have no efficiency.",
        empty="No workload was trained on several numbers of ranks: nothing scales here.",
    )
    for workload, (groups, gains) in found.items():
        yield Heading(workload)
        yield from _workload(context, workload, groups, gains)


def _counted(gains: list[Efficiency]) -> str:
    """Say first how efficient more ranks are, and how many are so beyond what can be."""
    if not gains:
        return ""
    values = sorted(gain.value for gain in gains)
    odd = sum(gain.superlinear for gain in gains)
    span = percent(values[0]) + (f" to {percent(values[-1])}" if len(values) > 1 else "")
    beyond = f"; {odd} above what can be" if odd else ""
    return f"Efficiency on more ranks: {span}, of {count(len(gains), 'cell')}{beyond}. "


def _workload(context: Context, workload: str, groups: list[TrainGroup], gains: list[Efficiency]) -> Iterator[Part]:
    over = sum(group.over_subscribed for group in groups)
    if over:
        yield note(f"Hollow symbols: {over} of {len(groups)} points ran more ranks than the machine has cores.")
    if gains:
        yield _speed_up_chart(context, workload, gains)
    yield from scaling_charts(context, workload, groups)
    yield split_chart(context, workload, _over_ranks(groups, gains), over_ranks=True)
    if gains:
        yield _efficiency_table(context, workload, gains)
    else:
        yield note(f"{workload}: no cell on more ranks has a base within the cores: no efficiency is known.")


def _over_ranks(groups: list[TrainGroup], gains: list[Efficiency]) -> list[TrainGroup]:
    """Return the groups that stand on several numbers of ranks, with their bases, way by way."""
    wanted = {id(group) for line in _series(groups) if _several_ranks(line) for group in line}
    wanted |= {id(group) for gain in gains for group in (gain.base, gain.group)}

    def place(group: TrainGroup) -> tuple[object, ...]:
        cell = group.cell
        return cell.framework, cell.strategy != "single", cell.strategy, cell.ranks, cell.id

    return sorted((group for group in groups if id(group) in wanted), key=place)


def _efficiency_table(context: Context, workload: str, gains: list[Efficiency]) -> Part:
    """List all efficiencies with their bases, and what may be behind those above 100 %."""
    label = labelled([*(gain.group for gain in gains), *(gain.base for gain in gains)], always=("ranks",))
    columns: list[Column[Efficiency]] = [
        words("Cell", lambda gain: label.entry(gain.group)),
        digits("samples/s", lambda gain: gain.rate),
        words("Base", lambda gain: label.entry(gain.base)),
        digits("Base samples/s", lambda gain: gain.base_rate),
        words("Scaling", lambda gain: gain.kind.value),
        digits("Speed-up", lambda gain: gain.rate / gain.base_rate),
        digits("Efficiency", lambda gain: gain.value, percent),
        words("", _superlinear),
    ]
    if any(gain.superlinear for gain in gains):
        columns.append(words("May be behind it", lambda gain: _behind(context, gain)))
    caption = f"{workload}: efficiency against a declared base. Over-subscribed cells have none."
    return table(gains, columns, caption=caption, fold_title=f"Efficiencies of {workload}")


def _behind(context: Context, gain: Efficiency) -> str | None:
    if not gain.superlinear:
        return None
    causes = possible_causes(gain, context.rates)
    return "; ".join(causes) or "nothing that the records show"
