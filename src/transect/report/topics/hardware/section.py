"""Section: what the hardware gives, from benchmarks run here and from logs that were read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from statistics import median
from typing import Any

from transect.analysis.benchmark_table import best_values, refusals, series_of
from transect.analysis.groups import grouped
from transect.analysis.hardware import BenchmarkValue
from transect.analysis.storage import storage_rates
from transect.domain.metrics import METRICS, Direction
from transect.report.engine.blocks import Chart, Charts, Chip, Column, Lead, Part, Table, code, digits, table, words
from transect.report.engine.charts.chart import dot_chart
from transect.report.engine.charts.marks import Dot
from transect.report.engine.context import Context
from transect.report.engine.text import clean, count, number, quantity, scale_for
from transect.report.topics.hardware.storage import storage_table
from transect.report.topics.hardware.systems import CURVES, IO500, SCORE, system_charts, systems_blocks

_MAX_DOTS = 16
# Charts that stand open: what bounds are made of comes first.
_MAX_CHARTS = 4
_FIRST = ("flops", "memory_bandwidth", "network_bandwidth", "network_latency", "storage_bandwidth")
_RATES = {"flops": "Peak arithmetic", "memory_bandwidth": "Memory bandwidth"}


def hardware_body(context: Context) -> Iterator[Part]:
    """Lay systems beside each other, draw valid values, list every run with its validity."""
    values = context.benchmark_values
    yield Lead(f"{_counted(context)}A run counts only if the benchmark's own check passed.")
    best = best_values(values)
    yield _bounds(context)
    yield storage_table(context)
    yield from systems_blocks(best)
    refused = {series_of(value) for refusal in refusals(best) for value in refusal.values}
    # Where benchmarks ran here, logs of other machines are in tables alone. What is not compared is not drawn; numbers
    # in units of their own have no common axis; points over sizes belong to curves.
    stages = {"bench"} if any(value.stage == "bench" for value in values) else {"bench", "ingest"}
    whole = _whole_runs(values)
    drawable = [
        value
        for value in values
        if value.valid
        and value.value
        and value.stage in stages
        and value.name in METRICS
        and value.name not in CURVES
        and (value.benchmark != IO500 or (value.run in whole and not value.series.startswith(SCORE)))
        and series_of(value) not in refused
        and (value.size is None or value.stage != "ingest")
    ]
    by_name = grouped(drawable, lambda value: (value.stage, value.name, IO500 if value.benchmark == IO500 else ""))
    charts = [_chart(context, *key, drawn) for key, drawn in sorted(by_name.items(), key=_place) if len(drawn) > 1]
    # Curves over threads and nodes say more than the same numbers side by side.
    every = [chart for chart in (*system_charts(context, values), *charts) if isinstance(chart, Chart)]
    yield from every[:_MAX_CHARTS]
    if further := every[_MAX_CHARTS:]:
        yield Charts(items=further, folded=f"{count(len(further), 'more chart')}")
    if bad := [value for value in values if not value.valid]:
        yield _runs(bad, caption="Runs that are not valid: their numbers are in no chart")
    if logs := [value for value in values if value.valid and value.stage == "ingest"]:
        yield _runs(logs, folded="Runs read from logs, one number of each")


def _whole_runs(values: Sequence[BenchmarkValue]) -> set[str]:
    """Return IO500's run of the highest score of each system: phases of several runs are never put together."""
    scored = [value for value in values if value.valid and value.name == "io500_score"]
    of_system = grouped(scored, lambda value: value.system)
    return {max(members, key=lambda value: value.value or 0.0).run for members in of_system.values()}


def _counted(context: Context) -> str:
    """Say first what this machine gives at best, and how many runs of benchmarks say so."""
    best: dict[str, float] = {}
    for name, _, rate in context.rates.every():
        best[name] = max(best.get(name, 0.0), rate.value)
    rates = [f"{_RATES[name].lower()} {quantity(value, METRICS[name].unit)}" for name, value in best.items()]
    here, read = (
        len({value.run for value in context.benchmark_values if value.stage == stage}) for stage in ("bench", "ingest")
    )
    runs = [
        count(here, "run") + " of benchmarks here" if here else "",
        count(read, "run") + " read from logs" if read else "",
    ]
    runs_text = ", ".join(filter(None, runs))
    if not runs_text:
        return ""
    return f"{runs_text[:1].upper()}{runs_text[1:]}{'; at best ' + ', '.join(rates) if rates else ''}. "


def _place(item: tuple[tuple[str, str, str], list[BenchmarkValue]]) -> tuple[int, tuple[str, str, str]]:
    name = item[0][1]
    return (_FIRST.index(name) if name in _FIRST else len(_FIRST), item[0])


