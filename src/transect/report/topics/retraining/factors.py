"""What a gain from retraining is due to: how much is the optimiser's, the rate's, the runtime's."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence

from transect.analysis.groups import grouped
from transect.report.engine.blocks import Chip, Heading, Part, digits, note, words
from transect.report.engine.charts.chart import dot_chart
from transect.report.engine.charts.inks import MUTED
from transect.report.engine.charts.marks import Dot
from transect.report.engine.charts.theme import Style
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, limited_confidence, names
from transect.report.engine.text import clean, clipped, count, multiplying, tenths
from transect.report.topics.retraining.facts import (
    FACTORS,
    Attribution,
    Design,
    Effect,
    RetrainGroup,
    attribution,
    designs,
    effects,
    summary_of,
)
from transect.stats.comparisons import Confidence
from transect.stats.estimates import shows_shift
from transect.stats.samples import Spread, Summary
from transect.stats.verdicts import Chance, chance_of_shift

# "Reconfiguring the learning rate in ONNX Runtime lifts retraining from .49/.56 to .70": its levels.
_AFTER = {"optimiser": "adamw", "rate": "new"}
# Who retrained there, and who stands for it where that did not run.
_RUNTIMES = ("ort-training", "python")
_REASON = 160


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
    return f"{summary.word} {signed(summary.low)} to {signed(summary.high)}"


def doubt_words(summary: Summary) -> str:
    """Say why a difference over several seeds is not shown."""
    return ", which contains 0" if summary.low <= 0 <= summary.high else ", which may be chance"


def _value(values: Sequence[float]) -> str:
    """Write a difference with its ends, and say where seeds leave open which way it goes."""
    summary = summary_of(values)
    around = "" if summary.low == summary.high or shows_shift(values) else doubt_words(summary)
    return f"{signed(summary.median)} ({_ends(summary)}{around})"


def _change(effect: Effect) -> str:
    """Name a change, and with which levels of other factors, where not with all: `old → new, with sgd`."""
    levels = [names(list(chosen), 9) for chosen in effect.given.values()]
    return f"{effect.before} → {effect.after}" + (f", with {' and '.join(levels)}" if levels else "")


def factor_findings(context: Context) -> list[Finding]:
    """Per full design: what the published change of all factors at once is due to, and each effect."""
    return [
        finding
        for workload in context.workloads("retrain")
        for design in designs(context.of("retrain", workload))
        for finding in _of_design(design)
    ]


def _of_design(design: Design) -> Iterator[Finding]:
    if not design.scores:
        yield Finding(
            subject=str(design.cell.workload),
            kind="retraining-gain",
            scope=_scope(design),
            claim="what a gain is due to is not known: no seed has every combination of the factors.",
            evidence=f"without a result: {names([group.cell.id for group in design.groups if not group.ok], 3)}",
            confidence=Confidence.INCONCLUSIVE,
        )
        return
    share = _published(design)
    if share is not None:
        yield _gain(design, share)
    found = effects(design)
    if found:
        yield _effects(design, found)


def _published(design: Design) -> Attribution | None:
    """Share out the change that the published study made, as far as the design has its combinations."""
    before = tuple(design.levels[factor][0] for factor in FACTORS)
    optimiser, rate = (
        level if level in design.levels[factor] else design.levels[factor][-1] for factor, level in _AFTER.items()
    )
    runtimes = dict.fromkeys(name for name in (*_RUNTIMES, *design.levels["runtime"]) if name != before[2])
    changes = ((optimiser, rate, runtime) for runtime in [*runtimes, before[2]])
    shares = (attribution(design, before, after) for after in changes if after != before)
    return next(filter(None, shares), None)


def _gain(design: Design, share: Attribution) -> Finding:
    shown = shows_shift(share.gains)
    parts = [f"the {name}'s part is {_value(part)}" for name, part in share.parts.items()]
    changed = " and ".join(f"{a} → {b}" for a, b in zip(share.before, share.after, strict=True) if a != b)
    reached = [
        statistics.median(scores[levels] for scores in design.scores.values()) for levels in (share.before, share.after)
    ]
    claim = (
        f"changing {changed} at once moves the accuracy after {design.cell.steps} steps from "
        f"{tenths(reached[0])} to {tenths(reached[1])}, seed by seed {signed(share.gain.median)} points "
        f"({_ends(share.gain)}): {names(parts, 9)}"
    )
    return Finding(
        subject=str(design.cell.workload),
        kind="retraining-gain",
        claim=f"{claim}.",
        scope=_scope(design),
        confidence=_confidence(design, share.gain) if shown else Confidence.INCONCLUSIVE,
        tests=_tests([(share.gains, shown)]),
        evidence=joined(
            "parts are Shapley values, seed by seed, of which each seed's add up to its gain", _seeds(design)
        ),
    )


def _effects(design: Design, found: list[Effect]) -> Finding:
    main = grouped((effect for effect in found if not effect.apart), lambda effect: effect.factor)
    listed = {
        factor: names([f"{_change(effect)} {_value(effect.values)}" for effect in members], 9)
        for factor, members in main.items()
    }
    said = "; ".join(f"{factor}: {text}" for factor, text in listed.items())
    shown = [effect for members in main.values() for effect in members if effect.shown]
    return Finding(
        subject=str(design.cell.workload),
        kind="retraining-factor",
        claim=f"over all combinations of the rest, in points of accuracy, {said}.",
        scope=_scope(design),
        confidence=_confidence(design, *(effect.summary for effect in shown)) if shown else Confidence.INCONCLUSIVE,
        tests=_tests([(effect.values, effect in shown) for effect in found]),
        evidence=joined(
            "each seed gives the mean difference over all else; median over seeds",
            _seeds(design),
            names([f"{e.factor}: {_change(e)} {_value(e.values)}" for e in found if e.apart], 9),
        ),
    )


def _confidence(design: Design, *summaries: Summary) -> Confidence:
    """Return how sure shown differences are: confirmed by six seeds or more, and checks that could tell."""
    whole = all(summary.spread is Spread.INTERVAL for summary in summaries) and not design.lacking
    return limited_confidence(Confidence.CONFIRMED if whole else Confidence.PROVISIONAL, *design.groups)


def _tests(effects: Iterable[tuple[Sequence[float], bool]]) -> tuple[Chance, ...]:
    """Test each effect by its seeds: what it is, and whether it is said to be there."""
    made = (chance_of_shift(values, claimed=claimed) for values, claimed in effects)
    return tuple(chance for chance in made if chance is not None)


def _scope(design: Design) -> str:
    epochs = design.cell.base_epochs
    base = "a trained base" if epochs is None else f"a base of {count(epochs, 'epoch')}"
    return f"from {base}, batch {design.cell.batch}"


def _seeds(design: Design) -> str:
    lacking = f", {design.lacking} more lack a combination" if design.lacking else ""
    amount = count(len(design.scores), "seed")
    return joined(f"{amount} with equal data and base in all combinations{lacking}", _absent(design))


def _absent(design: Design) -> str:
    """Say which combinations nobody has a score of, and why, in the words of their records."""
    reasons = grouped(design.absent, lambda group: (group.cell.optimiser, group.cell.runtime, group.records[0].message))
    listed = [
        f"{runtime} with {optimiser} ({clipped(message or 'no result', _REASON)})"
        for optimiser, runtime, message in reasons
    ]
    return f"without a score: {names(listed, 3)}" if listed else ""


def factor_parts(workload: str, groups: Sequence[RetrainGroup]) -> Iterator[Part]:
    """Draw the effects of each full design, and say which combinations have no score."""
    for number, design in enumerate(designs(groups)):
        found, absent = effects(design), _absent(design)
        if found or absent:
            yield Heading(f"{workload}: what a gain is due to")
        yield _chart(design, found, f"factors-{workload}-{number}")
        if absent:
            yield note(clean(f"{absent[:1].upper()}{absent[1:]}."))


def _verdict(effect: Effect) -> Chip:
    if effect.shown:
        return Chip("shown", "good" if effect.summary.spread is Spread.INTERVAL else "plain")
    return Chip("one seed" if effect.summary.count == 1 else "may be chance")


def _chart(design: Design, found: Sequence[Effect], name: str) -> Part:
    """Draw a row for each effect below its factor, its interval as a line; what may be chance is hollow."""
    shown = [effect for effect in found if effect.shown]
    most = max(shown, key=lambda effect: abs(effect.summary.median), default=None)
    title = (
        f"The largest effect shown: {most.factor} {_change(most)}, {signed(most.summary.median)} points of accuracy"
        if most
        else f"No change is shown to move the accuracy after {design.cell.steps} steps"
    )

    def dot(effect: Effect) -> Dot:
        summary = effect.summary
        return Dot(
            head=effect.factor,
            label=_change(effect),
            value=100 * summary.median,
            low=100 * summary.low,
            high=100 * summary.high,
            style=Style(MUTED),
            right=signed(summary.median),
            hollow=not effect.shown,
            ends=summary.word,
            count=summary.count,
        )

    return dot_chart(
        [effect for factor in FACTORS for effect in found if effect.factor == factor],
        dot,
        [
            words("Factor", lambda effect: effect.factor),
            words("Change", _change),
            digits("Effect", lambda effect: effect.summary.median, signed),
            digits("Interval or range", lambda effect: _ends(effect.summary)),
            digits("Seeds", lambda effect: effect.summary.count),
            words("", _verdict),
        ],
        title=title,
        name=name,
        rule=0.0,
        log=False,
        axis=f"points of accuracy on the test rows after {design.cell.steps} steps",
        notes=[
            "Each seed gives one difference, the mean over all combinations of what is not named; "
            "the symbol is the median over seeds, the line the interval or range. Hollow: it may be chance."
        ],
    )
