"""Section: cells of stages that bring no section of their own, or that are not installed here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transect.analysis.groups import Group
from transect.report.engine.blocks import Chip, Lead, Part, digits, table, words
from transect.report.engine.columns import labelled
from transect.report.engine.context import Context
from transect.report.engine.parts import all_parts
from transect.report.engine.text import clean, quantity, scale_for, spread


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
        yield _stage(clean(stage), context.of(stage))


def _stage(name: str, groups: Sequence[Group]) -> Part:
    label = labelled(groups)
    rows = [(group, key) for group in groups for key in _metrics(group)]

    def median(row: tuple[Group, tuple[str, str | None, str]]) -> str | None:
        group, (metric, label, unit) = row
        summary = group.summary(metric, label)
        return quantity(summary.median, unit) if summary else None

    def ends(row: tuple[Group, tuple[str, str | None, str]]) -> str | None:
        group, (metric, label, unit) = row
        summary = group.summary(metric, label)
        return spread(summary, scale_for([summary.median], unit)) if summary else None

    def outcome(group: Group) -> Chip | None:
        ended, every = len(group.ok), len(group.records)
        return None if ended == every else Chip(f"{ended} of {every} ok", "warn")

    return table(
        rows,
        [
            words("Cell", lambda row: label.entry(row[0])),
            words("Metric", lambda row: clean(" ".join(filter(None, row[1][:2]))) or "–"),
            digits("Median", median),
            digits("Range or interval", ends),
            digits("Runs", lambda row: len(row[0].counted(*row[1][:2]))),
            words("", lambda row: outcome(row[0])),
        ],
        caption=f"What records of {name} hold",
    )


def _metrics(group: Group) -> list[tuple[str, str | None, str]]:
    """Return the name, label and unit of each metric of a group; one without a name where it has none."""
    measured = (number for record in group.ok for number in record.metrics)
    return list(dict.fromkeys((number.name, number.label, number.unit) for number in measured)) or [("", None, "")]
