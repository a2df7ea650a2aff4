"""Section: what the hardware gives, from benchmarks run here and from logs that were read."""

from __future__ import annotations

import statistics
from collections import defaultdict

from transect.analysis.hardware import BenchmarkValue, benchmark_values
from transect.domain.metrics import METRICS
from transect.report.blocks import Block, Chart, Charts, Chip, Column, Prose, Section, Table, Value
from transect.report.charts.plots import Dot, dot_plot
from transect.report.charts.theme import render
from transect.report.context import Context
from transect.report.text import clean, count, number, quantity, scale_for

__all__ = ["hardware_section"]

_MOST_DOTS = 24
# Times over many sizes: section "Communication" draws them as curves.
_CURVES = ("message_time", "allreduce_time")


def hardware_section(context: Context) -> Section:
    """Draw valid benchmark values by metric; list every run with its validity."""
    values = benchmark_values(context.records)
    blocks: list[Block] = []
    charts = []
    for stage, origin in (("bench", "measured here"), ("ingest", "from logs")):
        # Numbers in units of their own cannot stand on a common axis: they are in the table.
        names = {v.name for v in values if v.stage == stage and v.name in METRICS}
        for name in sorted(names - set(_CURVES)):
            chart = _chart(context, stage, origin, name, values)
            if chart is not None:
                charts.append(chart)
    if charts:
        blocks.append(Charts(items=charts))
    bad = [value for value in values if not value.valid]
    if bad:
        blocks.append(_runs(bad, "Runs that are not valid: their numbers are in no chart"))
    logs = [value for value in values if value.valid and value.stage == "ingest"]
    if logs:
        blocks.append(_runs(logs, "Runs read from logs", folded=True))
    if not values:
        blocks.append(
            Prose("No benchmark ran and no log was read: there are no bounds.", quiet=True)
        )
    lead = (
        "Rates of this machine bound what any framework can reach on it. A run counts as valid "
        "only if the benchmark's own check passed."
    )
    return Section(id="hardware", title="Hardware", lead=lead, blocks=blocks)


def _name(value: BenchmarkValue) -> str:
    parts = [value.benchmark, value.variant, value.label, value.placement]
    if value.threads is not None:
        parts.append(count(value.threads, "thread"))
    return clean(" · ".join(part for part in parts if part))


def _chart(context: Context, stage: str, origin: str, name: str,
           values: list[BenchmarkValue]) -> Chart | None:  # fmt: skip
    grouped: dict[tuple[str, str], list[BenchmarkValue]] = defaultdict(list)
    for value in values:
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
