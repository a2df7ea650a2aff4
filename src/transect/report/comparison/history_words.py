"""What a study's history is said in."""

from __future__ import annotations

from collections.abc import Iterable

from transect.analysis.history import Change, History, Series
from transect.analysis.set_lines import Outcome
from transect.analysis.timelines import Run
from transect.report.comparison.words import ORDER, cell_names, difference_text, metric_name, moved
from transect.report.engine.text import clean, count
from transect.stats.change_points import MIN_RUNS
from transect.stats.comparisons import Confidence


def run_name(run: Run) -> str:
    """Name a run by its date."""
    return run.at.strftime("%Y-%m-%d %H:%M")


def series_names(series: Iterable[Series]) -> dict[Series, str]:
    """Name each series by its cell and metric."""
    every = list(series)
    cells = cell_names(series.cell for series in every if series.cell is not None)
    return {
        series: f"{cells[series.cell] if series.cell else clean(series.stage) + ': all cells'}, "
        f"{metric_name(series.chosen.metric, series.chosen.label or '')}"
        for series in every
    }


def changes_first(history: History) -> list[Change]:
    """Return changes, those of stages before those of cells, the worse and the latest first."""
    return sorted(history.changes, key=lambda c: (c.series.cell is not None, ORDER.index(c.outcome), -c.at))


def change_text(change: Change) -> str:
    """Write by how much a series changed."""
    decision = change.comparison.decision
    ends = (decision.low, decision.high) if decision is not None else (None, None)
    return moved(change.ratio, *ends)


def where_text(change: Change, most: int) -> str:
    """Say in what the runs on both sides of a change differ besides."""
    shown = [difference_text(difference) for difference in change.surroundings if difference.kind != "variable"]
    shown += [difference_text(difference) for difference in change.surroundings if difference.kind == "variable"]
    if not shown:
        return "nothing that records tell"
    remaining = len(shown) - most
    return "; ".join(shown[:most]) + (f"; and {remaining} more" if remaining > 0 else "")


def too_few(history: History) -> str:
    """Say why no change can be told, or nothing."""
    most = max((len(series.places) for series in history.series), default=0)
    if most >= MIN_RUNS:
        return ""
    return (
        f"The longest series has {count(most, 'run')}: {MIN_RUNS} are the fewest in which a change can be told from "
        "chance. Two of them can be compared (transect compare)."
    )


def summary_of(history: History) -> str:
    """Say in one line what became of a study."""
    parts = []
    for outcome in (Outcome.WORSE, Outcome.BETTER, Outcome.SAME, Outcome.NOT_COMPARABLE):
        changes = [change for change in history.changes if change.outcome is outcome]
        if changes:
            loose = sum(change.confidence is Confidence.PROVISIONAL for change in changes)
            word = "within the margin" if outcome is Outcome.SAME else outcome.value
            parts.append(f"{len(changes)} {word}" + (f" ({loose} provisional)" if loose else ""))
    lost = f"; {count(len(history.lost), 'cell')} without a result in the latest run" if history.lost else ""
    if not parts:
        return f"no changes{lost}"
    return f"{count(len(history.changes), 'change')}: {', '.join(parts)}{lost}"
