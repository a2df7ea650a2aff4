"""Trainers in other languages compared with those in Python: equal work, and what each needs installed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from transect.analysis.contrast import Contrast
from transect.analysis.contrasts import contrast
from transect.analysis.groups import grouped
from transect.analysis.parallelism import STEP, median_of
from transect.analysis.scaling import TrainGroup
from transect.report.engine.context import Context
from transect.stats.samples import Spread

# Frameworks of other languages, by what their names begin with.
OTHER = ("go",)
# What joins the names of two languages in one training.
_BOTH = "+"
# With the same BLAS a step in Go is to take no more than so many times numpy's.
GOAL = 1.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Language:
    """One trainer in another language and one in Python; `result` compares their step times, seen from the first."""

    group: TrainGroup
    in_python: TrainGroup
    result: Contrast

    @property
    def reached(self) -> bool | None:
        """Whether it takes at most `GOAL` times as long; None where its runs cannot tell, or share cores."""
        ratio = self.result.ratio
        alone = ratio.spread is Spread.SINGLE
        if alone or self.result.barred or ratio.low <= GOAL < ratio.high:
            return None
        # What may be noise is no miss.
        return True if ratio.high <= GOAL else False if self.result.shown else None


def languages(context: Context) -> list[Language]:
    """Return every pair of right cells that differ in nothing but who computes, in order of the cells."""
    # In a training with two languages neither could be measured alone.
    able = [g for g in context.of("train") if g.ok and not g.wrong and _BOTH not in g.cell.framework]
    planned = {(found.group.cell, found.base.cell): found for found in context.contrasts.of("language")}
    found = []
    for members in grouped(able, lambda group: group.cell.apart_from("framework")).values():
        for foreign in members:
            for in_python in members:
                if is_other(foreign.cell.framework) and not is_other(in_python.cell.framework):
                    result = planned.get((foreign.cell, in_python.cell)) or contrast(
                        foreign, in_python, context.floors, STEP, varies="framework"
                    )
                    if result is not None:
                        found.append(Language(group=foreign, in_python=in_python, result=result))
    return sorted(found, key=lambda pair: (pair.group.cell.workload, pair.group.cell.id, pair.in_python.cell.id))


def is_other(framework: str) -> bool:
    """Whether a framework is one of another language: `go`, or `go-` with what it computes by."""
    return any(framework == name or framework.startswith(f"{name}-") for name in OTHER)


@dataclass(frozen=True, kw_only=True, slots=True)
class Installed:
    """What a framework's cells on one rank need before they train: files, bytes, seconds, memory.

    The two times are medians over its runs, `first_step_s` from the start of the process to the end of the first step.
    """

    group: TrainGroup
    files: float | None
    bytes: float | None
    startup_s: float | None
    first_step_s: float | None
    at_rest: float | None
    peak: float | None


def installed(groups: Iterable[TrainGroup], workload: str) -> list[Installed]:
    """Return a row for each framework that trained the workload alone, on one thread, the smallest first."""
    alone = [
        group
        for group in groups
        if group.cell.workload == workload
        and group.cell.ranks == 1
        and group.cell.threads == 1
        and group.cell.strategy == "single"
        and group.cell.input == "stored"
        and group.cell.memory == "plain"
        and group.ok
    ]
    rows = []
    for members in grouped(alone, lambda group: (group.cell.framework, group.cell.device)).values():
        # The usual training, where there are several.
        usual = min(members, key=lambda group: (group.kind.words, group.cell.id))
        start, step = median_of(usual, "startup_time"), median_of(usual, "first_step_time")
        rows.append(
            Installed(
                group=usual,
                files=median_of(usual, "environment_files"),
                bytes=median_of(usual, "environment_bytes"),
                startup_s=start,
                first_step_s=start + step if start is not None and step is not None else None,
                at_rest=median_of(usual, "memory_at_rest"),
                peak=median_of(usual, "peak_memory"),
            )
        )
    known = [row for row in rows if row.bytes is not None]
    return sorted(known, key=lambda row: (row.bytes or 0.0, row.group.cell.id))
