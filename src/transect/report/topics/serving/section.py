"""Section: every model under every runtime, what a call takes there, and what its time is made of."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from transect.analysis.groups import grouped
from transect.analysis.labels import people_name
from transect.analysis.serving import RUN, WHOLE, InferGroup, base_point, comparable, identity_size, rates, run_includes
from transect.report.engine.blocks import Column, Heading, Lead, Part, digits, note, table, words
from transect.report.engine.charts.chart import MAX_DRAWN, MAX_PANELS, dot_chart
from transect.report.engine.charts.marks import Dot
from transect.report.engine.charts.plots import log_is_better
from transect.report.engine.columns import medians, metric_columns, ranked
from transect.report.engine.context import Context
from transect.report.engine.finding import median, names
from transect.report.engine.text import clean, count, in_unit, scale_for
from transect.report.topics.pictures.words import best_of, who_is_first
from transect.report.topics.serving.calls import call_blocks, option_blocks
from transect.report.topics.serving.conditions import condition_blocks
from transect.report.topics.serving.facts import Measure, faithful_groups, measure_for, place_of
from transect.report.topics.serving.load import load_blocks
from transect.report.topics.serving.matrix import matrix_blocks
from transect.stats.samples import quantile

# A percentile needs samples beyond it.
_BEYOND = 20
_DECADE = 10.0
_READING = (
    "In charts of latency the symbol is the median of the runs' medians, the thick line the middle half of all samples, "
    "the thin one the least sample to the 95th percentile, where 400 samples or more support one."
)


def runtimes_body(context: Context) -> Iterator[Part]:
    """Draw matrix, distributions, what calls take, load and conditions, from right results only."""
    of_workload = {name: faithful_groups(context, name) for name in context.workloads("infer")}
    right = [group.cell for groups in of_workload.values() for group in groups]
    runtimes, models = len({cell.runtime for cell in right}), len({cell.workload for cell in right})
    lead = f"{count(runtimes, 'runtime')} executed {count(models, 'model')} with right results. " if right else ""
    yield Lead(
        f"{lead}Compared is Run alone where all do the same in it, else whole calls (bind, Run and copy), with equal "
        "session options."
    )
    yield from matrix_blocks(context)
    if right:
        yield note(_READING)
    real = [name for name in of_workload if identity_size(name) is None]
    for workload in real[:MAX_PANELS]:
        for where, groups in comparable(of_workload[workload]).items():
            yield Heading(f"{workload} on {where}")
            yield from _panels(context, re.sub(r"[^A-Za-z0-9.-]+", "-", f"{workload}-{where}"), groups)
            yield _made_of(groups)
    if undrawn := real[MAX_PANELS:]:
        yield note(f"Not drawn: {names(undrawn, 20)}. The matrix has their ratios, and records.parquet all numbers.")
    yield from call_blocks(context)
    yield from option_blocks(context)
    yield from load_blocks(context)
    yield from condition_blocks(context)


def _panels(context: Context, name: str, groups: list[InferGroup]) -> Iterator[Part]:
    """Draw a chart of latencies per batch, all by one measure, of which the runtimes beside each other do the same work."""
    measure = measure_for(groups)
    for batch, same in sorted(grouped(groups, lambda group: group.cell.batch).items())[:MAX_PANELS]:
        yield _latency(context, f"latency-{name}-{batch}", batch, same, measure)


@dataclass(frozen=True, kw_only=True)
class _Latency:
    """A group with all its samples of a measure, where they are kept, and the ends of its median."""

    group: InferGroup
    low: float
    value: float
    high: float
    samples: list[float]

    def percentile(self, share: float) -> float | None:
        """Return a percentile that has enough samples beyond it, or None."""
        enough = len(self.samples) * (1 - share) >= _BEYOND - 1e-9
        return quantile(self.samples, share) if enough else None


def _told(context: Context, group: InferGroup, measure: str, *, is_drawn: bool) -> _Latency:
    """Read the samples of what is drawn again from the records, and of nothing else."""
    read = (context.originals.samples(record, measure) for record in group.ok) if is_drawn else ()
    samples, summary = [value for values in read for value in values], group.summary(measure)
    if summary is None:
        raise ValueError(f"{group.cell.id}: ranked by {measure}, which it lacks")
    low = min(samples, default=summary.low)
    return _Latency(group=group, low=low, value=summary.median, high=summary.high, samples=samples)


def _latency(context: Context, name: str, batch: int, groups: list[InferGroup], measure: Measure) -> Part:
    first = ranked(groups, measure.name)
    cells = [group.cell for group in first]
    scale = scale_for([median(group, measure.name) for group in first], "s")
    rows = [_told(context, group, measure.name, is_drawn=place < MAX_DRAWN) for place, group in enumerate(first)]

    def label(row: _Latency) -> str:
        return clean(people_name(row.group.cell, cells))

    def end(row: _Latency) -> float:
        """Where the line ends at the right: as far as samples tell."""
        return row.percentile(0.95) or (quantile(row.samples, 0.75) if row.samples else row.high)

    where = place_of(first[0]) if len({cell.threads for cell in cells}) == 1 else f"batch {batch}"
    seen = who_is_first(best_of(context, groups, measure.name), groups)
    if not seen and (whole := who_is_first(best_of(context, groups, WHOLE), groups)):
        seen = f"{whole}, in whole calls"
    title = f"{where.capitalize()}: {seen or 'time of a call'}"
    columns = [
        words("Point", label),
        *metric_columns(measure.name, scale),
        digits("Samples", lambda row: len(row.samples) or None),
        digits(f"95th percentile ({scale.unit})", lambda row: row.percentile(0.95), scale),
        digits(f"99th percentile ({scale.unit})", lambda row: row.percentile(0.99), scale),
        digits(
            "Samples/s", lambda row: statistics.median(found) if (found := rates(row.group, measure.name)) else None
        ),
        *measure.columns,
    ]

    def dot(row: _Latency) -> Dot:
        inner = [quantile(row.samples, share) / scale.factor for share in (0.25, 0.75)] if row.samples else []
        return Dot(
            label=label(row),
            value=row.value / scale.factor,
            low=row.low / scale.factor,
            high=end(row) / scale.factor,
            inner=(inner[0], inner[1]) if inner else None,
            style=context.style(row.group),
            right=f"{scale.text(row.value)} {scale.unit}",
            count=len(row.group.values(measure.name)),
            ends="of all calls",
        )

    log = log_is_better([value for row in rows[:MAX_DRAWN] for value in (row.low, row.value, end(row))], _DECADE)
    return dot_chart(
        rows,
        dot,
        columns,
        title=title,
        name=name,
        log=log,
        axis=f"{measure.call} ({scale.unit}{', log scale' if log else ''}), shorter is better",
        notes=[measure.note],
    )


def _made_of(groups: Sequence[InferGroup]) -> Part:
    """List what serving takes from the start on, at the smallest batch and with the fewest threads."""
    first = [group for group in base_point(groups) if group.values(RUN)]
    rows = sorted(first, key=lambda group: (median(group, WHOLE) or 0.0, group.cell.id))
    cells, time, size = [group.cell for group in rows], in_unit("s"), in_unit("B")
    runtime: Column[InferGroup] = words("Runtime", lambda group: clean(people_name(group.cell, cells)))
    columns: list[Column[InferGroup]] = [
        medians("Start to first result", "first_result_time", time),
        medians("Session", "session_time", time),
        medians("Bind", "bind_time", time),
        medians("Run", RUN, time),
        medians("Copy", "copy_time", time),
        medians("End to end", WHOLE, time),
        medians("Peak memory", "peak_memory", size),
        medians("Program and libraries", "program_bytes", size),
        words("Run includes", lambda group: ", ".join(run_includes(group)) or None),
    ]
    told = [column for column in columns if any(column.value(group) is not None for group in rows)]
    return (
        table(rows, [runtime, *told], caption=f"What serving takes, at {place_of(rows[0])}") if len(told) > 1 else None
    )
