"""Were groups measured side by side, and whole? What differs between two days or processors is in no repeat's noise.

Nor is what a repeat that failed would have shown: those that ran into their limit of time are the slow ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

from transect.analysis.entries import AnyRecord, moment_of
from transect.analysis.groups import Group
from transect.domain.cell import GPU_PROVIDERS
from transect.stats.noise import trimmed

# Runs that lie farther apart, in h, were not measured in turn, as the cells of one block are.
_MAX_H = 12.0
# Shares are sums of fractions.
_ROUNDING = 1e-9


def apart(groups: Sequence[Group[Any]]) -> str:
    """Say why groups were not measured side by side and completely, as far as their records show; or nothing."""
    if reason := incomplete(groups):
        return reason
    for a, b in combinations([group.ok for group in groups], 2):
        if a and b and (reason := _unpaired(a, b)):
            return reason
    return ""


def incomplete(groups: Sequence[Group[Any]]) -> str:
    """Say of how many repeats of a group there is no result, where more than a middle leaves out; or nothing."""
    for group in groups:
        lost = len(group.records) - len(group.ok)
        if lost > trimmed(len(group.records)):
            return f"{lost} of {len(group.records)} repeats of one gave no result: the rest may be the better ones"
    return ""


class _Run(NamedTuple):
    """When a run began and ended, in h, and on which processors it was."""

    began: float
    ended: float
    on: str


def _unpaired(a: Sequence[AnyRecord], b: Sequence[AnyRecord]) -> str:
    """Say what keeps the runs of two groups from having counterparts in each other, or nothing.

    The runs of a group weigh 1 together: four on one processor and one on another are no counterpart to one
    and four. As much may be left without one as a middle leaves out.
    """
    allowed = max(trimmed(len(side)) / len(side) for side in (a, b)) + _ROUNDING
    on_gpus = all(map(_on_gpu, (*a, *b)))
    named = [[_processors(record, gpus=on_gpus) for record in side] for side in (a, b)]
    # A run without these facts is no difference.
    known = [[_Run(0.0, 0.0, name) for name in names if name] for names in named]
    alone = _alone(*known) if all(known) else 0.0
    if alone > allowed:
        some = "" if alone > 1 - _ROUNDING else f"{100 * alone:.0f} % "
        return f"{some}measured on different processors, which no repeat's noise covers"
    if not all(map(all, named)):
        named = [["" for _ in names] for names in named]
    runs = [
        [run for record, on in zip(side, names, strict=True) if (run := _run_of(record, on))]
        for side, names in zip((a, b), named, strict=True)
    ]
    if not all(runs):
        return ""
    alone = _alone(*runs)
    if alone <= allowed:
        return ""
    if alone > 1 - _ROUNDING:
        gap = min(_gap(x, y) for x in runs[0] for y in runs[1])
        some = f"measured {gap:.0f} h apart" if gap > _MAX_H else "measured on other days on each processor"
    else:
        some = f"{100 * alone:.0f} % measured more than {_MAX_H:.0f} h apart"
    return f"{some}: what changed in between is in no repeat's noise"


def _alone(a: Sequence[_Run], b: Sequence[_Run]) -> float:
    """Return the share of two groups' runs that have no counterpart in the other, in order of time."""
    left = 1.0
    for on in {run.on for run in a}:
        sides = [sorted(run for run in side if run.on == on) for side in (a, b)]
        weights = [[1 / len(side)] * len(runs) for side, runs in zip((a, b), sides, strict=True)]
        i = j = 0
        while i < len(sides[0]) and j < len(sides[1]):
            x, y = sides[0][i], sides[1][j]
            if _gap(x, y) <= _MAX_H:
                both = min(weights[0][i], weights[1][j])
                left -= both
                weights[0][i] -= both
                weights[1][j] -= both
                i, j = i + (weights[0][i] < _ROUNDING), j + (weights[1][j] < _ROUNDING)
            elif x.began < y.began:
                i += 1
            else:
                j += 1
    return left


def _gap(x: _Run, y: _Run) -> float:
    """Return how many hours lie between two runs; 0 where they overlap."""
    return max(0.0, x.began - y.ended, y.began - x.ended)


def _on_gpu(record: AnyRecord) -> bool:
    cell = record.point
    return cell.device == "cuda" or cell.get("provider") in GPU_PROVIDERS


def _processors(record: AnyRecord, *, gpus: bool) -> str:
    """Name what a run was measured on; empty where its record does not tell."""
    provenance = record.provenance
    model = str(provenance.get("cpu_model") or "")
    names = [str(gpu.get("name")) for gpu in provenance.get("gpus") or () if isinstance(gpu, dict)]
    return ", ".join([model, *names]) if gpus and model else model


def _run_of(record: AnyRecord, on: str) -> _Run | None:
    """Return when a run was; None for times that nobody can read."""
    began, ended = moment_of(record.started), moment_of(record.ended)
    return _Run(began.timestamp() / 3600, ended.timestamp() / 3600, on) if began and ended else None