def _bounds(context: Context) -> Table | None:
    """List what bounds in this report are made of: the best rate by threads, the network's model, and storage."""
    rows = [
        (
            _RATES[name] + (f", {precision}" if precision else ""),
            count(rate.threads, "thread"),
            quantity(rate.value, METRICS[name].unit),
            rate.benchmark,
            rate.cell_id,
        )
        for name, precision, rate in context.rates.every()
    ]
    for fit in context.network_fits:
        where = "within a node" if fit.cell.nodes == 1 else fit.cell.network or "default network"
        by = (str(fit.cell.get("benchmark") or "–"), fit.cell.id)
        rows.append(("Latency of a message", where, quantity(fit.model.alpha_s, "s"), *by))
        rows.append(("Bandwidth of a link", where, quantity(fit.model.beta, "B/s"), *by))
    for way, rate in storage_rates(context.records).items():
        rows.append((f"Storage, {way}", rate.phase, quantity(rate.value, "B/s"), rate.benchmark, rate.cell_id))
    columns: list[Column[Any]] = [
        words("Bound", itemgetter(0)),
        words("With", lambda row: clean(row[1])),
        digits("At best", itemgetter(2)),
        words("By", lambda row: clean(row[3])),
        code("Cell", lambda row: clean(row[4])),
    ]
    return table(rows, columns, caption="What the bounds in this report are made of") if rows else None


def _name(value: BenchmarkValue) -> str:
    # Logs of several systems are no repeats of each other.
    origin = value.system if value.stage == "ingest" else ""
    label = " ".join(dict.fromkeys(value.label.split()))
    parts = [value.benchmark, value.variant, label, value.options, value.placement, origin]
    if value.threads is not None:
        parts.append(count(value.threads, "thread"))
    return clean(" · ".join(part for part in parts if part))


def _where(values: Sequence[BenchmarkValue]) -> str:
    known = sorted({value.where for value in values if value.where})
    return clean(", ".join(known[:3]) or values[0].cell_id)


def _chart(context: Context, stage: str, name: str, of: str, values: list[BenchmarkValue]) -> Part:
    # Numbers in other units than the first cannot stand on the same axis.
    unit = min(value.unit for value in values)
    values = [value for value in values if value.unit == unit]
    scale = scale_for([value.value for value in values], unit)

    def numbers(runs: Sequence[BenchmarkValue]) -> list[float]:
        return [value.value / scale.factor for value in runs if value.value is not None]

    def dot(runs: Sequence[BenchmarkValue]) -> Dot:
        given = numbers(runs)
        return Dot(
            label=_name(runs[0]),
            value=median(given),
            low=min(given),
            high=max(given),
            points=given,
            style=context.styles.get(runs[0].benchmark),
            right=number(median(given)),
        )

    def ends(runs: Sequence[BenchmarkValue]) -> str:
        return f"{number(min(numbers(runs)))} – {number(max(numbers(runs)))}"

    known, label = METRICS[name], name.replace("_", " ")
    origin = "measured here" if stage == "bench" else "from logs"
    better = {"higher": ", more is better", "lower": ", less is better"}.get(known.direction.value, "")
    given = [value.value for value in values if value.value is not None]
    best = min(given) if known.direction is Direction.LOWER else max(given)
    return dot_chart(
        list(grouped(values, _name).values()),
        dot,
        [
            words("Run", lambda runs: _name(runs[0])),
            digits(f"Median ({scale.unit or 'value'})", lambda runs: median(numbers(runs))),
            digits("Range", ends),
            digits("Runs", len),
            code("From", _where),
        ],
        title=f"{label.capitalize()}, {origin}: {quantity(best, unit)} at best",
        axis=f"{label} ({scale.unit}){better}",
        name="-".join(filter(None, (stage, name, of))),
        most=_MAX_DOTS,
        cut="later",
        notes=[known.description.capitalize()],
    )


def _runs(values: Sequence[BenchmarkValue], *, caption: str = "", folded: str = "") -> Table:
    """List runs, with one number of each: the first that has a metric of the registry, or else the first."""
    runs = grouped(sorted(values, key=lambda value: value.name not in METRICS), lambda value: value.run)
    one_each = {id(members[0]) for members in runs.values()}

    def status(value: BenchmarkValue) -> Chip:
        return Chip(
            clean(value.status), "bad" if not value.valid else "warn" if value.status == "suspicious" else "good"
        )

    columns = [
        words("Benchmark", _name),
        words("Version", lambda value: clean(value.version) or "–"),
        words("Metric", lambda value: clean(value.name) or "–"),
        digits("Value", lambda value: quantity(value.value, value.unit)),
        code("Where", lambda value: clean(value.where) or value.cell_id),
        words("Status", status),
        words(
            "Reason and warnings", lambda value: clean("; ".join(filter(None, (value.reason, *value.warnings)))) or "–"
        ),
    ]
    return table([value for value in values if id(value) in one_each], columns, caption=caption, folded=folded)
