"""Section: training speed beside its bound, and what a step is made of, per workload."""

from __future__ import annotations

from collections.abc import Iterator

from transect.analysis.kinds import compared, kinds_of, main_kind
from transect.report.engine.blocks import Heading, Lead, Part, note
from transect.report.engine.context import Context
from transect.report.topics.training.throughput import split_chart, throughput_chart


def speed_body(context: Context) -> Iterator[Part]:
    """Draw each workload's training cells."""
    yield Lead(
        "Samples per second of each way to train, with the accuracy that it reached at the right, and what its steps are "
        "made of.",
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
                if any(group.over_subscribed for group in groups):
                    yield note("Hollow symbols: more ranks than the machine has cores, no claim.")
                if len({group.cell.nodes for group in groups}) > 1:
                    yield note("2x4 ranks are 2 nodes with 4 ranks on each.")
                yield throughput_chart(context, workload, groups)
                yield split_chart(context, workload, groups)
            elif len(groups) > 1:
                # A cell alone has its table, under Frameworks side by side.
                yield Heading(f"{workload}, with {kind.words}")
                yield throughput_chart(context, workload, groups)
