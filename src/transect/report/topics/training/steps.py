"""Findings on steps: what holds the fastest cell back, and what more ranks bring."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from transect.analysis.best import Best, best
from transect.analysis.bounds import step_bound
from transect.analysis.contrast import Contrast
from transect.analysis.groups import Group
from transect.analysis.labels import people_name
from transect.analysis.scaling import METRIC, TrainGroup
from transect.report.engine.best_words import with_open
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import basis_words
from transect.report.engine.decision import Decision, LeftOut, why_not
from transect.report.engine.finding import Finding, joined, limited_confidence, median
from transect.report.engine.text import count, ends, number, percent, quantity
from transect.report.topics.training.facts import PARTS, apart, step_shares
from transect.report.topics.training.words import (
    among,
    first_words,
    limit_words,
    more_words,
    namer,
    said_confidence,
    unknown_namer,
)
from transect.stats.comparisons import Confidence

# The column of the decision table.
COLUMN = "scale"


def limit_finding(context: Context, workload: str, group: Group) -> list[Finding]:
    """Say what holds a group's step back, and how near it is to its bound; nothing where neither is told."""
    step, shares, bound = median(group, "step_time"), step_shares(group), step_bound(group, context.rates)
    if not step or (bound is None and len(shares) < len(PARTS)):
        return []
    reached = bound.time_s / step if bound else None
    evidence = ["; ".join(f"{PARTS[part]} {percent(share)} of a step" for part, share in shares.items())]
    if bound is not None:
        evidence.append(
            f"step {quantity(step, 's')}, bound {quantity(bound.time_s, 's')} from "
            f"{quantity(bound.flops.value, 'FLOP/s')} ({bound.flops.benchmark}) and "
            f"{quantity(bound.bandwidth.value, 'B/s')} ({bound.bandwidth.benchmark}) with "
            f"{count(bound.flops.threads, 'thread')}"
        )
    else:
        evidence.append("no bound to hold it against: no benchmark of this machine ran with as many threads")
    return [
        Finding(
            subject=workload,
            kind="limit",
            claim=f"{namer([group])(group.cell)} {limit_words(group.cell, shares, bound, reached)}.",
            named=True,
            evidence=joined(*evidence),
            confidence=Confidence.INCONCLUSIVE if reached is not None and reached > 1 else Confidence.PROVISIONAL,
            groups=(group,),
        )
    ]


def scaling_findings(context: Context, workload: str, groups: Sequence[TrainGroup]) -> list[Finding]:
    """Say what the most ranks bring, and which way is first there."""
    planned = [
        made
        for made in among(context.contrasts.of("training.scaling", workload), groups)
        if not made.over_subscribed and made.group.cell.ranks > made.base.cell.ranks
    ]
    findings = []
    if planned:
        most = max(made.group.cell.ranks for made in planned)
        ways = sorted((m for m in planned if m.group.cell.ranks == most), key=lambda m: (m.cost.value, m.group.cell.id))
        found = _best_of(context, ways, workload)
        left = tuple(
            LeftOut(what=namer([group])(group.cell), why=why_not(group) or why)
            for why, members in apart(groups)
            for group in members
            if group.cell.ranks > 1
        )
        findings += [_more(ways, workload, found, left), *(_first_of(found, ways, workload, left) if found else ())]
    return findings


def _more(ways: Sequence[Contrast], workload: str, found: Best | None, left: tuple[LeftOut, ...]) -> Finding:
    """Say what the way that gains most beside itself alone brings on the most ranks, and who is faster there all the same."""
    way = ways[0]
    cell, base = way.group.cell, way.base.cell
    gain = way.cost.inverse
    share = median(way.group, "communication_share")
    waiting = f"{percent(share)} of its steps' time is waiting for messages" if share else ""
    claim = f"{namer([way.group, way.base])(cell)}: {more_words(way)}"
    if doubtful := gain.low > cell.ranks / base.ranks:
        claim += "; that is more than the ranks can bring: look at the base before trusting it"
    if found and any(entry.group is way.group for entry in found.excluded):
        claim += f"; {namer([way.group, found.first])(found.first.cell)} is faster all the same"
    return Finding(
        subject=workload,
        kind="scaling",
        named=True,
        short=claim,
        claim=f"{claim}.",
        confidence=Confidence.INCONCLUSIVE if doubtful else limited_confidence(way.confidence, way.group, way.base),
        contrasts=(way,),
        groups=(way.group, way.base),
        evidence=joined(
            f"{number(gain.value)} times the speed of {count(base.ranks, 'rank')} ({ends(gain)}), efficiency "
            f"{percent(gain.value * base.ranks / cell.ranks)}",
            basis_words(way),
            way.reason,
            waiting,
        ),
        decision=None if found else _decided(way, people_name(cell, [base]) if len(ways) == 1 else "", claim, left),
    )


def _decided(way: Contrast, winner: str, instead: str, left: tuple[LeftOut, ...], **more: Any) -> Decision:
    """Return what is decided on the most ranks: by a way that gains nothing, that it does not."""
    done = bool(winner) and way.better is way.group
    return Decision(
        column=COLUMN,
        scope=f"on {count(way.group.cell.ranks, 'rank')}",
        winner=winner if done else "",
        instead="" if done else instead,
        gain=more_words(way) if done else "",
        margin=way.comparison.margin,
        left_out=left,
        **more,
    )


def _best_of(context: Context, ways: Sequence[Contrast], workload: str) -> Best | None:
    """Return which of several ways is best on the most ranks; None where nothing compares them."""
    # Frameworks are joined where one stands beside the other on one rank.
    joined_by = [c for c in context.contrasts.of("training.fastest", workload) if c.metric == ways[0].metric]
    pool = [made.group for made in ways]
    found = best([*ways, *joined_by], pool, metric="step_time") if len(pool) > 1 else None
    return found if found is not None and found.contrasts else None


def _first_of(found: Best, ways: Sequence[Contrast], workload: str, left: tuple[LeftOut, ...]) -> Iterator[Finding]:
    """Say which of several ways is first on the most ranks."""
    pool = [made.group for made in ways]
    joining = {id(made.base): made.base for made in ways}
    name = namer(pool)
    way = next(made for made in ways if made.group is found.first)
    claim = first_words(found, pool, f"{quantity(median(found.first, 'step_time'), 's')} a step")
    fastest = Finding(
        subject=workload,
        kind="scaling",
        topic="most",
        named=True,
        short=claim,
        claim=f"{claim}.",
        confidence=limited_confidence(said_confidence(found), found.first),
        contrasts=found.contrasts,
        tests=found.tests,
        numbers=found.numbers(lambda group: median(group, METRIC), rate=True),
        groups=(found.first, *(g for g in (*pool, *joining.values()) if g is not found.first)),
        evidence=joined(
            *(
                f"{name(e.group.cell)}: {number(e.times.value)} times as long ({ends(e.times)})"
                for e in found.excluded[:4]
            )
        ),
        decision=_decided(
            way,
            people_name(found.first.cell, (group.cell for group in pool)),
            f"{name(found.first.cell)}: {more_words(way)}",
            left,
            tied=tuple(people_name(g.cell, (group.cell for group in pool)) for g in found.tied),
            unknown=tuple(people_name(g.cell, (group.cell for group in pool)) for g in found.unknown),
        ),
    )
    yield from with_open(unknown_namer(found, pool), (fastest, found))
