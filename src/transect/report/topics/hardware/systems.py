"""Blocks of the hardware section: systems beside each other, and how benchmarks scale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transect.analysis.benchmark_table import Best, Series, refusals, scaling_series
from transect.analysis.groups import grouped
from transect.analysis.hardware import BenchmarkValue
from transect.domain.metrics import METRICS
from transect.report.engine.blocks import MAX_OPEN, Chip, Part, Table, digits, note, table, words
from transect.report.engine.charts import chart
from transect.report.engine.context import Context
from transect.report.engine.finding import names
from transect.report.engine.text import clean, clipped, count, number, quantity, scale_for

IO500 = "io500"

# Names of IO500's averages over phases.
SCORE = "score"
# What a benchmark is known by, where it has one of these.
_FIRST_METRICS = ("flops", "memory_bandwidth", "io500_score", "network_bandwidth", "network_latency")
_MAX_LINES = 8
_MAX_REFUSALS = 6
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
    listed = [row for row in rows if row.benchmark != IO500 or row.value is None or row.series.startswith(SCORE)]
    shown = _headlines(listed)
    if shown:
        yield _table(shown, caption="Best valid value of each benchmark")
    for name, members in sorted(grouped(listed, lambda row: row.benchmark).items()):
        if any(row not in shown for row in members):
            yield _table(members, folded=f"Best valid values: {clipped(name, _CLIP)}")
    refused = refusals(rows)
    for refusal in refused[:_MAX_REFUSALS]:
        first = refusal.values[0]
        printed = [
            f"{quantity(value.value, value.unit)} ({clean(value.system)}, {_sides(rows, value)})"
            for value in refusal.values
        ]
        name = _title(first.benchmark, "", first.name.replace("_", " "))
        yield note(f"{name}: {names(printed)} are not compared. {refusal.barrier.reason}.")
    if further := len(refused) - min(len(refused), _MAX_REFUSALS):
        yield note(f"{count(further, 'comparison')} more of this kind refused.")


def _headlines(rows: Sequence[Best]) -> list[Best]:
    """Choose the rows that stand open: all of a few, else one for each benchmark and system, or for each benchmark."""
    order = {id(row): place for place, row in enumerate(rows)}

    def weight(row: Best) -> tuple[bool, int, int]:
        known = _FIRST_METRICS.index(row.name) if row.name in _FIRST_METRICS else len(_FIRST_METRICS)
        return row.value is None, known, order[id(row)]

    chosen = list(rows)
    if len(chosen) > MAX_OPEN:
        of_system = grouped(chosen, lambda row: (row.benchmark, row.variant, row.system))
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


def system_charts(context: Context, values: Sequence[BenchmarkValue]) -> Iterator[Part]:
    """Draw each metric over threads and over nodes where a system has several points."""
    for axis in ("threads", "nodes"):
        every = [
            series
            for series in scaling_series(values, axis)
            # Two numbers are no curve: they stand beside each other already.
            if len(series.points) > 2 and series.first.name not in CURVES and series.first.benchmark != IO500
        ]
        for name, members in sorted(grouped(every, lambda series: series.first.name).items()):
            yield _scaling(context, axis, name, members)


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


def _scaling(context: Context, axis: str, name: str, every: list[Series]) -> Part:
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
            name=(label := _label(series, axis, several=several)),
            style=context.styles.get(label),
            points=[
                chart.Point(x=float(at), repeats=[value / scale.factor for value in values])
                for at, values in series.points
            ],
        )
        for series in shown
    ]
    first, last = drawn[0].points[0], drawn[0].points[-1]
    title = f"{name.replace('_', ' ').capitalize()} over {axis}"
    from_to = (
        f"from {number(first.y)} to {number(last.y)} {scale.unit} between {number(first.x)} and {number(last.x)} {axis}"
    )
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
        title=f"{title}: {drawn[0].name} {from_to}",
        x=axis,
        y=scale.unit or name,
        name=f"scaling-{axis}-{name}",
        notes=[f"{METRICS[name].description.capitalize()}; small dots are runs."],
        most=_MAX_LINES,
        height=230,
    )
