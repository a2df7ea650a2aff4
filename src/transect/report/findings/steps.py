"""Findings on steps: what limits the fastest cell, and what more ranks bring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from transect.analysis.bounds import step_bound
from transect.analysis.comparisons import Comparison, Sureness, Verdict, compare
from transect.analysis.groups import Group
from transect.analysis.scaling import METRIC, Efficiency, efficiencies
from transect.analysis.superlinear import possible_causes
from transect.domain.cell import Cell
from transect.domain.metrics import Direction
from transect.report.context import Context
from transect.report.findings.deciding import same_within
from transect.report.findings.decision import Decision, LeftOut, factor_interval, why_not
from transect.report.findings.finding import Finding, floor_text, median, no_firmer
from transect.report.text import count, number, percent, quantity

__all__ = ["limit_finding", "scaling_findings"]

# The column of the decision table.
COLUMN = "scale"


_PARTS = {
    "compute": "computing", "communication": "waiting for messages", "input": "loading batches",
}  # fmt: skip


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
        return [_limit(claim, evidence, Sureness.TENTATIVE, workload, best)]
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
        return [_limit(claim, evidence, Sureness.OPEN, workload, best)]
    return [_limit(claim, evidence, Sureness.TENTATIVE, workload, best)]


def _limit(claim: str, evidence: str, sureness: Sureness, workload: str, best: Group) -> Finding:
    return replace(_finding("limit", claim + ".", evidence, sureness, workload), groups=(best,))


def scaling_findings(
    context: Context, workload: str, groups: Sequence[Group], labels: Mapping[Cell, str]
) -> list[Finding]:
    """Say what the most ranks bring, and which efficiencies are too good; groups of one kind."""
    kind = groups[0].kind if groups else None
    floor = context.floors.get("train", workload, METRIC, kind)
    every = efficiencies(groups, floor)
    over = sum(group.over_subscribed for group in groups)
    note = f"; {count(over, 'cell')} with more ranks than cores left out" if over else ""
    findings = []
    if every:
        top = max(every, key=lambda gain: (gain.group.cell.ranks, gain.rate, gain.group.cell.id))
        cell, base = top.group.cell, top.base.cell
        gain = top.rate / top.base_rate
        verb = f"speeds training up {number(gain)} times" if gain > 1 else (
            f"slows training down to {percent(gain)}")  # fmt: skip
        brings = f"{verb}, an efficiency of {percent(top.value)}"
        across = f" over {cell.network}" if cell.network and cell.nodes > 1 else ""
        sureness = Sureness.TENTATIVE
        difference = compare(
            top.group.values(METRIC),
            top.base.values(METRIC),
            direction=Direction.HIGHER,
            floor=floor,
        )
        difference = difference.under(top.group, top.base) if difference else None
        if difference is not None:
            note += f"; {difference.reason}"
            sureness = no_firmer(difference.sureness, top.group, top.base)
        if difference is None or difference.verdict is Verdict.SAME:
            brings = "makes no difference in speed that stands out"
            sureness = Sureness.OPEN if difference is None else sureness
            if difference is not None and difference.equal:
                brings = f"leaves the speed {same_within(difference)}"
        way = " · ".join((cell.get("framework"), cell.get("strategy")))
        claim = (
            f"going from {count(base.ranks, 'rank')} to {cell.ranks} with {way}{across} {brings}."
        )
        evidence = (
            f"{top.kind} scaling, base {labels[base]} at {number(top.base_rate)} samples/s, "
            f"then {number(top.rate)} samples/s; "
            f"{floor_text(floor)}{note}"
        )
        told = (difference,) if difference else ()
        findings.append(
            replace(
                _finding("scaling", claim, evidence, sureness, workload, told),
                decision=_scaled(top, every, difference, way, _apart(groups, labels)),
                groups=(top.group, top.base),
            )
        )
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
        findings.append(_finding("suspect", claim, evidence, Sureness.OPEN, workload))
    return findings


def _scaled(
    top: Efficiency, every: Sequence[Efficiency], difference: Comparison | None, way: str,
    left_out: tuple[LeftOut, ...],
) -> Decision:  # fmt: skip
    """Say what the most ranks bring, who comes next on as many, and what share is communication."""
    ranks = top.group.cell.ranks
    gain = top.rate / top.base_rate
    interval = factor_interval(difference) if difference is not None else None
    # The interval is that of the better side over the other: turned over where ranks slow it down.
    if interval is not None and gain >= 1:
        ends = f"95 % interval {number(interval.low)} to {number(interval.high)}"
    elif interval is not None:
        ends = f"95 % interval {number(1 / interval.high)} to {number(1 / interval.low)}"
    else:
        ends = "too few runs for an interval"
    step, waited = (median(top.group, name) for name in ("step_time", "communication_time"))
    limit = f"{percent(waited / step)} of a step is waiting for messages" if step and waited else ""
    alike = sorted(
        (gain for gain in every if gain.group.cell.ranks == ranks and gain.group is not top.group),
        key=lambda gain: (-gain.rate, gain.group.cell.id),
    )
    second = ""
    if alike:
        cell = alike[0].group.cell
        second = f"{cell.framework} · {cell.strategy}, {number(alike[0].rate)} samples/s"
    same = difference is None or difference.verdict is Verdict.SAME
    return Decision(
        column=COLUMN, scope=f"on {count(ranks, 'rank')}", winner="" if same else way, second=second,
        instead="" if not same else (
            f"{ranks} ranks and {top.base.cell.ranks}: the same speed within {percent(difference.margin)}"
            if difference is not None and difference.equal
            else f"whether {ranks} ranks are faster than {top.base.cell.ranks} is too close to tell"
        ),
        gain=f"{number(gain)} times the speed of {count(top.base.cell.ranks, 'rank')} ({ends}), "
        f"efficiency {percent(top.value)}",
        value=f"{number(top.rate)} samples/s", limit=limit,
        quality="loss as the reference" if top.group.values("equality_ratio") else "loss not checked",
        left_out=left_out,
    )  # fmt: skip


def _apart(groups: Sequence[Group], labels: dict[Cell, str]) -> tuple[LeftOut, ...]:
    """Name the cells of several ranks that carry no claim on scaling, and why."""
    spread = [(group, why_not(group)) for group in groups if group.cell.ranks > 1]
    return tuple(
        LeftOut(what=labels[group.cell], why=why or (
            "wrong result" if group.wrong else "more ranks than cores"
        ))
        for group, why in spread if why or group.wrong or group.over_subscribed
    )  # fmt: skip


def _finding(
    kind: str, claim: str, evidence: str, sureness: Sureness, subject: str,
    comparisons: tuple[Comparison, ...] = (),
) -> Finding:  # fmt: skip
    return Finding(
        subject=subject, claim=claim, evidence=evidence, sureness=sureness, kind=kind,
        comparisons=comparisons,
    )  # fmt: skip
