"""Blocks of the hardware section: systems beside each other, scaling of benchmarks, IO500."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence

from transect.analysis.benchmark_table import Best, Series, refusals, scaling_series
from transect.analysis.hardware import BenchmarkValue
from transect.domain.metrics import METRICS
from transect.report.blocks import (
    Block,
    Chart,
    Chip,
    Prose,
    Table,
    Value,
    code,
    digits,
    table,
    words,
)
from transect.report.charts.chart import dot_chart, drawn
from transect.report.charts.plots import Dot, Line, line_plot, log_is_better
from transect.report.charts.theme import legend, palette
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
    own |= {key: given for key, given in value.parameters.items() if key not in own}
    keys = [*(key for key in _FIRST if key in own), *(key for key in own if key not in _FIRST)]
    parts = [
        f"{key}={own[key]}" for key in keys
        if isinstance(own[key], (int, float, str)) and len(str(own[key])) <= 16
    ]  # fmt: skip
    return _clip(", ".join(parts[:6])) or "–"


def systems_blocks(rows: Sequence[Best]) -> list[Block]:
    """Return the table over systems and what may not be compared in it."""
    if not rows:
        return []
    blocks: list[Block] = []
    refused = refusals(rows)
    for refusal in refused[:_MOST_REFUSALS]:
        first = refusal.values[0]
        each = [
            f"{quantity(value.value, value.unit)} ({clean(value.system)}, {_sides(rows, value)})"
            for value in refusal.values
        ]
        name = _title(first.benchmark, "", first.name.replace("_", " "))
        blocks.append(
            Prose(f"{name}: {names(each)} are not compared. {refusal.barrier.reason}.", quiet=True)
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
    for name, members in sorted(by_benchmark.items(), key=lambda item: (len(item[1]), item[0])):
        if len(members) <= _MOST_OF_ONE and len(shown) + len(members) <= _MOST_ROWS:
            shown += members
        else:
            systems = count(len({row.system for row in members}), "system")
            folded.append(
                _table(members, f"Best valid values: {_clip(name)} on {systems}", folded=True)
            )
    title = "Best valid value of each benchmark on each system"
    shown.sort(key=lambda row: row.benchmark)
    return [*([_table(shown, title)] if shown else []), *folded, *blocks]


def _sides(rows: Sequence[Best], value: BenchmarkValue) -> str:
    return clean(next(", ".join(row.barrier) for row in rows if row.value is value))


def _table(rows: Sequence[Best], title: str, *, folded: bool = False) -> Table:
    # The reasons are those of all rows of the same runs; each run's own stands further down.
    first = {(row.system, row.benchmark, row.variant): id(row) for row in reversed(rows)}

    def runs(row: Best) -> str:
        said = ", ".join(f"{amount} {clean(status)}" for status, amount in row.bad)
        if row.reasons and first[row.system, row.benchmark, row.variant] == id(row):
            said += f": {_clip('; '.join(row.reasons), _REASON)}"
        return f"{row.runs}, of them {said}" if said else str(row.runs)

    def best(row: Best) -> Value:
        return quantity(row.value.value, row.value.unit) if row.value else "–"

    columns = [
        words("Benchmark", lambda r: _title(r.benchmark, r.variant, r.series or r.name)),
        words("System", lambda row: _clip(row.system, 40)),
        digits("Best", best),
        words("", _chip),
        digits("As printed", lambda r: (r.value and _clip(r.value.printed, 40)) or "–"),
        words("With", lambda row: _with(row.value) if row.value else "–"),
        words("Runs, and why not valid", runs),
    ]
    return table(rows, columns, caption="" if folded else title, folded=title if folded else "")


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
        for series in scaling_series(values, axis):
            first = series.first
            if first.name not in _CURVES and first.benchmark != IO500:
                by_name[first.name].append(series)
        charts += [_scaling(axis, name, members) for name, members in sorted(by_name.items())]
    return charts


def _label(series: Series, axis: str, *, several: bool) -> str:
    first = series.first
    # A placement names the number of nodes and then the network: over nodes only the second is
    # the same all along.
    place = first.placement if axis == "threads" else first.placement.partition(" · ")[2]
    parts = [
        _title(first.benchmark, first.variant, first.series),
        _clip(first.system, 40) if several else "", clean(first.options), clean(place),
    ]  # fmt: skip
    return " · ".join(part for part in parts if part)


def _scaling(axis: str, name: str, every: list[Series]) -> Chart:
    firsts = {(s.first.benchmark, s.first.system, s.first.series) for s in every}
    # Where a benchmark gives its best and its median, the median is drawn: it is what repeats.
    shown = [
        series for series in every
        if (series.first.benchmark, series.first.system,
            series.first.series.removesuffix("_best") + "_median") not in firsts
    ]  # fmt: skip
    several = len({series.first.system for series in shown}) > 1
    scale = scale_for(
        [v for series in shown for _, values in series.points for v in values], shown[0].first.unit
    )

    def medians(series: Series) -> list[tuple[float, float]]:
        return [(float(at), statistics.median(v) / scale.factor) for at, v in series.points]

    labels = {id(series): _label(series, axis, several=several) for series in shown}
    styles = palette(min(len(shown), _MOST_LINES))
    lines = [
        Line(
            points=medians(series), style=style,
            scatter=[(float(at), v / scale.factor) for at, values in series.points for v in values],
        )
        for series, style in zip(shown, styles, strict=False)
    ]  # fmt: skip
    items = [(labels[id(series)], style) for series, style in zip(shown, styles, strict=False)]
    rows = [
        (labels[id(series)], at, value, value / base if base else None, len(values))
        for series in shown
        for base in (medians(series)[0][1],)
        for (at, value), (_, values) in zip(medians(series), series.points, strict=True)
    ]
    cut = len(shown) - len(lines)
    title = f"{name.replace('_', ' ').capitalize()} over {axis}"
    points = lines[0].points
    return drawn(
        line_plot(
            lines, x_title=axis, y_title=scale.unit or name, x_log=True,
            ticks=sorted({x for line in lines for x, _ in line.points}),
            y_log=log_is_better([y for line in lines for _, y in line.points]),
        ),
        rows,
        [
            words("Run", lambda row: row[0]), digits(axis.capitalize(), lambda row: number(row[1])),
            digits(f"Median ({scale.unit or 'value'})", lambda row: number(row[2])),
            digits("Times the first", lambda row: "–" if row[3] is None else number(row[3])),
            digits("Runs", lambda row: str(row[4])),
        ],
        title=title, name=f"scaling-{axis}-{name}", legend=legend(items),
        alt=f"{title}, {count(len(lines), 'line')}. {items[0][0]}: from {number(points[0][1])} to "
        f"{number(points[-1][1])} {scale.unit} between {number(points[0][0])} and "
        f"{number(points[-1][0])} {axis}.",
        notes=(f"{count(cut, 'series', 'series')} more in the numbers." if cut else "",
               f"{METRICS[name].description.capitalize()}; small dots are runs."),
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
    for run, members in sorted(runs.items()):
        score = max((v.value or 0.0 for v in members if v.name == "io500_score"), default=0.0)
        system = members[0].system
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
    values = [v for v in every if v.name == name and not v.series.startswith(_SCORE)]
    systems = sorted({value.system for value in values})
    styles = dict(zip(systems, palette(len(systems)), strict=True))
    phases = {phase: i for i, phase in enumerate(dict.fromkeys(v.phase for v in values))}
    values.sort(key=lambda value: (phases[value.phase], value.system))

    def amount(value: BenchmarkValue) -> str:
        return number((value.value or 0.0) / factor)

    def dot(value: BenchmarkValue) -> Dot:
        system = f" · {_clip(value.system, 40)}" if len(systems) > 1 else ""
        return Dot(label=clean(value.phase) + system, value=(value.value or 0.0) / factor,
                   style=styles[value.system], right=amount(value))  # fmt: skip

    cut = f"The first {_MOST_DOTS} of {len(values)} are drawn." if len(values) > _MOST_DOTS else ""
    return dot_chart(
        values, dot,
        [
            words("Phase", lambda value: clean(value.phase)),
            words("System", lambda value: _clip(value.system, 60)), digits(unit, amount),
            digits("As printed", lambda value: _clip(value.printed, 40) or "–"),
            code("From", lambda value: clean(value.where) or value.cell_id),
        ],
        title=title, axis=f"{unit}, higher is better", name=f"io500-{name}", first="First",
        unit=unit, most=_MOST_DOTS, cut="",
        legend=legend(((clean(s), styles[s]) for s in systems), line=False)
        if len(systems) > 1 else (),
        notes=[cut, "One run of each system: the one with the highest score."],
    )  # fmt: skip
