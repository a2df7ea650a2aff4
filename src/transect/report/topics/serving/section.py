"""Section: every model under every runtime, and what the runtimes' times are made of."""

from __future__ import annotations

import re
from collections.abc import Iterator

from transect.analysis.serving import InferGroup, comparable, identity_size
from transect.report.engine.blocks import Heading, Lead, Part, note
from transect.report.engine.charts.chart import MAX_PANELS
from transect.report.engine.context import Context
from transect.report.engine.finding import names
from transect.report.engine.text import count
from transect.report.topics.serving.breakdown import breakdown
from transect.report.topics.serving.calls import call_blocks
from transect.report.topics.serving.conditions import condition_blocks
from transect.report.topics.serving.facts import faithful_groups
from transect.report.topics.serving.latency import latency_charts
from transect.report.topics.serving.load import load_blocks
from transect.report.topics.serving.matrix import matrix_blocks
from transect.report.topics.serving.options import option_table

_READING = (
    "In charts of latency the symbol is the median of the runs' medians, the thick line the middle half of all samples, "
    "the thin one the least sample to the 95th percentile, where 400 samples or more support one."
)


def runtimes_body(context: Context) -> Iterator[Part]:
    """Draw matrix, distributions, ratios, breakdown, load and calls, from right results only."""
    of_workload = {name: faithful_groups(context, name) for name in context.workloads("infer")}
    right = [group.cell for groups in of_workload.values() for group in groups]
    runtimes, models = len({cell.runtime for cell in right}), len({cell.workload for cell in right})
    lead = f"{count(runtimes, 'runtime')} executed {count(models, 'model')} with right results. " if right else ""
    yield Lead(
        f"{lead}Compared is Run alone where all do the same in it, else whole calls (bind, Run and copy), with equal "
        "session options."
    )
    yield from matrix_blocks(context)
    if any(of_workload.values()):
        yield note(_READING)
    real = [name for name in of_workload if identity_size(name) is None]
    for workload, groups in of_workload.items():
        if workload in real[:MAX_PANELS]:
            yield from _workload(context, workload, groups)
    undrawn = real[MAX_PANELS:]
    if undrawn:
        yield note(f"Not drawn: {names(undrawn, 20)}. The matrix has their ratios, and records.parquet all numbers.")
    yield from call_blocks(context)
    options = list(option_table(context))
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
        yield breakdown(context, name, members)
