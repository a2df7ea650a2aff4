"""Findings on the doubts: how many points each change is worth, and why, or that nothing can be told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from transect.analysis.groups import grouped
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, names
from transect.report.engine.text import clean, clipped, count, tenths
from transect.report.topics.classifiers.doubt_facts import DOUBTS, Case, Doubt, cases
from transect.report.topics.classifiers.facts import ClassifyGroup, Difference, corpus_label, cut_short, difference
from transect.report.topics.classifiers.inputs import VIEWS
from transect.report.topics.retraining.factors import signed
from transect.stats.comparisons import Confidence
from transect.stats.samples import Spread

_REASON = 160


def doubt_findings(context: Context) -> list[Finding]:
    """One for each doubt that the study has cells for."""
    groups: list[ClassifyGroup] = context.of("classify")
    found = [(doubt, cases(doubt, groups)) for doubt in DOUBTS]
    return [_finding(context, doubt, matching) for doubt, matching in found if matching]


def span(effect: Difference) -> str | None:
    """Write the ends of a difference; None for one seed."""
    summary = effect.summary
    return None if summary.spread is Spread.SINGLE else f"{signed(summary.low)} to {signed(summary.high)}"


def effect_text(effect: Difference) -> str:
    """Write a difference with its ends: `−12.3 (95 % interval −14.0 to −11.1)`."""
    summary = effect.summary
    if effect.fixed:
        alone = "" if effect.alone is None else f", test tickets alone ± {signed(effect.alone)[1:]}"
        return f"{signed(summary.median)} (no seed plays a part{alone})"
    if summary.spread is Spread.SINGLE:
        return f"{signed(summary.median)} (one seed)"
    if summary.low == summary.high:
        return f"{signed(summary.median)} (in each of {summary.count} seeds)"
    word = summary.word if summary.spread is Spread.INTERVAL else f"range of {summary.count} seeds"
    crosses = "" if effect.shown else ", which contains 0"
    return f"{signed(summary.median)} ({word} {span(effect)}{crosses})"


def case_words(doubt: Doubt, case: Case) -> str:
    """Name a change: `kept → removed`."""
    noun = "batch " if doubt.key == "batch" else ""
    return f"{noun}{case.before} → {case.after}"


def where(doubt: Doubt, case: Case) -> str:
    """Say on which tickets: corpus, and view and names where these are not what is changed."""
    cell = case.group.cell
    parts = [corpus_label(case.group)]
    parts += [VIEWS[cell.view]] if doubt.axis != "view" else []
    parts += [f"names {cell.names}"] if doubt.axis != "names" else []
    return clean(", ".join(parts))


def _finding(context: Context, doubt: Doubt, every: Sequence[Case]) -> Finding:
    kind = every[0].group.cell.kind
    main = [case for case in every if case.group.cell.kind == kind]
    compared = [case for case in main if case.effect is not None]
    if not compared:
        return Finding(
            subject="doubts",
            kind=f"doubt-{doubt.key}",
            named=True,
            confidence=Confidence.INCONCLUSIVE,
            claim=f"{doubt.question} Nothing can be told: no seed has both sides of "
            f"{names([case_words(doubt, case) for case in main], 3)}.",
            evidence=_missing(main),
        )
    effects = [case.effect for case in compared if case.effect is not None]
    shown = [effect for effect in effects if effect.shown]
    lead = "" if shown else "Nothing can be told, since 0 lies within. "
    clauses = [
        f"on {place}, {names([f'{case_words(doubt, c)} {effect_text(c.effect)}' for c in members if c.effect], 9)}"
        for place, members in grouped(compared, lambda case: where(doubt, case)).items()
    ]
    why = _WHYS[doubt.key](context, compared) if doubt.key in _WHYS else ""
    confidence = Confidence.CONFIRMED if all(effect.confirmed for effect in shown) else Confidence.PROVISIONAL
    drawn_once = doubt.once and not all(effect.fixed for effect in effects)
    if (drawn_once or _cut_short(doubt, compared)) and confidence is Confidence.CONFIRMED:
        confidence = Confidence.PROVISIONAL
    claim = f"{doubt.question} {lead}In points of the {kind}'s accuracy, {'; '.join(clauses)}. {why}"
    return Finding(
        subject="doubts",
        kind=f"doubt-{doubt.key}",
        named=True,
        claim=claim.strip(),
        short=f"{lead.strip('. ')}{': ' if lead else ''}{clauses[0].removeprefix('on ')} points of accuracy",
        confidence=confidence if shown else Confidence.INCONCLUSIVE,
        tests=tuple(effect.chance() for effect in effects),
        evidence=_evidence(doubt, compared, [case for case in every if case.group.cell.kind != kind]),
    )


def _cut_short(doubt: Doubt, compared: Sequence[Case]) -> int:
    """Count runs that had not learnt to their end, where updates are not what is held equal."""
    groups = {group.cell: group for case in compared for pair in case.pairs for group in pair}
    return 0 if doubt.key == "batch" else sum(cut_short(group) for group in groups.values())


def _evidence(doubt: Doubt, compared: Sequence[Case], others: Sequence[Case]) -> str:
    effects = [case.effect for case in compared if case.effect is not None]
    seeds = sorted({effect.summary.count for effect in effects if not effect.fixed})
    alone = [effect.alone for effect in effects if effect.alone is not None]
    settings = max(len(case.pairs) for case in compared)
    lacking = sum(effect.lacking for effect in effects)
    left_out = sum(case.left_out for case in compared)
    listed = [
        f"{case.group.cell.kind}, {where(doubt, case)}, {case_words(doubt, case)} {effect_text(case.effect)}"
        for case in others
        if case.effect is not None
    ]
    return joined(
        f"differences within a seed, median over {names([count(n, 'seed') for n in seeds], 3)}" if seeds else "",
        f"each the mean over up to {settings} settings of all else" if settings > 1 else "",
        f"another draw of test tickets alone may move an accuracy's difference by {signed(max(alone))[1:]} points"
        if alone
        else "the number of test tickets is not told",
        f"{count(lacking, 'seed')} of one side only" if lacking else "",
        f"{count(cut, 'run')} ended while validation still got better, which a difference may be due to"
        if (cut := _cut_short(doubt, compared))
        else "",
        f"one draw of each {_DRAWN[doubt.key]} for all seeds: another one may give another difference"
        if doubt.once
        else "",
        _CAVEATS.get(doubt.key),
        f"{count(left_out, 'setting')} of fewer seeds left out" if left_out else "",
        f"others: {names(listed, 6)}" if listed else "",
    )


def _missing(main: Iterable[Case]) -> str:
    bad = [group.records[0] for case in main for pair in case.pairs for group in pair if not group.ok and group.records]
    reasons = dict.fromkeys(f"{record.cell_id} ({clipped(record.message, _REASON)})" for record in bad)
    return f"without a result: {names(list(reasons), 3)}" if reasons else "no repeat is common to both"


_Why = Callable[[Context, Sequence[Case]], str]


def _of_best(context: Context, compared: Sequence[Case]) -> str:
    """Say what the tickets themselves hold: known where they were made up."""
    views = {case.group.cell.view for case in compared}
    parts = []
    for case in compared:
        before, after = (group.detail("bayes_accuracy") for group in case.pairs[0])
        if before is not None and after is not None:
            of = f" of a {VIEWS[case.group.cell.view]}" if len(views) > 1 else ""
            parts.append(f"{case.before} → {case.after}{of} {tenths(before)} to {tenths(after)}")
    if not parts:
        return ""
    return f"The best that anybody can reach on these made-up tickets: {names(parts, 4)}."


def _control(context: Context, compared: Sequence[Case]) -> str:
    """Say what the same change does with one head, where both compute the same."""
    [doubt] = [doubt for doubt in DOUBTS if doubt.key == "heads"]
    control = cases(replace(doubt, among=lambda cell: cell.heads == 1), context.of("classify"))
    effects = [case.effect for case in control if case.effect is not None]
    by_heads = []
    for heads in sorted({group.cell.heads or 0 for case in compared for group, _ in case.pairs}):
        pairs = [pair for case in compared for pair in case.pairs if pair[0].cell.heads == heads]
        effect = difference(pairs)
        by_heads += [f"{heads} heads {effect_text(effect)}"] if effect is not None else []
    apart = f"Apart: {names(by_heads, 4)}." if len(by_heads) > 1 else ""
    if not effects:
        return apart
    return f"{apart} With one head, where both are one function: {effect_text(effects[0])}.".strip()


_DRAWN = {"embeddings": "set of vectors", "split": "split"}
# What a difference may be due to as well.
_CAVEATS = {
    "batch": "in as many updates a larger batch sees more tickets",
    "embeddings": "vectors that are fitted to all tickets saw more text, which may help by itself",
}
# What else the records tell of a change; what each stage before it says of its own stands in the section on tickets.
_WHYS: dict[str, _Why] = {"names": _of_best, "view": _of_best, "heads": _control}
