"""Blocks of the hardware section: systems beside each other, scaling of benchmarks, IO500."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence

from transect.analysis.benchmark_table import (
    Best,
    Series,
    best_values,
    refusals,
    scaling_series,
)
from transect.analysis.hardware import BenchmarkValue
from transect.domain.metrics import METRICS
from transect.report.blocks import Block, Chart, Chip, Column, Prose, Table, Value
from transect.report.charts.plots import Dot, Line, dot_plot, line_plot, log_is_better
from transect.report.charts.theme import legend, palette, render
from transect.report.findings.finding import names
from transect.report.text import clean, count, number, quantity, scale_for

__all__ = ["IO500", "io500_charts", "scaling_charts", "systems_blocks"]

IO500 = "io500"

# Names of IO500's averages over phases.
_SCORE = "score"
_MOST_ROWS = 36
_MOST_OF_ONE = 12
_MOST_LINES = 8
_MOST_REFUSALS = 6
_MOST_DOTS = 24
_CLIP = 120
_REASON = 90
# What a reader needs to repeat a run comes first.
_FIRST = ("nodes", "ranks", "threads", "N", "NB", "P", "Q", "ppwi", "wgsize", "array_size")
# Curves over sizes are drawn in the section on communication.
_CURVES = frozenset({"message_time", "allreduce_time"})


def _clip(text: str, room: int = _CLIP) -> str:
    text = " ".join(clean(text).split())
    return text if len(text) <= room else f"{text[: room - 1]}…"


def _title(benchmark: str, variant: str, series: str) -> str:
    variant = "" if variant == "transect" else variant
    return _clip(" · ".join(part for part in (benchmark, variant, series) if part), 90)


def _with(value: BenchmarkValue) -> str:
    """Write what a value was measured with: where it ran, then its own parameters."""
    own: dict[str, object] = {}
    if value.threads is not None:
        own = {"nodes": value.nodes or 1, "ranks": value.ranks or 1, "threads": value.threads}
    if value.size is not None:
        own["size"] = value.size
    own |= {key: one for key, one in value.parameters.items() if key not in own}
    keys = [*(key for key in _FIRST if key in own), *(key for key in own if key not in _FIRST)]
    parts = [
        f"{key}={own[key]}" for key in keys
        if isinstance(own[key], (int, float, str)) and len(str(own[key])) <= 16
    ]  # fmt: skip
    return _clip(", ".join(parts[:6])) or "–"


def systems_blocks(values: Sequence[BenchmarkValue]) -> list[Block]:
    """Return the table over systems and what may not be compared in it."""
    rows = best_values(values)
    if not rows:
        return []
    blocks: list[Block] = []
    refused = refusals(rows)
    for one in refused[:_MOST_REFUSALS]:
        first = one.values[0]
        each = [
            f"{quantity(value.value, value.unit)} ({clean(value.system)}, {_sides(rows, value)})"
            for value in one.values
        ]
        name = _title(first.benchmark, "", first.name.replace("_", " "))
        blocks.append(
            Prose(f"{name}: {names(each)} are not compared. {one.barrier.reason}.", quiet=True)
        )
    if len(refused) > _MOST_REFUSALS:
        rest = len(refused) - _MOST_REFUSALS
        blocks.append(Prose(f"{count(rest, 'comparison')} more of this kind refused.", quiet=True))
    # A system's phases stand in charts of their own: here its score is enough.
    rows = [
        row for row in rows
        if row.benchmark != IO500 or row.value is None or row.series.startswith(_SCORE)
    ]  # fmt: skip
    by_benchmark: dict[str, list[Best]] = defaultdict(list)
    for row in rows:
        by_benchmark[row.benchmark].append(row)
    shown: list[Best] = []
    folded: list[Block] = []
    for name, some in sorted(by_benchmark.items(), key=lambda item: (len(item[1]), item[0])):
        if len(some) <= _MOST_OF_ONE and len(shown) + len(some) <= _MOST_ROWS:
            shown += some
        else:
            systems = count(len({row.system for row in some}), "system")
            folded.append(
                _table(some, f"Best valid values: {_clip(name)} on {systems}", folded=True)
            )
    title = "Best valid value of each benchmark on each system"
    shown.sort(key=lambda row: row.benchmark)
    return [*([_table(shown, title)] if shown else []), *folded, *blocks]


def _sides(rows: Sequence[Best], value: BenchmarkValue) -> str:
    return clean(next(", ".join(row.barrier) for row in rows if row.value is value))


def _table(rows: Sequence[Best], title: str, *, folded: bool = False) -> Table:
    columns = [
        Column("Benchmark"), Column("System"), Column("Best", numeric=True), Column(""),
        Column("As printed", numeric=True), Column("With"), Column("Runs, and why not valid"),
    ]  # fmt: skip
    lines: list[list[Value]] = []
    told = set()
    for row in rows:
        value, runs = row.value, (row.system, row.benchmark, row.variant)
        said = ", ".join(f"{amount} {clean(status)}" for status, amount in row.bad)
        # The reasons are those of all rows of the same runs; each run's own stands further down.
        if row.reasons and runs not in told:
            said += f": {_clip('; '.join(row.reasons), _REASON)}"
        told.add(runs)
        lines.append([
            _title(row.benchmark, row.variant, row.series or row.name), _clip(row.system, 40),
            quantity(value.value, value.unit) if value else "–", _chip(row),
            (_clip(value.printed, 40) or "–") if value else "–", _with(value) if value else "–",
            f"{row.runs}, of them {said}" if said else str(row.runs),
        ])  # fmt: skip
    return Table(
        columns=columns, rows=lines, caption="" if folded else title, folded=title if folded else ""
    )


def _chip(row: Best) -> Chip | None:
    if row.value is None:
        return Chip("no valid run", "bad") if row.bad else None
    if row.refused:
        return Chip("not compared", "warn")
    return Chip(f"best of {row.rivals}", "good") if row.wins else None


def scaling_charts(values: Sequence[BenchmarkValue]) -> list[Chart]:
    """Draw each metric over threads and over nodes, where one system has two points or more."""
    charts = []
    for axis in ("threads", "nodes"):
        by_name: dict[str, list[Series]] = defaultdict(list)
        for one in scaling_series(values, axis):
            if one.first.name not in _CURVES and one.first.benchmark != IO500:
                by_name[one.first.name].append(one)
        charts += [_scaling(axis, name, some) for name, some in sorted(by_name.items())]
    return charts


def _scaling(axis: str, name: str, every: list[Series]) -> Chart:
    known = {(one.first.benchmark, one.first.system, one.first.series) for one in every}
    # Where a benchmark gives its best and its median, the median is drawn: it is what repeats.
    series = [
        one for one in every
        if (one.first.benchmark, one.first.system,
            one.first.series.removesuffix("_best") + "_median") not in known
    ]  # fmt: skip
    several = len({one.first.system for one in series}) > 1
    scale = scale_for([v for one in series for _, some in one.points for v in some],
                      series[0].first.unit)  # fmt: skip
    lines, items, rows = [], [], []
    styles = palette(min(len(series), _MOST_LINES))
    for number_of, one in enumerate(series):
        first = one.first
        label = _title(first.benchmark, first.variant, first.series)
        label = f"{label} · {_clip(first.system, 40)}" if several else label
        # A placement names the number of nodes and then the network: over nodes only the second is
        # the same all along.
        place = first.placement
        if axis != "threads":
            place = place.partition(" · ")[2]
        held = clean(" · ".join(part for part in (first.options, place) if part))
        label = f"{label} · {held}" if held else label
        points = [(float(at), statistics.median(some) / scale.factor) for at, some in one.points]
        scatter = [(float(at), v / scale.factor) for at, some in one.points for v in some]
        if number_of < _MOST_LINES:
            lines.append(Line(points=points, scatter=scatter, style=styles[number_of]))
            items.append((label, styles[number_of]))
        base = points[0][1]
        for (at, value), (_, some) in zip(points, one.points, strict=True):
            ratio = number(value / base) if base else "–"
            rows.append([label, number(at), number(value), ratio, str(len(some))])
    ticks = sorted({x for line in lines for x, _ in line.points})
    drawing = line_plot(
        lines, x_title=axis, y_title=scale.unit or name, x_log=True, ticks=ticks,
        y_log=log_is_better([y for line in lines for _, y in line.points]),
    )  # fmt: skip
    title = f"{name.replace('_', ' ').capitalize()} over {axis}"
    cut = len(series) - len(lines)
    note = f"{count(cut, 'series', 'series')} more in the numbers. " if cut else ""
    first_line = series[0].points
    alt = (
        f"{title}, {count(len(lines), 'line')}. {items[0][0]}: from "
        f"{number(lines[0].points[0][1])} to {number(lines[0].points[-1][1])} {scale.unit} between "
        f"{first_line[0][0]} and {first_line[-1][0]} {axis}."
    )
    columns = [
        Column("Run"), Column(axis.capitalize(), numeric=True),
        Column(f"Median ({scale.unit or 'value'})", numeric=True),
        Column("Times the first", numeric=True), Column("Runs", numeric=True),
    ]  # fmt: skip
    return Chart(
        title=title, svg=render(drawing, alt_text=alt, name=f"scaling-{axis}-{name}"),
        alt=METRICS[name].description, legend=legend(items),
        note=f"{note}{METRICS[name].description.capitalize()}; small dots are runs.",
        table=Table(columns=columns, rows=rows, folded="Numbers"),
    )  # fmt: skip


def io500_charts(values: Sequence[BenchmarkValue]) -> list[Chart]:
    """Draw IO500's phases, bandwidth apart from metadata, one whole run of each system.

    That run is the one with the highest score: phases of several runs are never put together.
    """
    runs: dict[str, list[BenchmarkValue]] = defaultdict(list)
    for value in values:
        if value.benchmark == IO500 and value.valid and value.value is not None:
            runs[value.run].append(value)
    chosen: dict[str, tuple[float, str]] = {}
    for run, some in sorted(runs.items()):
        score = max((v.value or 0.0 for v in some if v.name == "io500_score"), default=0.0)
        system = some[0].system
        if system not in chosen or score > chosen[system][0]:
            chosen[system] = (score, run)
    every = [value for _, run in chosen.values() for value in runs[run]]
    charts = (
        _phases("IO500 bandwidth by phase", "storage_bandwidth", every, 2.0**30, "GiB/s"),
        _phases("IO500 metadata rate by phase", "metadata_rate", every, 1e3, "kIOPS"),
    )
    return [chart for chart in charts if chart is not None]


def _phases(
    title: str, name: str, every: list[BenchmarkValue], factor: float, unit: str
) -> Chart | None:
    some = [v for v in every if v.name == name and not v.series.startswith(_SCORE)]
    if not some:
        return None
    systems = sorted({value.system for value in some})
    styles = dict(zip(systems, palette(len(systems)), strict=True))
    order = list(dict.fromkeys(value.phase for value in some))
    some.sort(key=lambda value: (order.index(value.phase), systems.index(value.system)))
    dots, rows = [], []
    for value in some:
        amount = (value.value or 0.0) / factor
        label = clean(value.phase)
        label = f"{label} · {_clip(value.system, 40)}" if len(systems) > 1 else label
        dots.append(Dot(label=label, value=amount, style=styles[value.system],
                        right=number(amount)))  # fmt: skip
        rows.append([clean(value.phase), _clip(value.system, 60), number(amount),
                     _clip(value.printed, 40) or "–", clean(value.where) or value.cell_id])  # fmt: skip
    cut = len(dots) - _MOST_DOTS
    drawing = dot_plot(dots[:_MOST_DOTS], title=f"{unit}, higher is better")
    best = max(dots, key=lambda dot: dot.value)
    columns = [Column("Phase"), Column("System"), Column(unit, numeric=True),
               Column("As printed", numeric=True), Column("From", code=True)]  # fmt: skip
    note = f"The first {_MOST_DOTS} of {len(dots)} are drawn. " if cut > 0 else ""
    return Chart(
        title=title,
        svg=render(drawing, name=f"io500-{name}",
                   alt_text=f"{title}: {count(len(dots), 'number')} of "
                   f"{count(len(systems), 'system')}. Highest: {best.label}, {best.right} {unit}."),
        alt=METRICS[name].description,
        note=f"{note}One run of each system: the one with the highest score.",
        legend=legend(((clean(s), styles[s]) for s in systems), line=False)
        if len(systems) > 1 else (),
        table=Table(columns=columns, rows=rows, folded="Numbers"),
    )  # fmt: skip
