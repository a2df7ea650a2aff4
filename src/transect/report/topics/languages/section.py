"""Section: trainers in another language beside those in Python, on equal cells; what each has installed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transect.analysis.parallelism import median_of
from transect.report.engine.blocks import Chip, Column, Explained, Heading, Lead, Part, digits, table, words
from transect.report.engine.columns import ACCURACY, MARKS, NOT_TOLD, labelled
from transect.report.engine.context import Context
from transect.report.engine.text import factor, in_unit, percent, scale_for, with_ends
from transect.report.topics.languages.facts import GOAL, Language, languages
from transect.report.topics.languages.findings import goal_words, installed_rows

_TONES = {"reached": "good", "missed": "warn"}


def languages_body(context: Context) -> Iterator[Part]:
    """List every pair of equal cells, and each workload's sizes; nothing without another language."""
    pairs = languages(context)
    sizes = {name: installed_rows(context, name) for name in context.workloads("train")}
    if not pairs and not any(sizes.values()):
        return
    yield Lead(
        "The same cells in Go and in Python: same start, batches, update rule and number of threads, each held to the same "
        f"float64 reference. With the same BLAS a step in Go is to take at most {factor(GOAL)} times numpy's."
    )
    for workload in context.workloads("train"):
        of_workload = [pair for pair in pairs if pair.group.cell.workload == workload]
        if of_workload or sizes[workload]:
            yield Heading(workload)
        if of_workload:
            yield _steps(workload, of_workload)
        if rows := sizes[workload]:
            yield table(rows, _size_columns(), caption=f"{workload}: what has to be installed, on one rank and thread")
            yield Explained(
                "What this project pins for the framework, with the interpreter that it borrows; of a program of its own no "
                "more than it loads."
            )


def _steps(workload: str, pairs: list[Language]) -> Part:
    scale = scale_for([median_of(pair.group, "step_time") for pair in pairs], "s")
    label = labelled(pairs, always=("ranks",), never=("framework", "workload"))
    columns: list[Column[Language]] = [
        label,
        words("Go", lambda row: row.group.cell.framework),
        words("Beside", lambda row: row.in_python.cell.framework),
        digits(f"Step ({scale.unit})", lambda row: median_of(row.group, "step_time"), scale),
        digits(f"Other's ({scale.unit})", lambda row: median_of(row.in_python, "step_time"), scale),
        digits("Ratio", lambda row: with_ends(row.result.ratio)),
        words(f"Goal {factor(GOAL)}", _goal),
        digits("CPU use", lambda row: median_of(row.group, "cpu_utilisation"), percent, NOT_TOLD),
        digits("Other's", lambda row: median_of(row.in_python, "cpu_utilisation"), percent, NOT_TOLD),
        ACCURACY,
        MARKS,
    ]
    if any(median_of(pair.group, "gpu_utilisation") is not None for pair in pairs):
        columns[-2:-2] = [
            digits("GPU use", lambda row: median_of(row.group, "gpu_utilisation"), percent, NOT_TOLD),
            digits("Other's GPU use", lambda row: median_of(row.in_python, "gpu_utilisation"), percent, NOT_TOLD),
        ]
    return table(
        pairs,
        columns,
        fold_title=f"Pairs of {workload}",
        caption=f"{workload}: steps in Go over those in Python on equal cells",
    )


def _goal(pair: Language) -> Chip | None:
    """The goal stands against numpy only."""
    if pair.in_python.cell.framework != "numpy":
        return None
    goal = goal_words(pair)
    return Chip(goal, _TONES.get(goal, "plain"), pair.result.reason)


def _size_columns() -> list[Column[Any]]:
    return [
        words("Framework", lambda row: row.group.cell.framework),
        digits("Files", lambda row: row.files),
        digits("Size", lambda row: row.bytes, in_unit("B")),
        digits("Start", lambda row: row.startup_s, in_unit("s")),
        digits("Start to the first step's end", lambda row: row.first_step_s, in_unit("s")),
        digits("Memory at rest", lambda row: row.at_rest, in_unit("B"), NOT_TOLD),
        digits("Most memory", lambda row: row.peak, in_unit("B")),
    ]
