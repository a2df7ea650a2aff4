"""Findings on steps: what limits the fastest cell, and what more ranks bring."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from transect.analysis.bounds import step_bound
from transect.analysis.groups import Group
from transect.analysis.labels import group_labels
from transect.analysis.scaling import METRIC, Efficiency, ScalingKind, TrainGroup, efficiencies
from transect.analysis.side_by_side import under
from transect.domain.cell import Cell
from transect.domain.metrics import Direction
from transect.domain.until import MARGIN
from transect.report.engine.context import Context
from transect.report.engine.deciding import same_within
from transect.report.engine.decision import Decision, LeftOut, gain_text, tie_text, why_not
from transect.report.engine.finding import (
    Finding,
    Race,
    floor_text,
    joined,
    limited_confidence,
    lost_runs,
    median,
    names,
    race,
)
from transect.report.engine.text import count, number, percent, quantity
from transect.report.topics.scaling.superlinear import possible_causes
from transect.stats.comparisons import Comparison, Confidence, Verdict, compare

# The column of the decision table.
COLUMN = "scale"


_PARTS = {"compute": "computing", "communication": "waiting for messages", "input": "loading batches"}


def limit_finding(context: Context, workload: str, best: Group, label: str) -> list[Finding]:
    """Say which part of the best group's step is longest, and how near the step is to its bound."""
    step = median(best, "step_time")
    if not step:
        return []
    parts = {part: median(best, f"{part}_time") for part in _PARTS}
    shares = {part: value / step for part, value in parts.items() if value is not None}
    part, share = max(shares.items(), key=lambda item: item[1], default=("", 0.0))
    bound = step_bound(best, context.rates)
    if len(shares) == len(parts):
        claim = f"{_PARTS[part]} takes {percent(share)} of a step of {label}"
    elif bound is None:
        return []
    else:
        # What a library keeps to itself may be the longest part.
        part, claim = "", f"what a step of {label} is made of is not told"
    if bound is None:
        known = context.rates.threads()
        why = (
            f"benchmarks ran with {', '.join(map(str, known))} threads, none fits this cell"
            if known
            else "no benchmark of this machine ran"
        )
        evidence = f"no bound to hold it against: {why}"
        return [_limit(claim, evidence, Confidence.PROVISIONAL, workload, best)]
    reached = bound.time_s / step
    claim += f"; the step reaches {percent(reached)} of the bound set by {bound.kind}"
    if part == "compute" and reached < 0.2:
        claim += ", so overhead around the arithmetic limits it, not the hardware"
    evidence = (
        f"step {quantity(step, 's')}, bound {quantity(bound.time_s, 's')} from "
        f"{quantity(bound.flops.value, 'FLOP/s')} ({bound.flops.benchmark}) and "
        f"{quantity(bound.bandwidth.value, 'B/s')} ({bound.bandwidth.benchmark}) with "
        f"{count(bound.flops.threads, 'thread')}"
    )
    if reached > 1:
        claim += "; more than the bound allows, so the bound or the count of operations is off"
        return [_limit(claim, evidence, Confidence.INCONCLUSIVE, workload, best)]
    return [_limit(claim, evidence, Confidence.PROVISIONAL, workload, best)]


def _limit(claim: str, evidence: str, confidence: Confidence, workload: str, best: Group) -> Finding:
    return replace(_finding("limit", claim + ".", evidence, confidence, workload), groups=(best,))


