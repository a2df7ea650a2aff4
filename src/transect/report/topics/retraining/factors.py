"""Findings on gains from retraining: how much is the optimiser's, the rate's, the runtime's."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence

from transect.analysis.groups import grouped
from transect.report.engine.context import THESIS, Context
from transect.report.engine.finding import Finding, joined, limited_confidence, names
from transect.report.engine.text import clipped, count, multiplying, tenths
from transect.report.topics.retraining.facts import FACTORS, Attribution, Design, Effect, attribution, designs, effects
from transect.stats.comparisons import Confidence
from transect.stats.samples import Spread, Summary
from transect.stats.verdicts import Chance, chance_of_shift

SCORE = "accuracy"
# "Reconfiguring the learning rate in ONNX Runtime lifts retraining from .49/.56 to .70": its levels.
_AFTER = {"optimiser": "adamw", "rate": "new"}
# Who retrained there, and who stands for it where that did not run.
_RUNTIMES = ("ort-training", "python")
_REASON = 160
_WORDS = {"optimiser": "the optimiser's", "rate": "the rate's", "runtime": "the runtime's"}


@multiplying(100.0)
def signed(share: float) -> str:
    """Write a difference of shares of one in points: `+12.3` or `−0.4`.

    >>> [signed(x) for x in (0.123, -0.004, 0.0)]
    ['+12.3', '−0.4', '0.0']
    """
    points = round(100 * share, 1)
    sign = "+" if points > 0 else "−" if points < 0 else ""
    return f"{sign}{abs(points):.1f}"


def _ends(summary: Summary) -> str:
    if summary.spread is Spread.SINGLE:
        return "one seed"
    if summary.low == summary.high:
        return "in every seed"
    what = "95 % interval" if summary.spread is Spread.INTERVAL else "range"
    return f"{what} {signed(summary.low)} to {signed(summary.high)}"


def effect_words(effect: Effect) -> str:
    """Name an effect: `rate: old → new, with sgd`."""
    return f"{effect.factor}: {effect.before} → {effect.after}{_given(effect)}"


def _given(effect: Effect) -> str:
    """Say with which levels of other factors, where not with all."""
    levels = [names(list(chosen), 9) for chosen in effect.given.values()]
    return f", with {' and '.join(levels)}" if levels else ""


def factor_findings(context: Context) -> list[Finding]:
    """Per full design: what the published change of all factors at once is due to, and each effect."""
    asked = context.asks_for(THESIS, "factor.retraining-gain", "factor.retraining-factor")
    return [
        finding
        for workload in context.workloads("retrain")
        for design in designs(context.of("retrain", workload), SCORE)
        for finding in _of_design(design, asked)
    ]


def _of_design(design: Design, asked: bool) -> Iterator[Finding]:
    if not design.scores:
        yield _none(design)
        return
    share = _published(design)
    if share is not None:
        yield _gain(design, share, asked)
    found = effects(design)
    if found:
        yield _effects(design, found)


def _published(design: Design) -> Attribution | None:
    """Share out the change that the published study made, as far as the design has its combinations."""
    base = (*(design.levels[factor][0] for factor in FACTORS),)
    runtimes = [name for name in (*_RUNTIMES, *design.levels["runtime"]) if name != base[2]]
    rates, optimisers = design.levels["rate"], design.levels["optimiser"]
    for runtime in [*dict.fromkeys(runtimes), base[2]]:
        rate = _AFTER["rate"] if _AFTER["rate"] in rates else rates[-1]
        optimiser = _AFTER["optimiser"] if _AFTER["optimiser"] in optimisers else optimisers[-1]
        before, after = (base[0], base[1], base[2]), (optimiser, rate, runtime)
        if before != after and (share := attribution(design, before, after)):
            return share
    return None


def _gain(design: Design, share: Attribution, asked: bool) -> Finding:
    parts = [f"{_WORDS[name]} part is {_value(part)}" for name, part in share.parts.items()]
    changed = " and ".join(f"{a} → {b}" for a, b in zip(share.before, share.after, strict=True) if a != b)
    reached = [
        statistics.median(scores[levels] for scores in design.scores.values()) for levels in (share.before, share.after)
    ]
    claim = (
        f"changing {changed} at once moves the accuracy after {design.cell.steps} steps from "
        f"{tenths(reached[0])} to {tenths(reached[1])}, {signed(share.gain.median)} points "
        f"({_ends(share.gain)}): {names(parts, 9)}"
    )
    return Finding(
        subject=str(design.cell.workload),
        kind="retraining-gain",
        claim=f"{claim}.",
        scope=_scope(design),
        confidence=_confidence(design, share.gain),
        tests=_tests([(share.gains, not _crosses(share.gain))]),
        evidence=joined(
            "parts are Shapley values, seed by seed, of which each seed's add up to its gain",
            _seeds(design),
            "published: .49 to .56 with PyTorch, .70 with ONNX Runtime's training" if asked else "",
        ),
    )


def _effects(design: Design, found: list[Effect]) -> Finding:
    main = [effect for effect in found if not effect.apart]
    listed = []
    for factor in FACTORS:
        of_factor = [effect for effect in main if effect.factor == factor]
        if of_factor:
            listed.append(f"{factor}: {names([_effect_text(effect) for effect in of_factor], 9)}")
    claim = f"over all combinations of the rest, in points of accuracy, {'; '.join(listed)}."
    shown = [effect for effect in main if effect.shown]
    return Finding(
        subject=str(design.cell.workload),
        kind="retraining-factor",
        claim=claim,
        scope=_scope(design),
        confidence=_confidence(design, *(effect.summary for effect in shown)) if shown else Confidence.INCONCLUSIVE,
        tests=_tests([(effect.values, effect in shown) for effect in found]),
        evidence=joined(
            "each seed gives the mean difference over all else; median over seeds",
            _seeds(design),
            names([f"{effect_words(effect)} {_value(effect.summary)}" for effect in found if effect not in main], 9),
        ),
    )


def _effect_text(effect: Effect) -> str:
    return f"{effect.before} → {effect.after}{_given(effect)} {_value(effect.summary)}"


def _value(summary: Summary) -> str:
    """Write a difference with its ends, and say where these leave open which way it goes."""
    crosses = ", which contains 0" if _crosses(summary) and summary.low < summary.high else ""
    return f"{signed(summary.median)} ({_ends(summary)}{crosses})"


def _crosses(summary: Summary) -> bool:
    return summary.count > 1 and summary.low <= 0 <= summary.high


def _confidence(design: Design, *summaries: Summary) -> Confidence:
    """Confirmed: six seeds or more, of which the interval is without 0, and checks that could tell."""
    if any(_crosses(summary) or summary.count == 1 for summary in summaries):
        return Confidence.INCONCLUSIVE
    whole = all(summary.spread is Spread.INTERVAL for summary in summaries) and not design.lacking
    return limited_confidence(Confidence.CONFIRMED if whole else Confidence.PROVISIONAL, *design.groups)


def _tests(effects: Iterable[tuple[Sequence[float], bool]]) -> tuple[Chance, ...]:
    """Test each effect by its seeds: what it is, and whether it is said to be there."""
    made = (chance_of_shift(values, claimed=claimed) for values, claimed in effects)
    return tuple(chance for chance in made if chance is not None)


def _scope(design: Design) -> str:
    cell = design.cell
    epochs = cell.base_epochs
    base = "a trained base" if epochs is None else f"a base of {count(epochs, 'epoch')}"
    return f"from {base}, batch {cell.batch}"


def _seeds(design: Design) -> str:
    lacking = f", {design.lacking} more lack a combination" if design.lacking else ""
    amount = count(len(design.scores), "seed")
    return joined(f"{amount} with equal data and base in all combinations{lacking}", absent_text(design))


def absent_text(design: Design) -> str:
    """Say which combinations nobody has a score of, and why, in the words of their records."""
    reasons = grouped(
        (group.records[0] for group in design.absent),
        lambda record: (record.point.get("optimiser"), record.point.get("runtime"), record.message),
    )
    listed = [
        f"{runtime} with {optimiser} ({clipped(message or 'no result', _REASON)})"
        for optimiser, runtime, message in reasons
    ]
    return f"without a score: {names(listed, 3)}" if listed else ""


def _none(design: Design) -> Finding:
    bad = [group.cell.id for group in design.groups if not group.ok]
    return Finding(
        subject=str(design.cell.workload),
        kind="retraining-gain",
        scope=_scope(design),
        claim="what a gain is due to is not known: no seed has every combination of the factors.",
        evidence=f"without a result: {names(bad, 3)}",
        confidence=Confidence.INCONCLUSIVE,
    )
