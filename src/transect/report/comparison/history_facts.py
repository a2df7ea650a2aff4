"""A study's history as plain data and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transect.analysis.history import Change, History, Series
from transect.analysis.surroundings import Difference
from transect.analysis.timelines import Timeline
from transect.report.comparison.facts import number_or_none, set_facts
from transect.report.comparison.history_words import (
    change_text,
    changes_first,
    run_name,
    series_names,
    summary_of,
    too_few,
    where_text,
)
from transect.report.comparison.markdown import code, fold, grid
from transect.report.engine.text import count

_MAX_COUNT = 40
_MAX_FACTS = 6


def history_facts(history: History, line: Timeline, *, study: str, margin: float) -> dict[str, Any]:
    """Return everything that a history says, as JSON holds it."""
    place = {id(series): number for number, series in enumerate(history.series)}
    return {
        "study": study,
        "margin": margin,
        "runs": [
            set_facts(run.results)
            | {"at": run.at.isoformat(), "notes": list(run.notes), "differences": _differences(run.differences)}
            for run in history.runs
        ],
        "left_out": [{"folder": folder.name, "why": folder.why} for folder in line.left_out],
        "series": [_series(series) for series in history.series],
        "changes": [_change(change) | {"series": place[id(change.series)]} for change in history.changes],
        "lost": [
            {"stage": lost.cell.stage, "cell": lost.cell.id, "last_run": lost.last, "why": lost.why}
            for lost in history.lost
        ],
    }


def _series(series: Series) -> dict[str, Any]:
    return {
        "stage": series.stage,
        "cell": series.cell.id if series.cell else None,
        "metric": series.chosen.metric,
        "label": series.chosen.label,
        "unit": series.chosen.unit,
        "direction": series.chosen.direction.value,
        "values": [number_or_none(value) for value in series.values],
        "refused": {str(run): why for run, why in series.refused.items()},
    }


def _change(change: Change) -> dict[str, Any]:
    decision = change.comparison.decision
    return {
        "run": change.at,
        "before": list(change.before),
        "after": list(change.after),
        "p": change.p,
        "outcome": change.outcome.value,
        "confidence": change.confidence.value,
        "ratio": change.ratio,
        "low": number_or_none(decision.low if decision else None),
        "high": number_or_none(decision.high if decision else None),
        "with_its_stage": change.shared,
        "reason": change.reason,
        "differences": _differences(change.surroundings),
    }


def _differences(found: Sequence[Difference]) -> list[dict[str, Any]]:
    return [{"kind": d.kind, "fact": d.fact, "before": list(d.before), "after": list(d.after)} for d in found]


def history_markdown(history: History, line: Timeline, *, study: str) -> str:
    """Write what changed and when; long lists are counted."""
    names = series_names(history.series)
    first, last = (run_name(history.runs[end]) for end in (0, -1))
    parts = [
        "### transect: history",
        f"Study {code(study)}, {count(len(history.runs), 'run')}, {first} to {last}: **{summary_of(history)}**.",
    ]
    if few := too_few(history):
        parts.append(few)
    changes = changes_first(history)
    for title, group in (
        ("", [change for change in changes if not change.shared]),
        ("changed with their whole stage", [change for change in changes if change.shared]),
    ):
        if not group:
            continue
        rows = [
            (
                f"{change.outcome} ({change.confidence})",
                code(names[change.series]),
                run_name(history.runs[change.at]),
                change_text(change),
                code(where_text(change, _MAX_FACTS)),
            )
            for change in group[:_MAX_COUNT]
        ]
        table = grid(("verdict", "series", "from run", "change", "what else changed there"), rows)
        table += f"\n\nand {len(group) - _MAX_COUNT} more" if len(group) > _MAX_COUNT else ""
        parts.append(fold(f"{count(len(group), 'cell')} {title}", table) if title else table)
    if history.lost:
        listed = [f"- {code(lost.cell.id)}: {code(lost.why)}" for lost in history.lost[:_MAX_COUNT]]
        parts.append(fold(f"{count(len(history.lost), 'cell')} without a result in the latest run", "\n".join(listed)))
    if line.left_out:
        listed = [f"- {code(folder.name)}: {code(folder.why)}" for folder in line.left_out[:_MAX_COUNT]]
        parts.append(fold(f"{count(len(line.left_out), 'folder')} left out", "\n".join(listed)))
    return "\n\n".join(parts) + "\n"
