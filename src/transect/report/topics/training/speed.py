"""Section: training speed, its bound and its parts, per workload, beside the quality reached."""

from __future__ import annotations

from collections.abc import Iterator

from transect.analysis.kinds import compared, kinds_of, main_kind
from transect.analysis.scaling import TrainGroup
from transect.report.engine.blocks import Heading, Lead, Part, note
from transect.report.engine.context import Context
from transect.report.engine.text import count
from transect.report.topics.training.throughput import both_table, quality_chart, split_chart, throughput_chart


def speed_body(context: Context) -> Iterator[Part]:
    """Draw each workload's training cells."""
    workloads = count(len(context.workloads("train")), "workload")
    yield Lead(
        f"{workloads}: how soon each way to train reaches the target, and how many samples/s it trains. Dots are repeats, the symbol is their median, the thin line their range, or their 95 % "
        "interval from six repeats on. The percentage at the right is the accuracy reached: "
        "speed without quality says nothing. Synthetic input and sums of gradients stand beside "
        "their twins, under Frameworks side by side; every other kind of training has charts of "
        "its own.",
        empty="This study has no training cells.",
    )
    for workload in context.workloads("train"):
        yield Heading(workload)
        right = compared([g for g in context.of("train", workload) if g.ok and not g.wrong])
        if not right:
            yield note("No training cell ended well.")
        main = main_kind(right)
        for kind in kinds_of(right):
            groups = [group for group in right if group.kind == kind]
            if kind == main:
                yield from _main(context, workload, groups)
            elif len(groups) > 1:
                # A cell alone has its table, under Frameworks side by side.
                yield Heading(f"{workload}, with {kind.words}")
                yield quality_chart(context, workload, groups)
                yield throughput_chart(context, workload, groups)


def _main(context: Context, workload: str, groups: list[TrainGroup]) -> Iterator[Part]:
    over = sum(group.over_subscribed for group in groups)
    if over:
        yield note(
            f"Hollow symbols: {over} of {len(groups)} points ran more ranks than the "
            "machine has cores. They are shown, and carry no claim about scaling."
        )
    if len({group.cell.nodes for group in groups}) > 1:
        yield note("2x4 ranks are 2 nodes with 4 ranks on each.")
    if not groups[0].kind.synthetic:
        yield quality_chart(context, workload, groups)
    yield throughput_chart(context, workload, groups)
    yield split_chart(context, workload, groups)
    if not groups[0].kind.synthetic:
        yield both_table(workload, groups)
