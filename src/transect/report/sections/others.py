"""Section: cells of stages that bring no section of their own, or that are not installed here."""

from __future__ import annotations

from dataclasses import dataclass

from transect.analysis.groups import Group
from transect.analysis.labels import group_labels
from transect.analysis.statistics import Summary
from transect.report.blocks import Block, Body, Chip, Heading, Prose, digits, table, words
from transect.report.context import Context
from transect.report.text import clean, number, scale_for, spread

__all__ = ["others_body"]


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


def others_body(context: Context, brought: frozenset[str]) -> Body | None:
    """List the metrics of all stages but those that `brought` a `report.py`; None without any."""
    blocks: list[Block] = []
    for stage in context.stages:
        if stage not in brought:
            blocks += [Heading(clean(stage)), *_stage(context.of(stage))]
    if not blocks:
        return None
    lead = (
        "Stages without sections of their own, or that this installation does not have: what their "
        "records hold, medians over repeats."
    )
    return Body(lead=lead, blocks=blocks)


def _stage(groups: list[Group]) -> list[Block]:
    labels = group_labels(groups)
    rows = [row for group in groups for row in _numbers(group)]

    def value(row: _Number) -> str:
        if row.summary is None:
            return "–"
        scale = scale_for([row.summary.median], row.unit)
        return f"{scale.text(row.summary.median)} {scale.unit}".strip()

    def ends(row: _Number) -> str:
        return (
            spread(row.summary, scale_for([row.summary.median], row.unit)) if row.summary else "–"
        )

    def outcome(row: _Number) -> Chip | None:
        ended, every = len(row.group.ok), len(row.group.records)
        return None if ended == every else Chip(f"{number(ended)} of {number(every)} ok", "warn")

    columns = [
        words("Cell", lambda row: clean(labels[row.group.cell])),
        words("Metric", lambda row: clean(" ".join(filter(None, (row.name, row.label)))) or "–"),
        digits("Median", value), digits("Range or interval", ends),
        digits("Runs", lambda row: str(row.summary.count) if row.summary else "0"),
        words("", outcome),
    ]  # fmt: skip
    return [table(rows, columns)] if rows else [Prose("No cell.", quiet=True)]


def _numbers(group: Group) -> list[_Number]:
    seen = {
        (one.name, one.label): _Number(group=group, name=one.name, unit=one.unit, label=one.label)
        for record in group.ok
        for one in record.metrics
    }
    return list(seen.values()) or [_Number(group=group)]
