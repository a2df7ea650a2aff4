"""What a report says of toys."""

from __future__ import annotations

from collections.abc import Iterator

from transect.report.engine.blocks import Lead, Part, digits, table, words
from transect.report.engine.context import Context
from transect.report.engine.parts import Section, StageReport


def toys(context: Context) -> Iterator[Part]:
    """List the norms; a cell that failed has none."""
    groups = context.of("toy")
    columns = [
        words("Weights of", lambda group: f"{group.cell.workload} by {group.cell.framework}"),
        digits("Order", lambda group: group.cell.order),
        digits("Norm", lambda group: next(iter(group.values("toy_norm")), None)),
    ]
    if groups:
        yield Lead("How large trained weights are.")
        yield table(groups, columns)


REPORT = StageReport(sections=(Section(key="toys", title="Norms of toys", order=450, make=toys),))
