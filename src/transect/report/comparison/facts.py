"""A comparison as plain data, for scripts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from transect.analysis.result_sets import Lone, ResultSet
from transect.analysis.set_lines import Beside, Line, Outcome, Shift
from transect.report.comparison.words import ordered
from transect.stats.samples import Summary


def comparison_facts(
    base: ResultSet, besides: Sequence[Beside], *, outcome: Outcome, margin: float, quality_margin: float
) -> dict[str, Any]:
    """Return everything that a comparison says, as JSON holds it."""
    return {
        "outcome": outcome.value,
        "margin": margin,
        "quality_margin": quality_margin,
        "base": set_facts(base),
        "others": [_beside(beside) for beside in besides],
    }


def set_facts(results: ResultSet) -> dict[str, Any]:
    """Return what a result folder is."""
    loaded, (first, last) = results.loaded, results.span
    return {
        "letter": results.letter,
        "folder": results.name,
        "studies": sorted({record.study for record in loaded.records}),
        "first": first,
        "last": last,
        "records": len(loaded.records),
        "running": ["/".join(key) for key in loaded.running],
        "without_record": ["/".join(key) for key in loaded.waiting],
        "earlier": ["/".join(key) for key in loaded.earlier],
        "problems": [str(problem) for problem in loaded.problems],
        "ended_before_started": results.backwards,
    }


def number_or_none(value: float | None) -> float | None:
    """Return what JSON has a number for."""
    return value if value is not None and math.isfinite(value) else None


def _beside(beside: Beside) -> dict[str, Any]:
    pairing = beside.pairing
    counts: dict[str, dict[str, int]] = {}
    for line in beside.lines:
        confidences = counts.setdefault(line.outcome.value, {})
        confidences[line.confidence.value] = confidences.get(line.confidence.value, 0) + 1
    return set_facts(beside.other) | {
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
        "differences": [
            {"kind": d.kind, "fact": d.fact, "base": list(d.before), "other": list(d.after)} for d in beside.differences
        ],
    }


def _id(cell: Any) -> dict[str, Any]:
    return {"stage": cell.stage, "cell": cell.id}


def _lone(lone: Lone) -> dict[str, Any]:
    changed = {axis: [here, there] for axis, here, there in lone.renamed}
    near = {"nearest": lone.near.id, "differs_in": changed} if lone.near is not None else {}
    return _id(lone.group.cell) | {"state": lone.state} | near


def _line(line: Line) -> dict[str, Any]:
    comparison = line.comparison
    decision = comparison.decision if comparison is not None else None
    return _id(line.cell) | {
        "metric": line.metric or None,
        "label": line.what or None,
        "role": line.role.value,
        "outcome": line.outcome.value,
        "confidence": line.confidence.value,
        "unit": line.unit,
        "direction": line.direction.value,
        "base": _summary(comparison.b) if comparison else None,
        "other": _summary(comparison.a) if comparison else None,
        "ratio": number_or_none(line.ratio),
        "low": number_or_none(decision.low if decision else None),
        "high": number_or_none(decision.high if decision else None),
        "p": decision.p if decision else None,
        "reason": line.reason,
    }


def _summary(summary: Summary) -> dict[str, Any]:
    return {"median": summary.median, "low": summary.low, "high": summary.high, "runs": summary.count}


def _shift(shift: Shift) -> dict[str, Any]:
    decision = shift.decision
    return {
        "stage": shift.stage,
        "metric": shift.metric,
        "cells": shift.cells,
        "ratio": decision.ratio,
        "low": number_or_none(decision.low),
        "high": number_or_none(decision.high),
        "answer": decision.answer.value,
    }
