"""Findings on steps: what limits the fastest cell, and what more ranks bring."""

from __future__ import annotations

from collections.abc import Sequence

from transect.analysis.bounds import step_bound
from transect.analysis.comparisons import Sureness, Verdict, compare
from transect.analysis.groups import Group
from transect.analysis.scaling import METRIC, efficiencies
from transect.analysis.statistics import NoiseFloor
from transect.domain.cell import Cell
from transect.domain.metrics import Direction
from transect.report.context import Context
from transect.report.findings.finding import Finding
from transect.report.text import count, number, percent, quantity

__all__ = ["floor_text", "limit_finding", "median", "scaling_findings"]


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
        text = f"{workload}: {_PARTS[part]} takes {percent(share)} of a step of {label}"
    elif bound is None:
        return []
    else:
        # What a library keeps to itself may be the longest part.
        part, text = "", f"{workload}: what a step of {label} is made of is not told"
    if bound is None:
        known = context.rates.threads()
        why = (
            f"benchmarks ran with {', '.join(map(str, known))} threads, none fits this cell"
            if known
            else "no benchmark of this machine ran"
        )
        evidence = f"no bound to hold it against: {why}"
        return [_finding("limit", text + ".", evidence, Sureness.TENTATIVE, workload)]
    reached = bound.time_s / step
    text += f"; the step reaches {percent(reached)} of the bound set by {bound.kind}"
    if part == "compute" and reached < 0.2:
        text += ", so overhead around the arithmetic limits it, not the hardware"
    evidence = (
        f"step {quantity(step, 's')}, bound {quantity(bound.time_s, 's')} from "
        f"{quantity(bound.flops.value, 'FLOP/s')} ({bound.flops.benchmark}) and "
        f"{quantity(bound.bandwidth.value, 'B/s')} ({bound.bandwidth.benchmark}) with "
        f"{count(bound.flops.threads, 'thread')}"
    )
    if reached > 1:
        text += "; more than the bound allows, so the bound or the count of operations is off"
        return [_finding("limit", text + ".", evidence, Sureness.OPEN, workload)]
    return [_finding("limit", text + ".", evidence, Sureness.TENTATIVE, workload)]


def scaling_findings(
    context: Context, workload: str, groups: Sequence[Group], labels: dict[Cell, str]
) -> list[Finding]:
    """Say what the most ranks bring, and which efficiencies are too good; groups of one kind."""
    kind = groups[0].kind if groups else None
    floor = context.floors.get("train", workload, METRIC, kind)
    every = efficiencies(groups, floor)
    over = sum(group.over_subscribed for group in groups)
    note = f"; {count(over, 'cell')} with more ranks than cores left out" if over else ""
    found = []
    if every:
        top = max(every, key=lambda one: (one.group.cell.ranks, one.rate, one.group.cell.id))
        cell, base = top.group.cell, top.base.cell
        gain = top.rate / top.base_rate
        verb = f"speeds training up {number(gain)} times" if gain > 1 else (
            f"slows training down to {percent(gain)}")  # fmt: skip
        claim = f"{verb}, an efficiency of {percent(top.value)}"
        across = f" over {cell.network}" if cell.network and cell.nodes > 1 else ""
        sureness = Sureness.TENTATIVE
        found_difference = compare(
            top.group.values(METRIC),
            top.base.values(METRIC),
            direction=Direction.HIGHER,
            floor=floor,
        )
        if found_difference is None or found_difference.verdict is Verdict.SAME:
            claim, sureness = "makes no difference in speed that stands out", Sureness.OPEN
            note += f"; {found_difference.reason}" if found_difference else ""
        text = (
            f"{workload}: going from {count(base.ranks, 'rank')} to {cell.ranks} with "
            f"{cell.framework} · {cell.strategy}{across} {claim}."
        )
        evidence = (
            f"{top.kind} scaling, base {labels[base]} at {number(top.base_rate)} samples/s, "
            f"then {number(top.rate)} samples/s; "
            f"{floor_text(floor)}{note}"
        )
        found.append(_finding("scaling", text, evidence, sureness, workload))
    odd = [one for one in every if one.superlinear]
    if odd:
        worst = max(odd, key=lambda one: one.value)
        text = (
            f"{workload}: {count(len(odd), 'efficiency', 'efficiencies')} above 100 %, up to "
            f"{percent(worst.value)} for {labels[worst.group.cell]}: look at the base before "
            "trusting it."
        )
        evidence = f"base {labels[worst.base.cell]} at {number(worst.base_rate)} samples/s"
        found.append(_finding("suspect", text, evidence, Sureness.OPEN, workload))
    return found


def floor_text(floor: NoiseFloor | None) -> str:
    """Write a noise floor, or that there is none."""
    return f"noise floor {percent(floor.relative, 1)}" if floor else "no noise floor known"


def median(group: Group, name: str) -> float | None:
    """Return the median of a metric, or None."""
    summary = group.summary(name)
    return summary.median if summary else None


def _finding(kind: str, text: str, evidence: str, sureness: Sureness, about: str) -> Finding:
    return Finding(text=text, evidence=evidence, sureness=sureness, kind=kind, about=about)
