"""What is said of the best of several: who is excluded and by how much, who ties, and of whom nothing is known."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from transect.analysis.best import Best
from transect.analysis.groups import Group
from transect.domain.until import MARGIN
from transect.report.engine.finding import Finding, joined, lowest_confidence, names
from transect.report.engine.text import number, percent
from transect.stats.comparisons import Confidence
from transect.stats.estimates import Estimate

# Rivals that have a number of their own in a sentence.
_SHOWN = 2

Name = Callable[[Group], str]


def beside(best: Best, name: Name) -> str:
    """Write what stands behind the best's own number: `; PyTorch takes 1.9 times as long`; empty for one alone."""
    parts = _excluded(best, name)
    if best.tied:
        margin = next((made.comparison.margin for made in best.contrasts), MARGIN)
        parts.append(f"{_every(best.tied, name)} {_do(best.tied, 'is', 'are')} as fast within {percent(margin)}")
    return "".join(f"; {part}" for part in parts)


def with_open(name: Name, *cases: tuple[Finding, Best]) -> Iterator[Finding]:
    """Yield findings on the best of several, and in one more what is not known of all: each is as sure as it says.

    Where somebody may be better, who is named first is likely at most. Where nothing at all is claimed, both are one.
    """
    apart = []
    for finding, best in cases:
        if not best.unknown:
            yield finding
        elif finding.confidence is Confidence.INCONCLUSIVE:
            said, more = finding.claim.removesuffix("."), _not_known([(best, "", "")], name)
            yield replace(finding, claim=f"{said}; {more}.", short=f"{finding.short or said}; {more}")
        else:
            yield replace(finding, confidence=Confidence.PROVISIONAL)
            apart.append((finding, best))
    if not apart:
        return
    first, alone = apart[0][0], len(apart) == 1
    words = _not_known([(best, name(best.first), "" if alone else of.scope) for of, best in apart], name)
    contrasts = tuple(made for _, best in apart for made in best.open)
    yield replace(
        first,
        scope=first.scope if alone else "",
        claim=f"{words}.",
        short=words,
        named=False,
        confidence=Confidence.INCONCLUSIVE,
        contrasts=contrasts,
        tests=(),
        groups=tuple(group for _, best in apart for group in (best.first, *best.unknown)),
        evidence=joined(*(f"{name(made.group)} beside {name(made.base)}: {made.reason}" for made in contrasts))
        or first.evidence,
        decision=None,
    )


def _not_known(cases: Iterable[tuple[Best, str, str]], name: Name) -> str:
    """Write in one sentence of whom it is not known whether they are as fast as whom, and where, and what would tell."""
    asked: dict[str, list[str]] = defaultdict(list)
    needs: Counter[str] = Counter()
    for best, than, where in cases:
        who = f"{_every(best.unknown, name)} {_do(best.unknown, 'is', 'are')} as fast"
        asked[f"whether {who}{f' as {than}' if than else ''}"].append(where)
        needs[next((made.needs for made in best.open if made.needs), "")] += 1
    what = " and ".join(f"{question} {names(places, 9)}".strip() for question, places in asked.items())
    takes = [(need or "a pair beside each other") + (" each" if n > 1 else "") for need, n in needs.items()]
    tells = f"to know takes {names(takes, 9)}" if any(needs) else "no pair of the study sets them beside each other"
    return f"{what} is not known: {tells}"


def _excluded(best: Best, name: Name) -> list[str]:
    order = sorted(best.excluded, key=lambda rival: rival[1].value)
    if len(order) <= _SHOWN + 1:
        return [f"{name(group)} takes {times(factor)} as long" for group, factor, _ in order]
    first, rest = order[:_SHOWN], order[_SHOWN:]
    ends = f"{number(rest[0][1].value)} to {number(rest[-1][1].value)}"
    return [
        *(f"{name(group)} takes {times(factor)} as long" for group, factor, _ in first),
        f"{len(rest)} others take {ends} times as long",
    ]


def times(factor: Estimate) -> str:
    """Write how many times, `1.9 times`."""
    return f"{number(factor.value)} times"


def _every(groups: Sequence[Group], name: Name) -> str:
    return names(list(dict.fromkeys(name(group) for group in groups)), 4)


def _do(groups: Sequence[Group], one: str, several: str) -> str:
    return one if len(groups) == 1 else several


def confidence_of(best: Best) -> Confidence:
    """Return how sure `beside` is: the lowest of what is claimed; without any rival nothing was compared."""
    claims = [confidence for _, _, confidence in best.excluded]
    claims += [Confidence.CONFIRMED if best.sound_ties else Confidence.PROVISIONAL] if best.tied else []
    if not claims:
        return Confidence.INCONCLUSIVE if best.unknown else Confidence.PROVISIONAL
    return lowest_confidence(claims)
