"""Findings on federated learning: equality, engines and ranks, aggregations, waiting, and rows that are not alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from transect.analysis.best import Best
from transect.analysis.contrast import Contrast
from transect.analysis.contrasts import all_joined, best
from transect.analysis.groups import Group, leaves_reference
from transect.analysis.quality import Score, score_of, target_of
from transect.domain.axes.federate import FederateCell
from transect.domain.record import Status
from transect.report.engine.best_words import confidence_of
from transect.report.engine.columns import ranked
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import doubt_words, ratio_words
from transect.report.engine.decision import Decision, LeftOut, why_not
from transect.report.engine.finding import Finding, joined, limited_confidence, lowest_confidence, median, names
from transect.report.engine.text import clipped, count, number, percent, tenths
from transect.report.topics.federated.facts import (
    HOW,
    METHOD,
    STAGE,
    TIME,
    FederateGroup,
    alike,
    apart,
    apart_words,
    blind_from,
    blind_words,
    how_words,
    in_every_run,
    learned,
    method_words,
    of_own_models,
    planned,
    scopes,
    usable,
    waits_for,
)
from transect.report.topics.federated.speed import engine_findings, rank_findings
from transect.report.topics.retraining.findings import shares
from transect.stats.comparisons import Confidence
from transect.stats.verdicts import Answer

_MAX_LENGTH = 120


def federated_findings(context: Context) -> list[Finding]:
    """The path of all; then per workload what learns best, what waiting and unlike rows cost, and who is fastest."""
    if not context.of(STAGE):
        return []
    of_workload = (_aggregations, _methods, _waiting, _partitions, engine_findings, rank_findings)
    found = (made for name in context.workloads(STAGE) for make in of_workload for made in make(context, name))
    return [_path(context.of(STAGE)), *found]


def path_text(groups: Sequence[FederateGroup]) -> str:
    """Say how many simulations followed the float64 reference."""
    ended = [record for group in groups for record in group.records if record.status is not Status.SKIPPED]
    wrong = sum(map(leaves_reference, ended))
    right, known = sum(len(group.ok) for group in groups), shares(groups)
    most = f", at most {percent(max(known), 1)} of the tolerance off" if known else ""
    engines = count(len({group.cell.engine for group in groups if group.ok}), "engine")
    blind = sum(len(group.ok) for group in groups if blind_from(group) is not None)
    told = f" ({blind} only as long as that can be told)" if blind else ""
    claim = f"{right} of {count(len(ended), 'simulation')} by {engines} followed the float64 reference in each update"
    claim += f"{told}{most}"
    return f"{claim}; {wrong} left it." if wrong else f"{claim}."


def _path(groups: Sequence[FederateGroup]) -> Finding:
    records = [record for group in groups for record in group.records]
    wrong = [record for record in records if leaves_reference(record)]
    others = [record for record in records if record.status is Status.FAILED and record not in wrong]
    known = shares(groups)
    sure = Confidence.PROVISIONAL if blind_words(groups) or not known else Confidence.CONFIRMED
    return Finding(
        subject="equality",
        kind="federated-path",
        claim=path_text(groups),
        named=True,
        alarm=bool(wrong),
        confidence=sure if known or wrong else Confidence.INCONCLUSIVE,
        evidence=joined(
            "loss and model of each update, and single updates from the reference's own models, within tolerances from "
            "perturbed float64 runs",
            f"wrong: {names([f'{r.cell_id} ({clipped(r.message, _MAX_LENGTH)})' for r in wrong], 3)}" if wrong else "",
            f"without a path to compare: {names([f'{r.cell_id} ({r.cause})' for r in others], 3)}" if others else "",
            blind_words(groups),
        ),
    )


def _aggregations(context: Context, workload: str) -> Iterator[Finding]:
    """Say of each federation which aggregation ends best, and how far from it the others end."""
    groups = learned(context, workload)
    scope_of = scopes(groups)
    for members in alike(groups, *HOW).values():
        score = score_of(members)
        raced = ranked(usable(members), score.name)
        pairs = planned(context, "aggregation", raced)
        found = best(all_joined(pairs, raced, context.floors, score.name, varies="aggregation"), raced)
        if len(raced) > 1 and found is not None:
            others = [
                LeftOut(
                    what=how_words(group.cell), why=why_not(group) or ("diverged" if group.diverged else "wrong result")
                )
                for group in members
                if group not in raced
            ]
            yield _aggregation(context, found, raced, score, scope_of(found.first), others)


def _aggregation(
    context: Context, found: Best, groups: Sequence[FederateGroup], score: Score, scope: str, others: Sequence[LeftOut]
) -> Finding:
    first = found.first
    own = score.at_end(first) or 0.0
    value = tenths(own) if score.is_share else number(own)
    if found.tied or found.unknown:
        short = f"no aggregation is shown to end better than {how_words(first.cell)}, at {score.words} {value}"
    else:
        short = f"{how_words(first.cell)} ends with the best {score.words}, {value}"

    def far(group: Group[Any]) -> str:
        return apart_words(apart(group, first, score.name), score)

    def listed(members: Sequence[Group[Any]], said: str) -> str:
        verb = f"{'is' if len(members) == 1 else 'are'} {said}"
        return f"{names([f'{how_words(g.cell)} ({far(g)})' for g in members], 9)} {verb}" if members else ""

    parts = [
        names([f"{how_words(group.cell)} ends {far(group)}" for group, _, _ in found.excluded], 9),
        listed(found.tied, f"the same within {percent(context.analysis_plan.margin)}"),
        listed(found.unknown, "not told apart from it"),
    ]
    short += "".join(f"; {part}" for part in parts if part)
    sure = confidence_of(found)
    sure = lowest_confidence((sure, Confidence.PROVISIONAL)) if found.unknown else sure
    return Finding(
        subject=str(first.cell.workload),
        kind="federated-aggregation",
        scope=scope,
        claim=f"{short}.",
        short=short,
        named=True,
        confidence=_checked(sure, groups),
        contrasts=found.contrasts,
        tests=found.tests,
        groups=(first, *(group for group in groups if group is not first)),
        decision=Decision(
            column="aggregation",
            scope=scope,
            winner=how_words(first.cell),
            value=f"{score.words} {value}",
            tied=tuple(how_words(group.cell) for group in found.tied),
            unknown=tuple(how_words(group.cell) for group in found.unknown),
            margin=context.analysis_plan.margin,
            left_out=tuple(others),
        ),
        evidence=joined(
            "differences are medians of runs with equal rows, cohorts and start",
            f"left out: {names([f'{other.what} ({other.why})' for other in others], 9)}" if others else "",
            blind_words(groups),
            *(f"{how_words(c.group.cell)} beside {how_words(c.base.cell)}: {c.reason}" for c in found.contrasts),
        ),
    )


def _checked(sure: Confidence, groups: Iterable[FederateGroup]) -> Confidence:
    """Return the confidence of a claim on how these end: none is confirmed that cannot be checked to its end."""
    return lowest_confidence((sure, Confidence.PROVISIONAL)) if blind_words(groups) else sure


def _waiting(context: Context, workload: str) -> Iterator[Finding]:
    """Say whether a server that waits for fewer updates reaches the target sooner."""
    groups = usable(learned(context, workload))
    scope_of = scopes(groups, "buffer", "rounds")
    for members in alike(groups, *HOW, "buffer", "rounds").values():
        timed = {id(made.group): made for made in planned(context, "waiting", members)}
        whole = [group for group in members if group.cell.buffer is None]
        for group in members:
            rivals = [timed[id(group)].base] if id(group) in timed else whole[:1]
            if group.cell.buffer is not None and rivals:
                yield _waited(group, rivals[0], timed.get(id(group)), scope_of(group))


def _waited(group: FederateGroup, whole: FederateGroup, made: Contrast | None, scope: str) -> Finding:
    name, rival = (f"{how_words(side.cell)} that waits for {waits_for(side.cell)}" for side in (group, whole))
    target = target_of(group) or "the target"
    late = [words for words, side in ((name, group), (rival, whole)) if not in_every_run(side, TIME)]
    turns = [
        (median(side, "rounds_to_quality") or 0) * (side.cell.buffer or side.cell.cohort) for side in (group, whole)
    ]
    stale = [record.details.get("staleness") or {} for record in group.ok]
    if late or made is None:
        said = f"{names(late)} {'does' if len(late) == 1 else 'do'} not reach {target} in every run"
        said += f", {rival} does" if late == [name] else f", {name} does" if late == [rival] else ""
        claim = said if late else f"nothing sets {name} beside {rival}"
        sure, reason = Confidence.PROVISIONAL if late else Confidence.INCONCLUSIVE, ""
    else:
        claim = f"{name} reaches {target} in {ratio_words(made)} the simulated time of {rival}"
        claim += (": sooner" if made.better is group else ": later") if made.shown else doubt_words(made)
        sure, reason = limited_confidence(made.confidence, group, whole), made.reason
    return Finding(
        subject=str(group.cell.workload),
        kind="federated-waiting",
        scope=scope,
        claim=f"{claim}.",
        short=claim,
        named=True,
        confidence=sure,
        contrasts=(made,) if made is not None and not late else (),
        groups=(group, whole),
        evidence=joined(
            f"updates are stale by {max((int(told.get('most', 0)) for told in stale), default=0)} models at most",
            "" if late else f"to the target {number(turns[0])} turns of clients, and {number(turns[1])}",
            "time is simulated: clients' turns take it, and nothing else",
            blind_words((group, whole)),
            reason,
        ),
    )


def _methods(context: Context, workload: str) -> Iterator[Finding]:
    """Say what clients gain by more than plain local steps."""
    groups = usable(learned(context, workload))
    scope_of = scopes(groups, *METHOD)
    for members in alike(groups, *METHOD).values():
        made = planned(context, "method", members)
        if made:
            said = [f"{method_words(pair.group.cell)} ends {_far(pair, score_of(members))}" for pair in made]
            claim = f"beside plain local steps, {'; '.join(said)}"
            own = [method_words(pair.group.cell) for pair in made if of_own_models(pair.group)]
            level = f"scored by each client's own model: {names(own, 9)}" if own else ""
            yield _beside(made, "method", claim, method_words, scope_of(made[0].base), level)


def _partitions(context: Context, workload: str) -> Iterator[Finding]:
    """Say what rows that are not alike cost the usual aggregation."""
    groups = usable(learned(context, workload))
    scope_of = scopes(groups, "partition")
    for of_all in alike(groups, *HOW, "partition").values():
        # The first aggregation stands for the others, which stand in the table.
        for members in list(alike(of_all, "partition").values())[:1]:
            made = planned(context, "partition", members)
            if made:
                yield _partition(made, score_of(members), scope_of(made[0].base))


def _partition(made: Sequence[Contrast], score: Score, scope: str) -> Finding:
    base: FederateGroup = made[0].base
    said = "; ".join(f"{_far(pair, score, f' with {pair.group.cell.partition}')}" for pair in made)
    claim = f"beside rows dealt out {base.cell.partition}, {how_words(base.cell)} ends {said}"
    level = f"{score.words} {tenths(score.at_end(base) or 0.0)} with {base.cell.partition}" if score.is_share else ""
    return _beside(made, "partition", claim, lambda cell: cell.partition, scope, level)


def _far(pair: Contrast, score: Score, where: str = "") -> str:
    """Write how far a pair's sides end from each other, and whether that is shown."""
    known = "which is not told apart"
    if pair.answer is Answer.SAME:
        known = f"the same within {percent(pair.comparison.margin)}"
    return apart_words(apart(pair.group, pair.base, pair.metric), score) + where + ("" if pair.shown else f", {known}")


def _beside(
    made: Sequence[Contrast], rule: str, claim: str, name: Callable[[FederateCell], str], scope: str, level: str = ""
) -> Finding:
    """Tell of the contrasts of a rule that have one base; `name` says what is told apart."""
    base: FederateGroup = made[0].base
    groups = base, *(pair.group for pair in made)
    worst = [(name(side.cell), median(side, "worst_clients_score")) for side in groups]
    tenth = [f"{tenths(value)} with {what}" for what, value in worst if value is not None]
    decided = [pair.confidence for pair in made if pair.answer is not Answer.OPEN]
    return Finding(
        subject=str(base.cell.workload),
        kind=f"federated-{rule}",
        scope=scope,
        claim=f"{claim}.",
        short=claim,
        named=True,
        confidence=_checked(lowest_confidence(decided) if decided else Confidence.INCONCLUSIVE, groups),
        contrasts=tuple(made),
        groups=groups,
        evidence=joined(
            level,
            f"the worst tenth of clients {names(tenth, 9)}" if tenth else "",
            blind_words(groups),
            *(f"{name(pair.group.cell)}: {pair.reason}" for pair in made),
        ),
    )
