"""Blocks of the hardware section: systems beside each other, scaling of benchmarks, IO500."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transect.analysis.benchmark_table import Best, Series, refusals, scaling_series
from transect.analysis.groups import grouped
from transect.analysis.hardware import BenchmarkValue
from transect.domain.metrics import METRICS
from transect.report.engine.blocks import MAX_OPEN, Chip, Part, Table, code, digits, note, table, words
from transect.report.engine.charts import chart
from transect.report.engine.charts.marks import Dot
from transect.report.engine.charts.theme import legend, palette
from transect.report.engine.finding import names
from transect.report.engine.text import clean, clipped, count, number, quantity, scale_for

IO500 = "io500"

# Names of IO500's averages over phases.
_SCORE = "score"
# With more rows than these, one of each benchmark and system stands open.
_MAX_ROWS = 12
# What a benchmark is known by, where it has one of these.
_FIRST_METRICS = ("flops", "memory_bandwidth", "io500_score", "network_bandwidth", "network_latency")
_MAX_LINES = 8
_MAX_REFUSALS = 6
_MAX_DOTS = 24
_CLIP = 120
_REASON = 90
# What a reader needs to repeat a run comes first.
_FIRST = ("nodes", "ranks", "threads", "N", "NB", "P", "Q", "ppwi", "wgsize", "array_size")
# Times over many sizes: the section on communication draws them as curves.
CURVES = frozenset({"message_time", "allreduce_time"})


def _title(benchmark: str, variant: str, series: str) -> str:
    variant = "" if variant == "transect" else variant
    return clipped(" · ".join(part for part in (benchmark, variant, series) if part), 90)


def _with(value: BenchmarkValue) -> str:
    """Write what a value was measured with: where it ran, then its own parameters."""
    settings: dict[str, object] = {}
    if value.threads is not None:
        settings = {"nodes": value.nodes or 1, "ranks": value.ranks or 1, "threads": value.threads}
    if value.size is not None:
        settings["size"] = value.size
    settings |= {key: given for key, given in value.parameters.items() if key not in settings}
    keys = [*(key for key in _FIRST if key in settings), *(key for key in settings if key not in _FIRST)]
    parts = [f"{key}={v}" for key in keys if isinstance(v := settings[key], (int, float, str)) and len(str(v)) <= 16]
    return clipped(", ".join(parts[:6]), _CLIP) or "–"


def systems_blocks(rows: Sequence[Best]) -> Iterator[Part]:
    """Give the table over systems and what may not be compared in it."""
    # A system's phases stand in charts of their own: here its score is enough.
    listed = [row for row in rows if row.benchmark != IO500 or row.value is None or row.series.startswith(_SCORE)]
    shown = _headlines(listed)
    if shown:
        whole = {(row.benchmark, row.system) for row in shown} == {(row.benchmark, row.system) for row in listed}
        each = "each benchmark on each system" if whole else "each benchmark"
        yield _table(shown, caption=f"Best valid value of {each}")
        if below := sorted({row.benchmark for row in listed} - {row.benchmark for row in shown}):
            yield note(f"In their own tables below alone: {names([clean(name) for name in below], len(below))}.")
    left = {id(row) for row in listed} - {id(row) for row in shown}
    for name, members in sorted(grouped(listed, lambda row: row.benchmark).items()):
        if any(id(row) in left for row in members):
            systems = count(len({row.system for row in members}), "system")
            title = f"Best valid values: {clipped(name, _CLIP)} on {systems}"
            yield _table(members, folded=title)
    refused = refusals(rows)
    for refusal in refused[:_MAX_REFUSALS]:
        first = refusal.values[0]
        printed = [
            f"{quantity(value.value, value.unit)} ({clean(value.system)}, {_sides(rows, value)})"
            for value in refusal.values
        ]
        name = _title(first.benchmark, "", first.name.replace("_", " "))
        yield note(f"{name}: {names(printed)} are not compared. {refusal.barrier.reason}.")
    if len(refused) > _MAX_REFUSALS:
        remaining = len(refused) - _MAX_REFUSALS
        yield note(f"{count(remaining, 'comparison')} more of this kind refused.")


def _headlines(rows: Sequence[Best]) -> list[Best]:
    """Choose the rows that stand open: all of a few, else one for each benchmark and system.

    Of more systems than one can read, the best one's row of each benchmark.
    """
    if len(rows) <= _MAX_ROWS:
        return sorted(rows, key=lambda row: row.benchmark)
    order = {id(row): place for place, row in enumerate(rows)}

    def weight(row: Best) -> tuple[bool, int, int]:
        known = _FIRST_METRICS.index(row.name) if row.name in _FIRST_METRICS else len(_FIRST_METRICS)
        return row.value is None, known, order[id(row)]

    of_system = grouped(rows, lambda row: (row.benchmark, row.variant, row.system))
    chosen = [min(members, key=weight) for members in of_system.values()]
    if len(chosen) > MAX_OPEN:
        of_benchmark = grouped(chosen, lambda row: row.benchmark)
        chosen = [min(members, key=lambda row: (not row.wins, *weight(row))) for members in of_benchmark.values()]
    return sorted(chosen, key=lambda row: row.benchmark)[:MAX_OPEN]


def _sides(rows: Sequence[Best], value: BenchmarkValue) -> str:
    return clean(next(", ".join(row.barrier) for row in rows if row.value is value))


def _table(rows: Sequence[Best], *, caption: str = "", folded: str = "") -> Table:
    # The reasons are those of all rows of the same runs; each run's own stands further down.
    first = {(row.system, row.benchmark, row.variant): id(row) for row in reversed(rows)}

    def runs(row: Best) -> str:
        invalid = ", ".join(f"{amount} {clean(status)}" for status, amount in row.bad)
        if row.reasons and first[row.system, row.benchmark, row.variant] == id(row):
            invalid += f": {clipped('; '.join(row.reasons), _REASON)}"
        return f"{row.runs}, of them {invalid}" if invalid else str(row.runs)

    columns = [
        words("Benchmark", lambda row: _title(row.benchmark, row.variant, row.series or row.name)),
        words("System", lambda row: clipped(row.system, 40)),
        digits("Best", lambda row: row.value and quantity(row.value.value, row.value.unit)),
        words("", _chip),
        digits("As printed", lambda row: (row.value and clipped(row.value.printed, 40)) or None),
        words("With", lambda row: _with(row.value) if row.value else "–"),
        words("Runs, and why not valid", runs),
    ]
    return table(rows, columns, caption=caption, folded=folded)


def _chip(row: Best) -> Chip | None:
    if row.value is None:
        return Chip("no valid run", "bad") if row.bad else None
    remarks = ["not compared"] if row.refused else [f"best of {row.rivals}"] if row.wins else []
    doubted = row.value.status == "suspicious"
    remarks += ["suspicious"] if doubted else []
    return Chip(", ".join(remarks), "warn" if doubted or row.refused else "good") if remarks else None


def system_charts(values: Sequence[BenchmarkValue]) -> Iterator[Part]:
    """Draw each metric over threads and over nodes where a system has several points, and IO500."""
    for axis in ("threads", "nodes"):
        every = [
            series
            for series in scaling_series(values, axis)
            # Two numbers are no curve: they stand beside each other already.
            if len(series.points) > 2 and series.first.name not in CURVES and series.first.benchmark != IO500
        ]
        for name, members in sorted(grouped(every, lambda series: series.first.name).items()):
            yield _scaling(axis, name, members)
    yield from _io500_charts(values)


def _label(series: Series, axis: str, *, several: bool) -> str:
    first = series.first
    # A placement names the number of nodes and then the network: over nodes only the second is
    # the same all along.
    place = first.placement if axis == "threads" else first.placement.partition(" · ")[2]
    parts = [
        _title(first.benchmark, first.variant, first.series),
        clipped(first.system, 40) if several else "",
        clean(first.options),
        clean(place),
    ]
    return " · ".join(part for part in parts if part)


def _scaling(axis: str, name: str, every: list[Series]) -> Part:
    firsts = {(s.first.benchmark, s.first.system, s.first.series) for s in every}
    # Where a benchmark gives its best and its median, the median is drawn: it is what repeats.
    shown = [
        series
        for series in every
        if (series.first.benchmark, series.first.system, series.first.series.removesuffix("_best") + "_median")
        not in firsts
    ]
    several = len({series.first.system for series in shown}) > 1
    scale = scale_for([v for series in shown for _, values in series.points for v in values], shown[0].first.unit)
    drawn = [
        chart.Series(
            name=_label(series, axis, several=several),
            style=style,
            points=[
                chart.Point(x=float(at), repeats=[value / scale.factor for value in values])
                for at, values in series.points
            ],
        )
        for series, style in zip(shown, palette(len(shown)), strict=True)
    ]
    title = f"{name.replace('_', ' ').capitalize()} over {axis}"
    first, last = drawn[0].points[0], drawn[0].points[-1]
    return chart.line_chart(
        drawn,
        [(line, point) for line in drawn for point in line.points],
        [
            words("Run", lambda row: row[0].name),
            digits(axis.capitalize(), lambda row: row[1].x),
            digits(f"Median ({scale.unit or 'value'})", lambda row: row[1].y),
            digits("Times the first", lambda row: row[1].y / row[0].points[0].y if row[0].points[0].y else None),
            digits("Runs", lambda row: len(row[1].repeats)),
        ],
        title=title,
        x=axis,
        y=scale.unit or name,
        name=f"scaling-{axis}-{name}",
        alt=f"{title}, {count(min(len(drawn), _MAX_LINES), 'line')}. {drawn[0].name}: from "
        f"{number(first.y)} to {number(last.y)} {scale.unit} between {number(first.x)} and "
        f"{number(last.x)} {axis}.",
        notes=[f"{METRICS[name].description.capitalize()}; small dots are runs."],
        most=_MAX_LINES,
        height=230,
    )


def _io500_charts(values: Sequence[BenchmarkValue]) -> Iterator[Part]:
    """Draw IO500's phases, bandwidth apart from metadata, one whole run of each system.

    That run is the one with the highest score: phases of several runs are never put together.
    """
    valid = [v for v in values if v.benchmark == IO500 and v.valid and v.value is not None]
    runs = grouped(valid, lambda value: value.run)
    chosen: dict[str, tuple[float, str]] = {}
    for run, members in sorted(runs.items()):
        score = max((v.value or 0.0 for v in members if v.name == "io500_score"), default=0.0)
        system = members[0].system
        if system not in chosen or score > chosen[system][0]:
            chosen[system] = (score, run)
    every = [value for _, run in chosen.values() for value in runs[run]]
    yield _phases("IO500 bandwidth by phase", "storage_bandwidth", every, 2.0**30, "GiB/s")
    yield _phases("IO500 metadata rate by phase", "metadata_rate", every, 1e3, "kIOPS")


def _phases(title: str, name: str, every: list[BenchmarkValue], factor: float, unit: str) -> Part:
    values = [v for v in every if v.name == name and not v.series.startswith(_SCORE)]
    systems = sorted({value.system for value in values})
    several = len(systems) > 1
    styles = dict(zip(systems, palette(len(systems)), strict=True))
    phases = {phase: i for i, phase in enumerate(dict.fromkeys(v.phase for v in values))}
    values.sort(key=lambda value: (phases[value.phase], value.system))

    def amount(value: BenchmarkValue) -> float:
        return (value.value or 0.0) / factor

    def dot(value: BenchmarkValue) -> Dot:
        system = f" · {clipped(value.system, 40)}" if several else ""
        return Dot(
            label=clean(value.phase) + system,
            value=amount(value),
            style=styles[value.system],
            right=number(amount(value)),
        )

    names = [(clean(system), style) for system, style in styles.items()] if several else []
    return chart.dot_chart(
        values,
        dot,
        [
            words("Phase", lambda value: clean(value.phase)),
            words("System", lambda value: clipped(value.system, 60)),
            digits(unit, amount),
            digits("As printed", lambda value: clipped(value.printed, 40) or None),
            code("From", lambda value: clean(value.where) or value.cell_id),
        ],
        title=title,
        axis=f"{unit}, more is better",
        name=f"io500-{name}",
        first="First",
        unit=unit,
        most=_MAX_DOTS,
        cut="later",
        legend=legend(names, line=False),
        notes=["One run of each system: the one with the highest score."],
    )
