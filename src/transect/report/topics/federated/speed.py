"""Findings on who computes a federation soonest, and what more ranks bring."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transect.analysis.contrasts import all_joined, best
from transect.analysis.groups import Group
from transect.report.engine.best_words import beside, confidence_of, with_open
from transect.report.engine.columns import ranked
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import doubt_words, ratio_words
from transect.report.engine.decision import Decision
from transect.report.engine.finding import Finding, joined, limited_confidence, median
from transect.report.engine.text import percent, quantity
from transect.report.topics.federated.facts import (
    ENGINE,
    ROUND,
    STAGE,
    blind_words,
    planned,
    races,
    usable,
    who_words,
    work_of,
)

_RANKS = ("nodes", "ranks_per_node")


def _name(group: Group[Any]) -> str:
    return who_words(group.cell)


def engine_findings(context: Context, workload: str) -> Iterator[Finding]:
    """Say which engine makes an update soonest, on one rank, where several computed the same federation."""
    groups = usable(context.of(STAGE, workload))
    for members in races([group for group in groups if group.cell.ranks == 1], *ENGINE):
        raced = ranked(members, ROUND)
        made = all_joined(planned(context, "engine", raced), raced, context.floors, ROUND, varies="engine")
        found = best(made, raced, metric=ROUND)
        if found is None or len(raced) < 2:
            continue
        first, takes = found.first, quantity(median(found.first, ROUND), "s")
        short, scope = f"{_name(first)} makes an update in {takes}{beside(found, _name)}", work_of(first, groups)
        fastest = Finding(
            subject=workload,
            kind="federated-engine",
            scope=scope,
            claim=f"{short}.",
            short=short,
            named=True,
            confidence=limited_confidence(confidence_of(found), *raced),
            contrasts=found.contrasts,
            numbers=found.numbers(lambda group: median(group, ROUND)),
            tests=found.tests,
            groups=(first, *(group for group in raced if group is not first)),
            decision=Decision(
                column="engine",
                scope=scope,
                winner=_name(first),
                value=f"{takes} an update",
                tied=tuple(map(_name, found.tied)),
                unknown=tuple(map(_name, found.unknown)),
                margin=context.analysis_plan.margin,
            ),
            evidence=joined(
                blind_words(raced), *(f"{_name(c.group)} beside {_name(c.base)}: {c.reason}" for c in found.contrasts)
            ),
        )
        yield from with_open(_name, (fastest, found))


def rank_findings(context: Context, workload: str) -> Iterator[Finding]:
    """Say what the most ranks of each engine bring."""
    groups = usable(context.of(STAGE, workload))
    for members in races(groups, *_RANKS):
        made = planned(context, "ranks", members)
        if not made:
            continue
        pair = max(made, key=lambda pair: (pair.group.cell.ranks, pair.group.cell.id))
        group, base = pair.group, pair.base
        claim = f"{_name(group)} takes {ratio_words(pair)} as long for an update as on one{doubt_words(pair)}"
        yield Finding(
            subject=workload,
            kind="federated-ranks",
            scope=work_of(group, groups),
            claim=f"{claim}.",
            short=claim,
            named=True,
            confidence=limited_confidence(pair.confidence, group, base),
            contrasts=(pair,),
            groups=(group, base),
            evidence=joined(
                f"{quantity(median(group, ROUND), 's')} and {quantity(median(base, ROUND), 's')}",
                f"{percent(share)} of an update on one is the server's"
                if (share := median(base, "server_share"))
                else "",
                blind_words((group, base)),
                pair.reason,
            ),
        )
