"""What a report says of toys."""

from __future__ import annotations

from transect.report.blocks import Body, digits, table, words
from transect.report.context import Context
from transect.report.parts import Section, StageReport


def toys(context: Context) -> Body | None:
    """List the norms."""
    groups = context.of("toy")
    if not groups:
        return None
    columns = [
        words("Weights of", lambda group: f"{group.cell.workload} by {group.cell.framework}"),
        digits("Order", lambda group: str(group.cell.order)),
        digits("Norm", lambda group: f"{group.values('toy_norm')[0]:.3f}"),
    ]
    return Body(lead="How large trained weights are.", blocks=[table(groups, columns)])


REPORT = StageReport(sections=(Section(key="toys", title="Norms of toys", order=450, make=toys),))