def scaling_findings(
    context: Context, workload: str, groups: Sequence[TrainGroup], labels: Mapping[Cell, str]
) -> list[Finding]:
    """Say what the most ranks bring, and which efficiencies are too good; groups of one kind."""
    kind = groups[0].kind if groups else None
    floor = context.floors.get("train", workload, METRIC, kind)
    every = efficiencies(groups, floor)
    over = sum(group.over_subscribed for group in groups)
    note = f"; {count(over, 'cell')} with more ranks than cores left out" if over else ""
    findings = []
    if every:
        pool = _on_most_ranks(every)
        result = race([gain.group for gain in pool], METRIC, floor)
        top = next(gain for gain in pool if result is None or gain.group is result.best)
        cell, base = top.group.cell, top.base.cell
        gain = top.gain
        verb = f"speeds training up {number(gain)} times" if gain > 1 else (f"slows training down to {percent(gain)}")
        brings = f"{verb}, an efficiency of {percent(top.value)}"
        across = f" over {cell.network}" if cell.network and cell.nodes > 1 else ""
        confidence = Confidence.PROVISIONAL
        difference = compare(top.group.values(METRIC), top.base.values(METRIC), direction=Direction.HIGHER, floor=floor)
        difference = under(difference, top.group, top.base) if difference else None
        if difference is not None:
            note += f"; {difference.reason}"
            confidence = limited_confidence(difference.confidence, top.group, top.base)
        if difference is None or difference.verdict is Verdict.SAME:
            brings = "makes no difference in speed that stands out"
            confidence = Confidence.INCONCLUSIVE if difference is None else confidence
            if difference is not None and difference.equal:
                brings = f"leaves the speed {same_within(difference)}"
        way = " · ".join((cell.get("framework"), cell.get("strategy")))
        claim = f"going from {count(base.ranks, 'rank')} to {cell.ranks} with {way}{across} {brings}."
        evidence = (
            f"{top.kind} scaling, base {labels[base]} at {number(top.base_rate)} samples/s, "
            f"then {number(top.rate)} samples/s; "
            f"{floor_text(floor)}{note}"
        )
        comparisons = (difference,) if difference else ()
        scaled = _finding("scaling", claim, evidence, confidence, workload, comparisons)
        decision = _scaled(top, difference, way, _apart(groups, labels))
        alone = result is None or not result.comparisons or not decision.winner
        findings.append(replace(scaled, decision=decision if alone else None, groups=(top.group, top.base)))
        if result is not None and not alone:
            findings.append(_most(workload, result, decision))
    odd = [gain for gain in every if gain.superlinear]
    if odd:
        worst = max(odd, key=lambda gain: gain.value)
        claim = (
            f"{count(len(odd), 'efficiency', 'efficiencies')} above 100 %, up to "
            f"{percent(worst.value)} for {labels[worst.group.cell]}: look at the base before "
            "trusting it."
        )
        evidence = (
            f"base {labels[worst.base.cell]} at {number(worst.base_rate)} samples/s; "
            f"{floor_text(floor)}; may be behind it: "
            f"{'; '.join(possible_causes(worst, context.rates)) or 'nothing that the records show'}"
        )
        findings.append(_finding("suspect", claim, evidence, Confidence.INCONCLUSIVE, workload))
    return findings


def _on_most_ranks(every: Sequence[Efficiency]) -> list[Efficiency]:
    """Return the gains on the most ranks with one global batch: a larger one is another training.

    It is that of the base where there is any such, or else that of the highest rate.
    """
    ranks = max(gain.group.cell.ranks for gain in every)
    most = [gain for gain in every if gain.group.cell.ranks == ranks]
    most = [gain for gain in most if gain.kind is ScalingKind.STRONG] or most
    batch = max(most, key=lambda gain: (gain.rate, gain.group.cell.id)).group.global_batch
    return [gain for gain in most if gain.group.global_batch == batch]


