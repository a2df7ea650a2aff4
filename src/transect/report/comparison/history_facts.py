"""A study's history as plain data and as Markdown."""

from __future__ import annotations

from typing import Any

from transect.analysis.history import Change, History, Series
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
from transect.report.text import count

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
            | {
                "at": run.at.isoformat(),
                "notes": list(run.notes),
                "differences": [
                    {"kind": d.kind, "fact": d.fact, "before": list(d.before), "after": list(d.after)}
                    for d in run.differences
                ],
            }
            for run in history.runs
        ],
        "left_out": [{"folder": one.name, "why": one.why} for one in line.left_out],
        "series": [_series(one) for one in history.series],
        "changes": [_change(one) | {"series": place[id(one.series)]} for one in history.changes],
        "lost": [
            {"stage": one.cell.stage, "cell": one.cell.id, "last_run": one.last, "why": one.why} for one in history.lost
        ],
    }


def _series(one: Series) -> dict[str, Any]:
    return {
        "stage": one.stage,
        "cell": one.cell.id if one.cell else None,
        "metric": one.chosen.metric,
        "label": one.chosen.label,
        "unit": one.chosen.unit,
        "direction": one.chosen.direction.value,
        "values": [number_or_none(value) for value in one.values],
        "refused": {str(run): why for run, why in one.refused.items()},
    }


def _change(one: Change) -> dict[str, Any]:
    told = one.comparison.decision
    return {
        "run": one.at,
        "before": list(one.before),
        "after": list(one.after),
        "p": one.p,
        "outcome": one.outcome.value,
        "confidence": one.confidence.value,
        "ratio": one.ratio,
        "low": number_or_none(told.low if told else None),
        "high": number_or_none(told.high if told else None),
        "with_its_stage": one.shared,
        "reason": one.reason,
        "differences": [
            {"kind": d.kind, "fact": d.fact, "before": list(d.before), "after": list(d.after)} for d in one.surroundings
        ],
    }


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
    for title, own in (
        ("", [one for one in changes if not one.shared]),
        ("changed with their whole stage", [one for one in changes if one.shared]),
    ):
        if not own:
            continue
        rows = [
            (
                f"{one.outcome} ({one.confidence})",
                code(names[one.series]),
                run_name(history.runs[one.at]),
                change_text(one),
                code(where_text(one, _MAX_FACTS)),
            )
            for one in own[:_MAX_COUNT]
        ]
        table = grid(("verdict", "series", "from run", "change", "what else changed there"), rows)
        table += f"\n\nand {len(own) - _MAX_COUNT} more" if len(own) > _MAX_COUNT else ""
        parts.append(fold(f"{count(len(own), 'cell')} {title}", table) if title else table)
    if history.lost:
        listed = [f"- {code(one.cell.id)}: {code(one.why)}" for one in history.lost[:_MAX_COUNT]]
        parts.append(fold(f"{count(len(history.lost), 'cell')} without a result in the latest run", "\n".join(listed)))
    if line.left_out:
        listed = [f"- {code(one.name)}: {code(one.why)}" for one in line.left_out[:_MAX_COUNT]]
        parts.append(fold(f"{count(len(line.left_out), 'folder')} left out", "\n".join(listed)))
    return "\n\n".join(parts) + "\n"
