"""Findings on steps: what holds the fastest cell back, and what more ranks bring."""

from __future__ import annotations

from collections.abc import Sequence

from transect.analysis.best import best
from transect.analysis.bounds import step_bound
from transect.analysis.contrast import Contrast
from transect.analysis.groups import Group
from transect.analysis.labels import people_name
from transect.analysis.scaling import METRIC, TrainGroup, efficiencies
from transect.report.engine.best_words import with_open
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import basis_words
from transect.report.engine.decision import Decision, LeftOut, why_not
from transect.report.engine.finding import Finding, joined, limited_confidence, median, names
from transect.report.engine.text import count, ends, number, percent, quantity
from transect.report.topics.scaling import possible_causes
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
        known = context.rates.threads()
        evidence.append(
            "no bound to hold it against: "
            + (
                f"benchmarks ran with {names([*map(str, known)], 9)} threads"
                if known
                else "no benchmark of this machine ran"
            )
        )
    return [
        Finding(
            subject=workload,
            kind="limit",
            claim=f"{namer([group])(group.cell)} is {limit_words(group.cell, shares, bound, reached)}."
            if reached is None or reached <= 1
            else f"{limit_words(group.cell, shares, bound, reached)}.",
            named=True,
            evidence=joined(*evidence),
            confidence=Confidence.INCONCLUSIVE if reached is not None and reached > 1 else Confidence.PROVISIONAL,
            groups=(group,),
        )
    ]


def scaling_findings(context: Context, workload: str, groups: Sequence[TrainGroup]) -> list[Finding]:
    """Say what the most ranks bring to each framework, which way is first there, and what is too good."""
    gains = efficiencies(groups, context.floors.get("train", workload, METRIC, groups[0].kind if groups else None))
    planned = [
        made
        for made in among(context.contrasts.of("training.scaling", workload), groups)
        if not made.over_subscribed and made.group.cell.ranks > made.base.cell.ranks
    ]
    findings = []
    if planned:
        most = max(made.group.cell.ranks for made in planned)
        ways = sorted((m for m in planned if m.group.cell.ranks == most), key=lambda m: (m.cost.value, m.group.cell.id))
        findings += [_more(ways, workload, apart(groups)), *_first_of(context, ways, workload)]
    odd = [gain for gain in gains if gain.superlinear]
    if odd:
        worst = max(odd, key=lambda gain: gain.value)
        name = namer(groups)
        causes = "; ".join(possible_causes(worst, context.rates)) or "nothing that the records show"
        findings.append(
            Finding(
                subject=workload,
                kind="suspect",
                claim=f"{count(len(odd), 'efficiency', 'efficiencies')} above 100 %, up to {percent(worst.value)} for "
                f"{name(worst.group.cell)}: look at the base before trusting it.",
                evidence=f"base {name(worst.base.cell)} at {number(worst.base_rate)} samples/s; may be behind it: {causes}",
                confidence=Confidence.INCONCLUSIVE,
            )
        )
    return findings


def _more(ways: Sequence[Contrast], workload: str, left: Sequence[tuple[str, list[Group]]]) -> Finding:
    """Say what the way that gains most brings on the most ranks."""
    way = ways[0]
    cell, base = way.group.cell, way.base.cell
    gain = way.cost.inverse
    share = median(way.group, "communication_share")
    waiting = f"{percent(share)} of its steps' time is waiting for messages" if share else ""
    claim = f"{namer([way.group, way.base])(cell)}: {more_words(way)}"
    done = way.better is way.group
    return Finding(
        subject=workload,
        kind="scaling",
        named=True,
        short=claim,
        claim=f"{claim}.",
        confidence=limited_confidence(way.confidence, way.group, way.base),
        contrasts=(way,),
        groups=(way.group, way.base),
        evidence=joined(
            f"{number(gain.value)} times the speed of {count(base.ranks, 'rank')} ({ends(gain)}), efficiency "
            f"{percent(gain.value * base.ranks / cell.ranks)}",
            basis_words(way),
            way.reason,
            waiting,
        ),
        decision=Decision(
            column=COLUMN,
            scope=f"on {count(cell.ranks, 'rank')}",
            winner=people_name(cell, [base]) if done else "",
            instead="" if done else more_words(way),
            gain=more_words(way) if done else "",
            margin=way.comparison.margin,
            left_out=tuple(
                LeftOut(what=namer([g])(g.cell), why=why_not(g) or why)
                for why, members in left
                for g in members
                if g.cell.ranks > 1
            ),
        ),
    )


def _first_of(context: Context, ways: Sequence[Contrast], workload: str) -> list[Finding]:
    """Say which of several ways is first on the most ranks."""
    pool = [made.group for made in ways]
    joining = {id(made.base): made.base for made in ways}
    # Frameworks are joined where one stands beside the other on one rank.
    joined_by = [c for c in context.contrasts.of("training.fastest", workload) if c.metric == ways[0].metric]
    found = best([*ways, *joined_by], pool, metric="step_time") if len(pool) > 1 else None
    if found is None or not found.contrasts:
        return []
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
        groups=(found.first, *(g for g in (*pool, *joining.values()) if g is not found.first)),
        evidence=joined(
            *(
                f"{namer(pool)(e.group.cell)}: {number(e.times.value)} times as long ({ends(e.times)})"
                for e in found.excluded[:4]
            )
        ),
    )
    return [*with_open(fastest, found, unknown_namer(found, pool))]
