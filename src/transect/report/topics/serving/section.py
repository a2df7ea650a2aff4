"""Section: every model under every runtime, and what the runtimes' times are made of."""

from __future__ import annotations

import re
from collections.abc import Iterator

from transect.analysis.serving import InferGroup, comparable, identity_size
from transect.domain.record import Status
from transect.report.engine.blocks import Heading, Lead, Part, note
from transect.report.engine.charts.chart import MAX_PANELS
from transect.report.engine.context import Context
from transect.report.engine.finding import names
from transect.report.engine.text import count
from transect.report.topics.serving.breakdown import breakdown_chart, breakdown_table
from transect.report.topics.serving.calls import call_blocks
from transect.report.topics.serving.conditions import condition_blocks
from transect.report.topics.serving.findings import faithful_groups
from transect.report.topics.serving.latency import latency_charts
from transect.report.topics.serving.load import load_blocks
from transect.report.topics.serving.matrix import matrix_blocks
from transect.report.topics.serving.ratio import option_table, ratio_chart

_READING = (
    "In the latency charts the symbol is the median of the runs' medians, the thick line the "
    "middle half of all samples, the thin one the least sample to the 95th percentile, where 400 "
    "samples or more support one. A ratio is that of the trimmed geometric means of both sides' "
    "runs, with the 95 % interval that its verdict rests on, or the range where the noise is not known."
)


def runtimes_body(context: Context) -> Iterator[Part]:
    """Draw matrix, distributions, ratios, breakdown, load and calls, from right results only."""
    of_workload = {name: faithful_groups(context, name) for name in context.workloads("infer")}
    right = [group.cell for groups in of_workload.values() for group in groups]
    runtimes, models = len({cell.runtime for cell in right}), len({cell.workload for cell in right})
    lead = f"{count(runtimes, 'runtime')} executed {count(models, 'model')} with right results. " if right else ""
    yield Lead(
        f"{lead}Binding of inputs, the Run call, copying of outputs and session creation are timed apart. "
        "Runtimes are compared by Run alone where all of them do the same in it, and by whole calls "
        "(bind, Run and copy) where some bind or copy inside of Run; and with equal session "
        "options, unless a table says otherwise.",
        empty="No runtime was measured with a right result.",
    )
    yield from matrix_blocks(context)
    if any(of_workload.values()):
        yield note(_READING)
    real = [name for name in of_workload if identity_size(name) is None]
    for workload, groups in of_workload.items():
        if workload in real[:MAX_PANELS]:
            yield from _workload(context, workload, groups)
        yield _left_out(context, workload, groups)
    undrawn = real[MAX_PANELS:]
    if undrawn:
        yield note(f"Not drawn: {names(undrawn, 20)}. The matrix has their ratios, and records.parquet all numbers.")
    yield from call_blocks(context)
    every = [group for groups in of_workload.values() for group in groups]
    options = list(option_table(context, every))
    if options:
        yield Heading("Other session options")
        yield from options
    yield from load_blocks(context)
    conditions = list(condition_blocks(context))
    if conditions:
        yield Heading("Conditions and outputs")
        yield from conditions


def _workload(context: Context, workload: str, groups: list[InferGroup]) -> Iterator[Part]:
    for where, members in comparable(groups).items():
        yield Heading(f"{workload} on {where}")
        name = re.sub(r"[^A-Za-z0-9.-]+", "-", f"{workload}-{where}")
        yield from latency_charts(context, name, members)
        yield ratio_chart(context, name, members)
        yield breakdown_chart(context, name, members)
        yield from breakdown_table(members)


def _left_out(context: Context, workload: str, right: list[InferGroup]) -> Part:
    """Count what stands in no chart: wrong outputs, failures and skips."""
    every = context.of("infer", workload)
    wrong = sum(bool(g.ok or g.wrong) for g in every) - len(right)
    without = [g for g in every if not g.ok and not g.wrong]
    failed = sum(any(r.status is Status.FAILED for r in g.records) for g in without)
    parts = [
        f"{count(wrong, 'point')} left out: the output is not right" if wrong else "",
        f"{failed} failed" if failed else "",
        f"{len(without) - failed} skipped" if len(without) > failed else "",
    ]
    summary = "; ".join(part for part in parts if part)
    return note(f"{workload}: {summary}.") if summary else None
