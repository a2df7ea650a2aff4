"""A comparison and a history as plain data, for scripts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from transect.analysis.history import Change, Series
from transect.analysis.result_sets import Lone, ResultSet
from transect.analysis.set_lines import Beside, Line, Shift
from transect.analysis.surroundings import Difference
from transect.report.comparison.compare_page import Compared
from transect.report.comparison.history_page import Followed
from transect.report.comparison.words import ordered
from transect.stats.samples import Summary
from transect.stats.verdicts import Decision


def comparison_facts(compared: Compared) -> dict[str, Any]:
    """Return everything that a comparison says, as JSON holds it."""
    return {
        "outcome": compared.outcome.value,
        "margin": compared.margin,
        "quality_margin": compared.quality_margin,
        "base": _set(compared.base),
        "others": [_beside(beside) for beside in compared.besides],
    }


def history_facts(followed: Followed) -> dict[str, Any]:
    """Return everything that a history says, as JSON holds it."""
    history = followed.history
    place = {id(series): number for number, series in enumerate(history.series)}
    return {
        "study": followed.study,
        "margin": followed.margin,
        "runs": [
            _set(run.results)
            | {"at": run.at.isoformat(), "notes": list(run.notes), "differences": _differences(run.differences)}
            for run in history.runs
        ],
        "left_out": [{"folder": folder.name, "why": folder.why} for folder in followed.left_out],
        "series": [_series(series) for series in history.series],
        "changes": [_change(change) | {"series": place[id(change.series)]} for change in history.changes],
        "lost": [_id(lost.cell) | {"last_run": lost.last, "why": lost.why} for lost in history.lost],
    }


def _set(results: ResultSet) -> dict[str, Any]:
    """Return what a result folder is."""
    loaded, (first, last) = results.loaded, results.span
    return {
        "letter": results.letter,
        "folder": results.name,
        "studies": sorted({record.study for record in loaded.records}),
        "first": first,
        "last": last,
        "records": len(loaded.records),
        "margin": results.margin,
        "running": ["/".join(key) for key in loaded.running],
        "without_record": ["/".join(key) for key in loaded.waiting],
        "earlier": ["/".join(key) for key in loaded.earlier],
        "problems": [str(problem) for problem in loaded.problems],
        "ended_before_started": results.backwards,
    }


def _beside(beside: Beside) -> dict[str, Any]:
    pairing = beside.pairing
    counts: dict[str, dict[str, int]] = {}
    for line in beside.lines:
        confidences = counts.setdefault(line.outcome.value, {})
        confidences[line.confidence.value] = confidences.get(line.confidence.value, 0) + 1
    return _set(beside.other) | {
        "counts": counts,
        "pairs": len(pairing.pairs),
        "lines": [_line(line) for line in ordered(beside.lines)],
        "same_measurement": [_id(pair.base.cell) for pair in pairing.copied],
        "refused": [
            _id(refused.pair.base.cell)
            | {"unlike": [{"setting": u.name, "base": u.base, "other": u.other} for u in refused.unlike]}
            for refused in pairing.refused
        ],
        "only_base": [_lone(lone) for lone in pairing.only_base],
        "only_other": [_lone(lone) for lone in pairing.only_other],
        "together": [_shift(shift) for shift in beside.shifts],
        "differences": _differences(beside.differences, "base", "other"),
    }


def _id(cell: Any) -> dict[str, Any]:
    return {"stage": cell.stage, "cell": cell.id}


def _lone(lone: Lone) -> dict[str, Any]:
    changed = {axis: [here, there] for axis, here, there in lone.renamed}
    near = {"nearest": lone.near.id, "differs_in": changed} if lone.near is not None else {}
    return _id(lone.group.cell) | {"state": lone.state} | near


def _line(line: Line) -> dict[str, Any]:
    comparison = line.comparison
    return (
        _id(line.cell)
        | {
            "metric": line.metric or None,
            "label": line.what or None,
            "role": line.role.value,
            "unit": line.unit,
            "direction": line.direction.value,
            "base": _summary(comparison.b) if comparison else None,
            "other": _summary(comparison.a) if comparison else None,
            "p": comparison.decision.p if comparison and comparison.decision else None,
        }
        | _judged(line)
    )


def _change(change: Change) -> dict[str, Any]:
    return {
        "run": change.at,
        "before": list(change.before),
        "after": list(change.after),
        "p": change.p,
        "with_its_stage": change.shared,
        "differences": _differences(change.surroundings),
    } | _judged(change)


def _judged(judged: Line | Change) -> dict[str, Any]:
    decision = judged.comparison.decision if judged.comparison else None
    return {
        "outcome": judged.outcome.value,
        "confidence": judged.confidence.value,
        "ratio": _number(judged.ratio),
        "reason": judged.reason,
    } | _ends(decision)


def _ends(decision: Decision | None) -> dict[str, Any]:
    return {"low": _number(decision.low if decision else None), "high": _number(decision.high if decision else None)}


def _number(value: float | None) -> float | None:
    """Return what JSON has a number for."""
    return value if value is not None and math.isfinite(value) else None


def _series(series: Series) -> dict[str, Any]:
    return {
        "stage": series.stage,
        "cell": series.cell.id if series.cell else None,
        "metric": series.chosen.metric,
        "label": series.chosen.label,
        "unit": series.chosen.unit,
        "direction": series.chosen.direction.value,
        "values": [_number(value) for value in series.values],
        "refused": {str(run): why for run, why in series.refused.items()},
    }


def _differences(found: Sequence[Difference], *names: str) -> list[dict[str, Any]]:
    before, after = names or ("before", "after")
    return [{"kind": d.kind, "fact": d.fact, before: list(d.before), after: list(d.after)} for d in found]


def _summary(summary: Summary) -> dict[str, Any]:
    return {"median": summary.median, "low": summary.low, "high": summary.high, "runs": summary.count}


def _shift(shift: Shift) -> dict[str, Any]:
    decision = shift.decision
    return {
        "stage": shift.stage,
        "metric": shift.metric,
        "cells": shift.cells,
        "ratio": decision.ratio,
        "answer": decision.answer.value,
    } | _ends(decision)
