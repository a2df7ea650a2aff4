"""Findings on hyper-parameters: how much each one moves the accuracy, the strongest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transect.analysis.groups import grouped
from transect.domain.axes.text import HYPERPARAMETERS
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, names
from transect.report.engine.text import clean, count, number
from transect.report.topics.classifiers.doubt_findings import effect_text
from transect.report.topics.classifiers.facts import ACCURACY, ClassifyGroup, Difference, Sweep, corpus_label, sweeps
from transect.report.topics.classifiers.inputs import VIEWS
from transect.stats.comparisons import Confidence

NOUNS = {
    "learning_rate": "learning rate",
    "batch": "batch",
    "heads": "heads",
    "layers": "layers",
    "epochs": "epochs",
    "updates": "updates",
    "optimiser": "optimiser",
    "embeddings": "embeddings",
    "split": "split",
    "words": "length",
    "stop_words": "stop words",
}


def value_text(value: Any) -> str:
    """Write a hyper-parameter's value."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return number(float(value)) if is_number else clean(str(value))


def hyperparameter_findings(context: Context) -> list[Finding]:
    """One for each corpus, model and view whose hyper-parameters were changed one at a time."""
    groups: list[ClassifyGroup] = context.of("classify")
    found = [
        sweep
        for sweep in sweeps(groups)
        if sweep.axis in HYPERPARAMETERS and sweep.metric == ACCURACY and sweep.effects and _seeds(sweep) > 1
    ]
    parts = grouped(found, lambda sweep: (corpus_label(sweep.groups[0]), sweep.cell.model, sweep.cell.view))
    return [_finding(members) for members in parts.values()]


def _strongest(sweep: Sweep) -> tuple[Any, Difference]:
    return max(sweep.effects.items(), key=lambda pair: abs(pair[1].summary.median))


def _finding(members: Sequence[Sweep]) -> Finding:
    # Of several sweeps over one hyper-parameter, the one of most seeds speaks; the section has all.
    best: dict[str, Sweep] = {}
    for sweep in members:
        known = best.get(sweep.axis)
        if known is None or _seeds(sweep) > _seeds(known):
            best[sweep.axis] = sweep
    ordered = sorted(best.values(), key=lambda sweep: -abs(_strongest(sweep)[1].summary.median))
    listed = []
    for sweep in ordered:
        value, effect = _strongest(sweep)
        base = getattr(sweep.cell, sweep.axis)
        change = f"{NOUNS[sweep.axis]} {value_text(base)} → {value_text(value)}"
        listed.append(f"{change} {effect_text(effect)}")
    effects = [_strongest(sweep)[1] for sweep in ordered]
    shown = [effect for effect in effects if effect.shown]
    confidence = Confidence.CONFIRMED if all(effect.confirmed for effect in shown) else Confidence.PROVISIONAL
    first = members[0].groups[0]
    return Finding(
        subject=corpus_label(first),
        kind="hyperparameter",
        scope=f"{VIEWS[first.cell.view]}, {first.cell.model}",
        claim=f"one hyper-parameter at a time, in points of accuracy: {names(listed, 9)}.",
        confidence=confidence if shown else Confidence.INCONCLUSIVE,
        # Each moves most of all values of its hyper-parameter.
        tests=tuple(_strongest(sweep)[1].chance(n_comparisons=len(sweep.effects)) for sweep in ordered),
        evidence=joined(
            "of each hyper-parameter the value that moves it most from its first one",
            names(
                [
                    f"{NOUNS[sweep.axis]}: {count(len(sweep.groups), 'value')}, {count(_seeds(sweep), 'seed')}"
                    for sweep in ordered
                ],
                9,
            ),
        ),
    )


def _seeds(sweep: Sweep) -> int:
    return max(effect.summary.count for effect in sweep.effects.values())
