"""Section: what the hardware gives, from benchmarks run here and from logs that were read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from transect.analysis.benchmark_table import best_values, refusals, series_of
from transect.analysis.hardware import BenchmarkValue
from transect.domain.metrics import METRICS
from transect.report.blocks import Body, Chip, Part, Table, code, digits, table, words
from transect.report.charts.chart import dot_chart
from transect.report.charts.plots import Dot
from transect.report.context import Context
from transect.report.sections.systems import (
    CURVES,
    IO500,
    io500_charts,
    scaling_charts,
    systems_blocks,
)
from transect.report.text import clean, count, number, quantity, scale_for

__all__ = ["hardware_body"]

_MOST_DOTS = 16
_MOST_BAD = 24
_MOST_NUMBERS = 400


def hardware_body(context: Context) -> Body:
    """Lay systems beside each other, draw valid values, list every run with its validity."""
    lead = (
        "Rates of this machine bound what any framework can reach on it. A run counts as valid "
        "only if the benchmark's own check passed. For logs, a system is the folder below the path "
        "that was read, or the file."
    )
    nothing = "No benchmark ran and no log was read: there are no bounds."
    return Body.of(lead, _parts(context), empty=nothing)


def _parts(context: Context) -> Iterator[Part]:
    values = context.benchmark_values
    best = best_values(values)
    yield from systems_blocks(best)
    yield from scaling_charts(values)
    yield from io500_charts(values)
    refused = {series_of(value) for refusal in refusals(best) for value in refusal.values}
    drawable: dict[tuple[str, str], list[BenchmarkValue]] = defaultdict(list)
    for value in values:
        # IO500's phases have charts of their own; what is not compared is not drawn; numbers in
        # units of their own cannot stand on a common axis; points over sizes belong to curves.
        if (
            value.valid and value.value and value.name in METRICS and value.name not in CURVES
            and value.benchmark != IO500 and series_of(value) not in refused
            and (value.size is None or value.stage != "ingest")
        ):  # fmt: skip
            drawable[value.stage, value.name].append(value)
    for (stage, name), drawn in sorted(drawable.items()):
        yield _chart(context, stage, name, drawn)
    bad = _one_each([value for value in values if not value.valid])
    if bad:
        title = "Runs that are not valid: their numbers are in no chart"
        yield _runs(bad, folded=title) if len(bad) > _MOST_BAD else _runs(bad, caption=title)
    logs = [value for value in values if value.valid and value.stage == "ingest"]
    if len(logs) > _MOST_NUMBERS:
        yield _runs(_one_each(logs), folded="Runs read from logs, one number of each")
    elif logs:
        yield _runs(logs, folded="Runs read from logs")


def _one_each(values: list[BenchmarkValue]) -> list[BenchmarkValue]:
    """Keep one value of each run: the first that has a metric of the registry, or else the first."""
    kept: dict[str, BenchmarkValue] = {}
    for value in sorted(values, key=lambda value: value.name not in METRICS):
        kept.setdefault(value.run, value)
    return [value for value in values if kept[value.run] is value]


def _name(value: BenchmarkValue) -> str:
    # Logs of several systems are no repeats of each other.
    origin = value.system if value.stage == "ingest" else ""
    parts = [value.benchmark, value.variant, value.label, value.options, value.placement, origin]
    if value.threads is not None:
        parts.append(count(value.threads, "thread"))
    return clean(" · ".join(part for part in parts if part))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Runs:
    """Runs of one kind with their numbers in the chart's unit."""

    label: str
    values: list[BenchmarkValue]
    numbers: list[float]

    @property
    def where(self) -> str:
        known = sorted({value.where for value in self.values if value.where})
        return clean(", ".join(known[:3]) or self.values[0].cell_id)


def _chart(context: Context, stage: str, name: str, values: list[BenchmarkValue]) -> Part:
    # Numbers in other units than the first cannot stand on the same axis.
    unit = min(value.unit for value in values)
    alike: dict[str, list[BenchmarkValue]] = defaultdict(list)
    for value in values:
        if value.unit == unit:
            alike[_name(value)].append(value)
    scale = scale_for([v.value for members in alike.values() for v in members], unit)
    rows = [
        _Runs(
            label=label, values=members,
            numbers=[value.value / scale.factor for value in members if value.value is not None],
        )
        for label, members in alike.items()
    ]  # fmt: skip
    known, said = METRICS[name], name.replace("_", " ")
    origin = "measured here" if stage == "bench" else "from logs"
    better = f", {known.direction} is better" if known.direction != "neutral" else ""
    return dot_chart(
        rows,
        lambda row: Dot(
            label=row.label, value=median(row.numbers), low=min(row.numbers),
            high=max(row.numbers), points=row.numbers,
            style=context.styles.get(row.values[0].benchmark), right=number(median(row.numbers)),
        ),
        [
            words("Run", lambda row: row.label),
            digits(f"Median ({scale.unit or 'value'})", lambda row: median(row.numbers)),
            digits("Range", lambda row: f"{number(min(row.numbers))} – {number(max(row.numbers))}"),
            digits("Runs", lambda row: len(row.numbers)), code("From", lambda row: row.where),
        ],
        title=f"{said.capitalize()}, {origin}", axis=f"{said} ({scale.unit}){better}",
        name=f"{stage}-{name}", first="First", unit=scale.unit, most=_MOST_DOTS, cut="later",
        notes=[known.description.capitalize()],
    )  # fmt: skip


def _runs(values: list[BenchmarkValue], **titles: str) -> Table:
    def reason(value: BenchmarkValue) -> str:
        return clean("; ".join(part for part in (value.reason, *value.warnings) if part)) or "–"

    columns = [
        words("Benchmark", _name), words("Version", lambda value: clean(value.version) or "–"),
        words("Metric", lambda value: clean(value.name) or "–"),
        digits("Value", lambda value: quantity(value.value, value.unit)),
        code("Where", lambda value: clean(value.where) or value.cell_id),
        words("Status", lambda value: Chip(clean(value.status), "good" if value.valid else "bad")),
        words("Reason and warnings", reason),
    ]  # fmt: skip
    return table(values, columns, **titles)
