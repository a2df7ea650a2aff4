"""Section: what the hardware gives, from benchmarks run here and from logs that were read."""

from __future__ import annotations

import statistics
from collections import defaultdict

from transect.analysis.benchmark_table import best_values, refusals, series_of
from transect.analysis.hardware import BenchmarkValue, benchmark_values
from transect.domain.metrics import METRICS
from transect.report.blocks import Block, Chart, Charts, Chip, Column, Prose, Section, Table, Value
from transect.report.charts.plots import Dot, dot_plot
from transect.report.charts.theme import render
from transect.report.context import Context
from transect.report.sections.systems import (
    IO500,
    io500_charts,
    scaling_charts,
    systems_blocks,
)
from transect.report.text import clean, count, number, quantity, scale_for

__all__ = ["hardware_section"]

_MOST_DOTS = 16
_MOST_BAD = 24
_MOST_NUMBERS = 400
# Times over many sizes: section "Communication" draws them as curves.
_CURVES = ("message_time", "allreduce_time")


def hardware_section(context: Context) -> Section:
    """Lay systems beside each other, draw valid values, list every run with its validity."""
    values = benchmark_values(context.records)
    blocks: list[Block] = systems_blocks(values)
    charts = [*scaling_charts(values), *io500_charts(values)]
    refused = {
        series_of(one) for refusal in refusals(best_values(values)) for one in refusal.values
    }
    for stage, origin in (("bench", "measured here"), ("ingest", "from logs")):
        # Numbers in units of their own cannot stand on a common axis: they are in the table.
        names = {v.name for v in values if v.stage == stage and v.name in METRICS}
        for name in sorted(names - set(_CURVES)):
            chart = _chart(context, stage, origin, name, values, refused)
            if chart is not None:
                charts.append(chart)
    if charts:
        blocks.append(Charts(items=charts))
    bad = _one_each([value for value in values if not value.valid])
    if bad:
        title = "Runs that are not valid: their numbers are in no chart"
        blocks.append(_runs(bad, title, folded=len(bad) > _MOST_BAD))
    logs = [value for value in values if value.valid and value.stage == "ingest"]
    if len(logs) > _MOST_NUMBERS:
        blocks.append(
            _runs(_one_each(logs), "Runs read from logs, one number of each", folded=True)
        )
    elif logs:
        blocks.append(_runs(logs, "Runs read from logs", folded=True))
    if not values:
        blocks.append(
            Prose("No benchmark ran and no log was read: there are no bounds.", quiet=True)
        )
    lead = (
        "Rates of this machine bound what any framework can reach on it. A run counts as valid "
        "only if the benchmark's own check passed. For logs, a system is the folder below the path "
        "that was read, or the file."
    )
    return Section(id="hardware", title="Hardware", lead=lead, blocks=blocks)


def _one_each(values: list[BenchmarkValue]) -> list[BenchmarkValue]:
    """Keep one value of each run: the first that has a metric of the registry, or else the first."""
    found: dict[str, BenchmarkValue] = {}
    for value in sorted(values, key=lambda one: one.name not in METRICS):
        found.setdefault(value.run, value)
    return [value for value in values if found[value.run] is value]


def _name(value: BenchmarkValue) -> str:
    # Logs of several systems are no repeats of each other.
    origin = value.system if value.stage == "ingest" else ""
    parts = [value.benchmark, value.variant, value.label, value.options, value.placement, origin]
    if value.threads is not None:
        parts.append(count(value.threads, "thread"))
    return clean(" · ".join(part for part in parts if part))


def _chart(context: Context, stage: str, origin: str, name: str, values: list[BenchmarkValue],
           refused: set[tuple[str, str, str]]) -> Chart | None:  # fmt: skip
    grouped: dict[tuple[str, str], list[BenchmarkValue]] = defaultdict(list)
    for value in values:
        if value.benchmark == IO500 or series_of(value) in refused:
            continue  # its phases have charts of their own; what is not compared is not drawn
        if value.size is not None and value.stage == "ingest":
            continue  # points of curves over message sizes
        if (value.stage, value.name, value.valid) == (stage, name, True) and value.value:
            grouped[(_name(value), value.unit)].append(value)
    if not grouped:
        return None
    units = {unit for _, unit in grouped}
    unit = sorted(units)[0]
    usable = {key: members for key, members in grouped.items() if key[1] == unit}
    scale = scale_for([v.value for members in usable.values() for v in members], unit)
    dots, rows = [], []
    for (label, _), members in usable.items():
        numbers = [v.value / scale.factor for v in members if v.value is not None]
        middle = statistics.median(numbers)
        dots.append(
            Dot(
                label=label, value=middle, low=min(numbers), high=max(numbers), points=numbers,
                style=context.styles.get(members[0].benchmark), right=f"{number(middle)}",
            )
        )  # fmt: skip
        where = ", ".join(sorted({v.where for v in members if v.where})) or members[0].cell_id
        rows.append([label, number(middle), f"{number(min(numbers))} – {number(max(numbers))}",
                     str(len(numbers)), clean(where)])  # fmt: skip
    columns = [
        Column("Run"), Column(f"Median ({scale.unit or 'value'})", numeric=True),
        Column("Range", numeric=True), Column("Runs", numeric=True), Column("From", code=True),
    ]  # fmt: skip
    known = METRICS.get(name)
    title = f"{name.replace('_', ' ').capitalize()}, {origin}"
    better = f", {known.direction} is better" if known and known.direction != "neutral" else ""
    drawing = dot_plot(dots[:_MOST_DOTS], title=f"{name.replace('_', ' ')} ({scale.unit}){better}")
    cut = (
        f"The first {_MOST_DOTS} of {len(dots)} runs are drawn. " if len(dots) > _MOST_DOTS else ""
    )
    return Chart(
        title=title,
        svg=render(drawing, name=f"{stage}-{name}",
                   alt_text=f"{title}: {len(dots)} kinds of run; {dots[0].label} gives "
                   f"{number(dots[0].value)} {scale.unit}."),
        alt=known.description if known else title,
        note=f"{cut}{known.description.capitalize() if known else ''}".strip(),
        table=Table(columns=columns, rows=rows, folded="Numbers"),
    )  # fmt: skip


def _runs(values: list[BenchmarkValue], title: str, *, folded: bool = False) -> Table:
    columns = [
        Column("Benchmark"), Column("Version"), Column("Metric"), Column("Value", numeric=True),
        Column("Where", code=True), Column("Status"), Column("Reason and warnings"),
    ]  # fmt: skip
    rows: list[list[Value]] = []
    for value in values:
        reason = "; ".join(part for part in (value.reason, *value.warnings) if part)
        rows.append([
            _name(value), clean(value.version) or "–", clean(value.name) or "–",
            quantity(value.value, value.unit), clean(value.where) or value.cell_id,
            Chip(clean(value.status), "good" if value.valid else "bad"), clean(reason) or "–",
        ])  # fmt: skip
    return Table(
        columns=columns, rows=rows, caption="" if folded else title, folded=title if folded else ""
    )
