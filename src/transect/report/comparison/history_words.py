"""What a study's history is said in."""

from __future__ import annotations

from collections.abc import Iterable

from transect.analysis.change_points import MIN_RUNS
from transect.analysis.comparisons import Confidence
from transect.analysis.history import Change, History, Series
from transect.analysis.set_lines import Outcome
from transect.analysis.timelines import Run
from transect.report.comparison.words import ORDER, cell_names, difference_text, metric_name, moved
from transect.report.text import clean, count


def run_name(run: Run) -> str:
    """Name a run by its date."""
    return run.at.strftime("%Y-%m-%d %H:%M")


def series_names(series: Iterable[Series]) -> dict[Series, str]:
    """Name each series by its cell and metric."""
    every = list(series)
    cells = cell_names(one.cell for one in every if one.cell is not None)
    return {
        one: f"{cells[one.cell] if one.cell else clean(one.stage) + ': all cells'}, "
        f"{metric_name(one.chosen.metric, one.chosen.label or '')}"
        for one in every
    }


def changes_first(history: History) -> list[Change]:
    """Return changes, those of stages before those of cells, the worse and the latest first."""
    return sorted(history.changes, key=lambda one: (one.series.cell is not None, ORDER.index(one.outcome), -one.at))


def change_text(change: Change) -> str:
    """Write by how much a series changed."""
    decision = change.comparison.decision
    ends = (decision.low, decision.high) if decision is not None else (None, None)
    return moved(change.ratio, *ends)


def where_text(change: Change, most: int) -> str:
    """Say in what the runs on both sides of a change differ besides."""
    told = [difference_text(one) for one in change.surroundings if one.kind != "variable"]
    told += [difference_text(one) for one in change.surroundings if one.kind == "variable"]
    if not told:
        return "nothing that records tell"
    rest = len(told) - most
    return "; ".join(told[:most]) + (f"; and {rest} more" if rest > 0 else "")


def too_few(history: History) -> str:
    """Say why no change can be told, or nothing."""
    most = max((len(one.places) for one in history.series), default=0)
    if most >= MIN_RUNS:
        return ""
    return (
        f"The longest series has {count(most, 'run')}: {MIN_RUNS} are the fewest in which a change can be told from "
        "chance. Two of them can be compared (transect compare)."
    )


def summary_of(history: History) -> str:
    """Say in one line what became of a study."""
    said = []
    for outcome in (Outcome.WORSE, Outcome.BETTER, Outcome.SAME, Outcome.NOT_COMPARABLE):
        own = [one for one in history.changes if one.outcome is outcome]
        if own:
            loose = sum(one.confidence is Confidence.PROVISIONAL for one in own)
            word = "within the margin" if outcome is Outcome.SAME else outcome.value
            said.append(f"{len(own)} {word}" + (f" ({loose} provisional)" if loose else ""))
    lost = f"; {count(len(history.lost), 'cell')} without a result in the latest run" if history.lost else ""
    if not said:
        return f"no changes{lost}"
    return f"{count(len(history.changes), 'change')}: {', '.join(said)}{lost}"
