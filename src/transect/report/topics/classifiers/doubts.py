"""What is said of the doubts: how many points each change is worth, and why, or that nothing can be told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from transect.analysis.groups import grouped
from transect.report.engine.blocks import Lead, Part
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, names
from transect.report.engine.text import clipped, count, tenths
from transect.report.topics.classifiers.doubt_facts import DOUBTS, Doubt, cases
from transect.report.topics.classifiers.effects import change_words, confidence_of, effect_chart, effect_text
from transect.report.topics.classifiers.facts import VIEWS, Change, Difference, cut_short, difference
from transect.report.topics.retraining.factors import signed
from transect.stats.comparisons import Confidence

_REASON = 160


def doubt_findings(context: Context) -> list[Finding]:
    """One for each doubt that the study has cells for."""
    found = [(doubt, cases(doubt, context.of("classify"))) for doubt in DOUBTS]
    return [_finding(context, doubt, matching) for doubt, matching in found if matching]


def _finding(context: Context, doubt: Doubt, every: Sequence[Change]) -> Finding:
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
            f"{names([change_words(case, doubt.noun) for case in main], 3)}.",
            evidence=_missing(main),
        )
    effects = _effects(compared)
    lead = "" if any(effect.shown for effect in effects) else "Nothing can be told, as all of it may be chance. "
    clauses = [
        f"on {place}, {names([f'{change_words(c, doubt.noun)} {effect_text(c.effect)}' for c in members if c.effect], 9)}"
        for place, members in grouped(compared, lambda case: case.place).items()
    ]
    why = _WHYS[doubt.key](context, compared) if doubt.key in _WHYS else ""
    drawn_once = doubt.drawn and not all(effect.fixed for effect in effects)
    claim = f"{doubt.question} {lead}In points of the {kind}'s accuracy, {'; '.join(clauses)}. {why}"
    return Finding(
        subject="doubts",
        kind=f"doubt-{doubt.key}",
        named=True,
        claim=claim.strip(),
        short=f"{lead.strip('. ')}{': ' if lead else ''}{clauses[0].removeprefix('on ')} points of accuracy",
        confidence=confidence_of(effects, confirmable=not drawn_once and not _cut_short(doubt, compared)),
        tests=tuple(effect.chance() for effect in effects),
        evidence=_evidence(doubt, compared, [case for case in every if case.group.cell.kind != kind]),
    )


def _effects(compared: Iterable[Change]) -> list[Difference]:
    return [case.effect for case in compared if case.effect is not None]


def _cut_short(doubt: Doubt, compared: Sequence[Change]) -> int:
    """Count runs that had not learnt to their end, where updates are not what is held equal."""
    groups = {group.cell: group for case in compared for pair in case.pairs for group in pair}
    return 0 if doubt.key == "batch" else sum(cut_short(group) for group in groups.values())


def _evidence(doubt: Doubt, compared: Sequence[Change], others: Sequence[Change]) -> str:
    effects = _effects(compared)
    seeds = sorted({effect.summary.count for effect in effects if not effect.fixed})
    alone = [effect.alone for effect in effects if effect.alone is not None]
    settings = max(len(case.pairs) for case in compared)
    lacking = sum(effect.lacking for effect in effects)
    left_out = sum(case.left_out for case in compared)
    listed = [
        f"{case.group.cell.kind}, {case.place}, {change_words(case, doubt.noun)} {effect_text(case.effect)}"
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
        f"one draw of each {doubt.drawn} for all seeds: another one may give another difference" if doubt.drawn else "",
        doubt.caveat,
        f"{count(left_out, 'setting')} of fewer seeds left out" if left_out else "",
        f"others: {names(listed, 6)}" if listed else "",
    )


def _missing(main: Iterable[Change]) -> str:
    bad = [group.records[0] for case in main for pair in case.pairs for group in pair if not group.ok and group.records]
    reasons = dict.fromkeys(f"{record.cell_id} ({clipped(record.message, _REASON)})" for record in bad)
    return f"without a result: {names(list(reasons), 3)}" if reasons else "no repeat is common to both"


_Why = Callable[[Context, Sequence[Change]], str]


def _of_best(context: Context, compared: Sequence[Change]) -> str:
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


def _control(context: Context, compared: Sequence[Change]) -> str:
    """Say what the same change does with one head, where both compute the same."""
    [doubt] = [doubt for doubt in DOUBTS if doubt.key == "heads"]
    control = cases(replace(doubt, among=lambda cell: cell.heads == 1), context.of("classify"))
    effects = _effects(control)
    by_heads = []
    for heads in sorted({group.cell.heads or 0 for case in compared for group, _ in case.pairs}):
        pairs = [pair for case in compared for pair in case.pairs if pair[0].cell.heads == heads]
        effect = difference(pairs)
        by_heads += [f"{heads} heads {effect_text(effect)}"] if effect is not None else []
    apart = f"Apart: {names(by_heads, 4)}." if len(by_heads) > 1 else ""
    if not effects:
        return apart
    return f"{apart} With one head, where both are one function: {effect_text(effects[0])}.".strip()


# What else the records tell of a change; what each stage before it says of its own stands in the section on tickets.
_WHYS: dict[str, _Why] = {"names": _of_best, "view": _of_best, "heads": _control}


def doubts_body(context: Context) -> Iterator[Part]:
    """Draw and list the effects of all doubts."""
    found = [case for doubt in DOUBTS for case in cases(doubt, context.of("classify"))]
    if found:
        yield Lead(
            "Each changes one thing and nothing else: the difference of the accuracy within a seed, its median "
            "and interval over seeds. The tickets and their parts are the same in all seeds."
        )
        yield effect_chart(context, found, title="What each change does to the accuracy.", name="doubts")