def _most(workload: str, result: Race, decision: Decision) -> Finding:
    """Say which of several ways is fastest on the most ranks: what each gains over fewer does not tell."""
    best, rival = result.best, result.runner_up
    labels = group_labels(result.ranked)
    label, rate = labels[best.cell], f"{number(statistics.median(result.values))} samples/s"
    named = labels[rival.cell] if rival is not None else ""
    others = [labels[group.cell] for group in result.tied]
    equal = bool(result.ties) and all(tie.equal for tie in result.ties)
    if others:
        how = f"are {same_within(result.ties[0])}" if equal else "cannot be told apart"
        claim = f"{names([label, *others], 4)} train fastest and {how}: the median of the first is {rate}."
    else:
        factor = number(result.comparison.factor) if result.comparison else ""
        claim = f"{label} trains fastest, {rate}, {factor} times the rate of {named}."
    lost = lost_runs(best)
    confidence = limited_confidence(result.confidence, best, rival)
    if confidence is Confidence.CONFIRMED and lost:
        confidence = Confidence.PROVISIONAL
    later = next((group for group in result.ranked[1:] if group not in result.tied), None)
    return replace(
        _finding(
            "scaling",
            claim,
            joined(
                f"median of {count(len(result.values), 'run')} {rate}",
                decision.quality,
                lost,
                result.comparison.reason if result.comparison else "",
            ),
            confidence,
            workload,
            result.comparisons,
        ),
        topic="most",
        scope=decision.scope,
        named=True,
        groups=result.ranked,
        decision=replace(
            decision,
            winner=label,
            tied=tuple(others),
            equal=equal,
            margin=result.ties[0].margin if result.ties else MARGIN,
            value=f"{decision.value}, {decision.gain}",
            quality=joined(decision.quality, lost),
            gain=tie_text(result.comparison, named) if others else gain_text(result.comparison, "the rate of", named),
            second=labels[later.cell] if later is not None else "",
        ),
    )


def _scaled(top: Efficiency, difference: Comparison | None, way: str, left_out: tuple[LeftOut, ...]) -> Decision:
    """Say what the most ranks bring, and what share is communication."""
    ranks = top.group.cell.ranks
    gain = top.gain
    interval = difference.interval if difference is not None else None
    ends = "too few runs for an interval"
    if interval is not None:
        ends = f"95 % interval {number(interval.low)} to {number(interval.high)}"
    # Of all steps together, as the record has it: a few slow ones may be most of it.
    share = median(top.group, "communication_share")
    limit = f"{percent(share)} of its steps' time is waiting for messages" if share else ""
    same = difference is None or difference.verdict is Verdict.SAME
    if not same:
        instead = "" if gain > 1 else f"slower than on fewer: {way} is the best of it"
    elif difference is not None and difference.equal:
        margin = percent(difference.margin)
        instead = f"{way}: {ranks} ranks and {top.base.cell.ranks} have the same speed within {margin}"
    else:
        instead = f"{way}: whether {ranks} ranks are faster than {top.base.cell.ranks} is too close to tell"
    checked = "loss as the reference" if top.group.values("equality_ratio") else "loss not checked"
    if top.group.ok and not top.group.values("time_to_quality"):
        checked += ", target missed"
    return Decision(
        column=COLUMN,
        scope=f"on {count(ranks, 'rank')}",
        winner="" if instead else way,
        instead=instead,
        gain=f"{number(gain)} times the speed of {count(top.base.cell.ranks, 'rank')} ({ends}), "
        f"efficiency {percent(top.value)}",
        value=f"{number(top.rate)} samples/s",
        limit=limit,
        quality=checked,
        left_out=left_out,
    )


def _apart(groups: Sequence[Group], labels: Mapping[Cell, str]) -> tuple[LeftOut, ...]:
    """Name the cells of several ranks that carry no claim on scaling, and why."""
    spread = [(group, why_not(group)) for group in groups if group.cell.ranks > 1]
    return tuple(
        LeftOut(what=labels[group.cell], why=why or ("wrong result" if group.wrong else "more ranks than cores"))
        for group, why in spread
        if why or group.wrong or group.over_subscribed
    )


def _finding(
    kind: str, claim: str, evidence: str, confidence: Confidence, subject: str, comparisons: tuple[Comparison, ...] = ()
) -> Finding:
    return Finding(
        subject=subject, claim=claim, evidence=evidence, confidence=confidence, kind=kind, comparisons=comparisons
    )
