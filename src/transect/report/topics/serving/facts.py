"""Which answers of runtimes may be compared, by which time, and what runtimes are called in a sentence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from transect.analysis.groups import Group
from transect.analysis.labels import people_name
from transect.analysis.serving import WHOLE, InferGroup, measure_of, run_includes
from transect.report.engine.blocks import Chip, Column, words
from transect.report.engine.context import Context
from transect.report.engine.finding import inside_run
from transect.report.engine.text import count
from transect.report.topics.exports import judge_export


def faithful_groups(context: Context, workload: str) -> list[InferGroup]:
    """Return infer groups with a right result, from exports that are not known to be unfaithful.

    In another precision than the framework's a class may turn: its tolerance decides.
    """
    unfaithful = {
        record.point.get("exporter")
        for group in context.of("export", workload)
        for record in group.records
        if judge_export(record).faithful is False
    }
    return [
        group
        for group in context.of("infer", workload)
        if group.ok
        and not group.wrong
        and group.cell.get("exporter") not in unfaithful
        and (group.cell.precision != "fp32" or min(group.values("top1_agreement"), default=1.0) >= 1)
        and not max(group.values("nonfinite_outputs"), default=0.0)
    ]


def runtime_name(group: Group) -> str:
    """Name a runtime alone: `ONNX Runtime (Python)`."""
    return people_name(group.cell, never=("exporter", "options", "threads"))


def place_of(group: InferGroup) -> str:
    """Say at which point it was called: `batch 1, 1 thread`."""
    return f"batch {group.cell.batch}, {count(group.cell.threads, 'thread')}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """A metric of one call, the same for all runtimes of a chart: Run alone, or whole calls.

    `note` says why it is not Run alone, or that Run holds more in some of the runtimes. `columns`
    tell per row what its Run includes, where any does.
    """

    name: str
    note: str
    columns: tuple[Column[Any], ...]

    @property
    def call(self) -> str:
        """What was timed, for the title of an axis."""
        return "bind, Run and copy of one call" if self.name == WHOLE else "latency of one Run"

    @property
    def short(self) -> str:
        """The same where there is less room."""
        return "end to end" if self.name == WHOLE else "latency"


def measure_for(groups: Iterable[InferGroup]) -> Measure:
    """Return the measure for a chart of these groups; those without a time do not count."""
    timed = [group for group in groups if group.values("latency")]
    name, held = measure_of(timed), inside_run(timed)
    note = ""
    if name == WHOLE:
        note = f"Bind, Run and copy together, for all: {held}."
    elif held and any(not run_includes(group) for group in timed):
        note = f"Not alike: {held}, and not all runs tell the time of whole calls."
    inside: Column[Any] = words("Run includes", lambda row: _inside(getattr(row, "group", row)))
    return Measure(name=name, note=note, columns=(inside,) if held else ())


def _inside(group: InferGroup) -> Chip | str:
    held = run_includes(group)
    return Chip(", ".join(held), "warn") if held else ""
