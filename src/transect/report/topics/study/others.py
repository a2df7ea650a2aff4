"""Section: cells of stages that bring no section of their own, or that are not installed here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from transect.analysis.groups import Group
from transect.analysis.labels import group_labels
from transect.report.engine.blocks import Chip, Heading, Lead, Part, digits, table, words
from transect.report.engine.context import Context
from transect.report.engine.parts import all_parts
from transect.report.engine.text import clean, quantity, scale_for, spread
from transect.stats.samples import Summary


@dataclass(frozen=True, kw_only=True, slots=True)
class _Number:
    """One metric of one group; without any metric only the group."""

    group: Group
    name: str = ""
    unit: str = ""
    label: str | None = None

    @property
    def summary(self) -> Summary | None:
        return self.group.summary(self.name, self.label) if self.name else None


def others_body(context: Context) -> Iterator[Part]:
    """List the metrics of all stages that no topic is about; nothing without any."""
    brought = all_parts().stages
    stages = [stage for stage in context.stages if stage not in brought]
    if stages:
        yield Lead(
            "Stages without sections of their own, or that this installation does not have: what "
            "their records hold, medians over repeats."
        )
    for stage in stages:
        yield Heading(clean(stage))
        yield _stage(context.of(stage))


def _stage(groups: list[Group]) -> Part:
    labels = group_labels(groups)

    def median(row: _Number) -> str | None:
        return quantity(row.summary.median, row.unit) if row.summary else None

    def ends(row: _Number) -> str | None:
        if row.summary is None:
            return None
        return spread(row.summary, scale_for([row.summary.median], row.unit))

    def outcome(row: _Number) -> Chip | None:
        ended, every = len(row.group.ok), len(row.group.records)
        return None if ended == every else Chip(f"{ended} of {every} ok", "warn")

    return table(
        [row for group in groups for row in _numbers(group)],
        [
            words("Cell", lambda row: clean(labels[row.group.cell])),
            words("Metric", lambda row: clean(" ".join(filter(None, (row.name, row.label)))) or "–"),
            digits("Median", median),
            digits("Range or interval", ends),
            digits("Runs", lambda row: row.summary.count if row.summary else 0),
            words("", outcome),
        ],
    )


def _numbers(group: Group) -> list[_Number]:
    measured = (number for record in group.ok for number in record.metrics)
    seen = {
        (number.name, number.label): _Number(group=group, name=number.name, unit=number.unit, label=number.label)
        for number in measured
    }
    return list(seen.values()) or [_Number(group=group)]
