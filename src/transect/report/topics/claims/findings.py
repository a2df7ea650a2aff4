"""What cells say of published claims: one finding each, by the rule that was fixed before the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from transect.analysis.claims import Decided, Evidence, Point, Verdict, decide_all, matches
from transect.analysis.extrapolation import speed_up
from transect.analysis.groups import Group
from transect.domain.claims import Claim, Kind, of_study
from transect.report.engine.blocks import Chip, Explained, Lead, Part, note, table, words
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, limited_confidence, names
from transect.report.engine.text import clean, count, ends, number, percent
from transect.report.topics.claims.conditions import differences_table, records_of
from transect.report.topics.forecasts import all_forecasts, mean_error
from transect.stats.comparisons import Confidence

TONES = {Verdict.HOLDS: "good", Verdict.DIRECTION: "plain", Verdict.FAILS: "warn"}


def decided_claims(context: Context, *, asked: bool = False) -> list[Decided]:
    """Decide every claim of the works that a study is held beside, in their order; `asked`: not by the study alone."""
    if not context.works:
        return []
    evidence = Evidence(
        study=context.study,
        groups=context.of,
        floors=context.floors,
        since=context.since,
        asked=asked or context.asks("claim"),
        speed_up=lambda replicas: speed_up(context.curves, replicas),
        error=mean_error(all_forecasts(context)),
    )
    return decide_all(context.works, evidence)


def _of_this_study(context: Context) -> list[Decided]:
    """Return the claims that this study measures."""
    return [each for each in decided_claims(context) if of_study(each.work, each.claim, context.study)]


def published_at(context: Context, group: Group[Any], axis: str) -> float | None:
    """Return what was published at a group's value of an axis, of equal work; None where no claim of the study has that."""
    for work, claim in ((one, claim) for one in context.works for claim in one.claims):
        for measured in of_study(work, claim, context.study):
            along = measured.along
            if along and along.axis == axis and matches(group.cell, measured.cells):
                told = dict(zip(claim.axis_of(measured), claim.numbers, strict=True))
                if (value := group.cell.get(axis)) in told:
                    return float(told[value])
    return None


def published_words(claim: Claim) -> str:
    """Write the published number or numbers, of a shape beside its anchor; a dash where none was published."""
    if not claim.numbers:
        return "–"
    if claim.kind is Kind.SHAPE:
        told = dict(zip(claim.axis_values, claim.numbers, strict=True))
        return ", ".join(f"{value}: {number(each / told[claim.anchor])}" for value, each in told.items())
    unit = (
        "x" if claim.kind in (Kind.RATIO, Kind.NO_EFFECT) else f" {claim.unit}" if claim.unit not in ("", "1") else ""
    )
    return ", ".join(f"{number(told)}{unit}" for told in claim.numbers)


def here_words(points: Sequence[Point]) -> str:
    """Write what was measured, with its ends; of several points each with its label."""
    told = []
    for point in points:
        if point.here is not None:
            interval = f" ({ends(point.here)})" if point.here.low < point.here.high else ""
            told.append(f"{point.label + ': ' if point.label else ''}{number(point.here.value)}{interval}")
    return ", ".join(told)


def tally_words(decided: Iterable[Decided]) -> str:
    """Say what became of claims."""
    return sentence(Counter(str(each.verdict) for each in decided))


def sentence(counts: Mapping[str, int]) -> str:
    """Say of how many claims how many have which verdict.

    >>> sentence({"holds": 4, "direction only": 2, "does not hold": 1, "open": 3, "not comparable": 2})
    'of 12 claims 4 hold, 2 in direction only, 1 does not hold, 5 cannot be told here'
    """
    holds, direction, fails, *others = (counts.get(str(verdict), 0) for verdict in Verdict)
    parts = [
        f"{holds} {'holds' if holds == 1 else 'hold'}" if holds else "",
        f"{direction} in direction only" if direction else "",
        f"{fails} {'does' if fails == 1 else 'do'} not hold" if fails else "",
        f"{sum(others)} cannot be told here" if sum(others) else "",
    ]
    return f"of {count(sum(counts.values()), 'claim')} {', '.join(filter(None, parts))}"


def gap_words(decided: Decided) -> str:
    """Say which difference from the published number would have been seen; empty where nothing tells."""
    return (
        "" if decided.gap is None else f"a difference of {percent(decided.gap)} would have been seen four times in five"
    )


def verdict_chip(decided: Decided) -> Chip:
    """Return the verdict; one that is not firm, or was not measured, says so."""
    if decided.simulated:
        return Chip(f"{decided.verdict}, extrapolated", "plain")
    sure = {Confidence.CONFIRMED: "", Confidence.PROVISIONAL: ", tentative"}.get(decided.confidence, "")
    return Chip(f"{decided.verdict}{sure}", TONES.get(decided.verdict, "plain"))


def claim_findings(context: Context) -> list[Finding]:
    """One for each claim that this study measures, the open ones too."""
    return [_finding(each) for each in _of_this_study(context)]


def _finding(decided: Decided) -> Finding:
    claim, here = decided.claim, here_words(decided.points)
    short = f"{decided.work.short}, {claim.says.rstrip('.')}: {decided.verdict}"
    published = f"published {published_words(claim)}" if claim.numbers else ""
    return Finding(
        subject="claims",
        kind="claim",
        confidence=limited_confidence(decided.confidence, *decided.groups),
        named=True,
        short=clean(short),
        claim=clean(f"{short}." if not here else f"{short}; {here} here."),
        evidence=joined(clean(published), clean(decided.reason), gap_words(decided), clean(claim.doubt)),
        contrasts=tuple(decided.contrasts) if decided.confidence is not Confidence.INCONCLUSIVE else (),
        groups=tuple(decided.groups),
    )


def claims_body(context: Context) -> Iterator[Part]:
    """List every claim that this study measures, with its published number and what is measured here."""
    every, decided = decided_claims(context), _of_this_study(context)
    if not decided:
        return
    tally = tally_words(decided)
    yield Lead(f"{tally[0].upper()}{tally[1:]}. Each is decided by a rule that was fixed before the run.")
    yield claims_table(decided, caption=f"Published and here: {tally}")
    if any(map(records_of, decided)):
        yield differences_table(decided)
    others = {measured.study for each in every for measured in each.claim.measured} - {context.study}
    if len(every) > len(decided):
        more = f"; measured in {names(sorted(others), 9)}" if others else ""
        yield note(
            f"Of {count(len(every), 'claim')} of these works {len(every) - len(decided)} are not measured by this study{more}."
        )
    yield Explained(
        "Holds: the whole interval of what was measured lies within the factor that the rule allows around the published "
        "number. Direction only: an effect of another size. Does not hold: shown to be otherwise. Open: these runs cannot "
        "tell, or there are none. What is simulated is not measured, and says so. Another machine gives other numbers: most "
        "claims are of ratios and shapes, whose two sides ran here."
    )


def claims_table(decided: Sequence[Decided], *, caption: str) -> Part:
    """List claims: what is said, published and measured, the verdict and what it rests on."""
    return table(
        decided,
        [
            words("Work", lambda each: clean(each.work.short)),
            words("Claim", lambda each: clean(each.claim.says)),
            words("", verdict_chip),
            words("Published", lambda each: published_words(each.claim)),
            words("Here", lambda each: here_words(each.points) or None),
            words("Why", lambda each: joined(clean(each.reason), gap_words(each))),
            words("Doubt", lambda each: clean(each.claim.doubt) or None),
        ],
        caption=caption,
        about=lambda each: each.groups[0] if each.groups else each,
    )
