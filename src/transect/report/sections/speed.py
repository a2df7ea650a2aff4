"""Section: training speed, its bound and its parts, per workload, beside the quality reached."""

from __future__ import annotations

from transect.report.blocks import Block, Chart, Charts, Heading, Prose, Section
from transect.report.context import Context
from transect.report.sections.loss import loss_charts
from transect.report.sections.scaling import scaling_blocks
from transect.report.sections.throughput import (
    quality_chart,
    split_chart,
    throughput_chart,
)

__all__ = ["speed_section"]


def speed_section(context: Context) -> Section:
    """Draw each workload's training cells."""
    blocks: list[Block] = []
    for workload in context.workloads("train"):
        blocks.append(Heading(workload))
        usable = [g for g in context.of("train", workload) if g.ok and not g.wrong]
        if not usable:
            blocks.append(Prose("No training cell ended well.", quiet=True))
            continue
        over = sum(group.over_subscribed for group in usable)
        if over:
            blocks.append(
                Prose(
                    f"Hollow symbols: {over} of {len(usable)} points ran more ranks than the "
                    "machine has cores. They are shown, and carry no claim about scaling.",
                    quiet=True,
                )
            )
        if len({group.cell.nodes for group in usable}) > 1:
            blocks.append(Prose("2x4 ranks are 2 nodes with 4 ranks on each.", quiet=True))
        makers = (quality_chart, throughput_chart, split_chart)
        charts = [make(context, workload, usable) for make in makers]
        scaling, tables = scaling_blocks(context, workload, usable)
        every: list[Chart] = [chart for chart in (*charts, *scaling) if chart is not None]
        every += loss_charts(context, workload, usable)
        blocks.append(Charts(items=every))
        blocks += tables
    if not blocks:
        blocks.append(Prose("This study has no training cells.", quiet=True))
    lead = (
        "Dots are repeats, the symbol is their median, the thin line their range, or their 95 % "
        "interval from six repeats on. The percentage at the right is the accuracy reached: "
        "speed without quality says nothing."
    )
    return Section(id="speed", title="Speed and scaling", lead=lead, blocks=blocks)
