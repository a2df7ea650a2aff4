"""Section: training speed, its bound and its parts, per workload, beside the quality reached."""

from __future__ import annotations

from transect.analysis.groups import Group
from transect.analysis.kinds import compared, kinds_of, main_kind
from transect.report.blocks import Block, Body, Charts, Heading, Prose
from transect.report.context import Context
from transect.report.sections.loss import loss_charts
from transect.report.sections.scaling import scaling_blocks
from transect.report.sections.throughput import quality_chart, split_chart, throughput_chart

__all__ = ["speed_body"]


def speed_body(context: Context) -> Body:
    """Draw each workload's training cells."""
    blocks: list[Block] = []
    for workload in context.workloads("train"):
        blocks += [Heading(workload), *_workload(context, workload)]
    if not blocks:
        blocks.append(Prose("This study has no training cells.", quiet=True))
    lead = (
        "Dots are repeats, the symbol is their median, the thin line their range, or their 95 % "
        "interval from six repeats on. The percentage at the right is the accuracy reached: "
        "speed without quality says nothing. Synthetic input and sums of gradients stand beside "
        "their twins, under Frameworks side by side; every other kind of training has charts of "
        "its own."
    )
    return Body(lead=lead, blocks=blocks)


def _workload(context: Context, workload: str) -> list[Block]:
    right = compared([g for g in context.of("train", workload) if g.ok and not g.wrong])
    main = main_kind(right)
    usable = [group for group in right if group.kind == main]
    if not usable:
        return [Prose("No training cell ended well.", quiet=True)]
    blocks: list[Block] = []
    over = sum(group.over_subscribed for group in usable)
    if over:
        text = (
            f"Hollow symbols: {over} of {len(usable)} points ran more ranks than the "
            "machine has cores. They are shown, and carry no claim about scaling."
        )
        blocks.append(Prose(text, quiet=True))
    if len({group.cell.nodes for group in usable}) > 1:
        blocks.append(Prose("2x4 ranks are 2 nodes with 4 ranks on each.", quiet=True))
    makers = [throughput_chart, split_chart]
    if not main.synthetic:
        makers.insert(0, quality_chart)
    charts = [make(context, workload, usable) for make in makers]
    scaling, tables = scaling_blocks(context, workload, usable)
    every = [chart for chart in (*charts, *scaling) if chart is not None]
    blocks += [Charts(items=[*every, *loss_charts(context, workload, usable)]), *tables]
    for kind in kinds_of(right):
        if kind != main:
            blocks += _other(context, workload, [g for g in right if g.kind == kind])
    return blocks


def _other(context: Context, workload: str, groups: list[Group]) -> list[Block]:
    """Draw a kind of training that is not the workload's main one; a cell alone has its table."""
    if len(groups) < 2:
        return []
    charts = [make(context, workload, groups) for make in (quality_chart, throughput_chart)]
    every = [chart for chart in charts if chart is not None]
    return [Heading(f"{workload}, with {groups[0].kind.words}"), Charts(items=every)]
