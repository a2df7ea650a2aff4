"""Findings on training: who is first to the quality, what limits it, how it scales, is it right."""

from __future__ import annotations

from collections.abc import Sequence

from transect.analysis.bounds import step_bound
from transect.analysis.comparisons import Sureness, Verdict, compare
from transect.analysis.groups import Group, group_labels, is_wrong
from transect.analysis.scaling import METRIC, efficiencies
from transect.analysis.statistics import NoiseFloor
from transect.domain.cell import Cell
from transect.domain.metrics import Direction
from transect.report.context import Context
from transect.report.findings.finding import Finding, Race, machine_differences, names, race
from transect.report.text import count, number, percent, quantity

__all__ = ["equality_findings", "quality_target", "reaches_target", "training_findings"]

TIME = "time_to_quality"


def quality_target(groups: Sequence[Group]) -> str:
    """Return the target in words, e.g. `accuracy 0.95`."""
    for group in groups:
        for record in group.records:
            quality = record.details.get("quality")
            if isinstance(quality, dict) and quality.get("target") is not None:
                return f"{quality.get('metric', 'quality')} {quality['target']}"
    return "the quality target"


def reaches_target(group: Group) -> bool:
    """Whether every usable repeat reached the target: one that did not took infinitely long."""
    return bool(group.ok) and len(group.values(TIME)) == len(group.ok)


def training_findings(context: Context) -> list[Finding]:
    """Per workload: the fastest to the same quality, its limit, and the scaling."""
    found: list[Finding] = []
    for workload in context.workloads("train"):
        groups = context.of("train", workload)
        labels = group_labels(groups, always=("ranks",))
        found += _fastest(context, workload, groups, labels)
        found += _scaling(context, workload, groups, labels)
    return found


def _fastest(
    context: Context, workload: str, groups: list[Group], labels: dict[Cell, str]
) -> list[Finding]:
    target = quality_target(groups)
    running = [g for g in groups if g.ok and not g.wrong]
    able = [g for g in running if reaches_target(g) and not g.over_subscribed]
    floor = context.floors.get("train", workload, TIME)
    result = race(able, TIME, floor)
    left_out = _left_out(groups, running)
    if result is None:
        reason = "no trainer finished with a right result" if not running else (
            f"no cell within its cores reached {target} in every run")  # fmt: skip
        text = f"{workload}: {reason}, so no speed is compared."
        return [_finding("fastest", text, left_out, Sureness.FIRM, workload)]
    best, label = result.best, labels[result.best.cell]
    summary = best.summary(TIME)
    assert summary is not None
    took = quantity(summary.median, "s")
    accuracy = best.summary("accuracy")
    reached = f"accuracy at the end {number(accuracy.median)}" if accuracy else "accuracy unknown"
    evidence = [
        f"median of {count(summary.count, 'run')}"
        + (f", {summary.word} {quantity(summary.low, 's')} to {quantity(summary.high, 's')}"
           if summary.count > 1 else ""),
        reached,
        f"{quantity(_median(best, METRIC), '1/s').removesuffix(' 1/s')} samples/s",
    ]  # fmt: skip
    if result.tied:
        others = [labels[group.cell] for group in result.tied]
        text = (
            f"{workload}: {names([label, *others], 4)} reach {target} soonest and cannot be told "
            f"apart: the best median is {took}."
        )
        sureness = Sureness.OPEN
    elif result.runner_up is not None and result.comparison is not None:
        text = (
            f"{workload}: {label} reaches {target} soonest, in {took}, "
            f"{number(result.comparison.factor)} times sooner than {labels[result.runner_up.cell]}."
        )
        sureness = result.comparison.sureness
    else:
        text = f"{workload}: {label} reaches {target} in {took}; nothing stands to compare it with."
        sureness = Sureness.TENTATIVE
    evidence += _caveats(result)
    if left_out:
        evidence.append(left_out)
    rival = result.runner_up
    if best.disturbed or (rival and rival.disturbed) or not best.values("equality_ratio"):
        sureness = Sureness.TENTATIVE if sureness is Sureness.FIRM else sureness
    return [
        _finding("fastest", text, "; ".join(evidence), sureness, workload),
        *_limit(context, workload, best, label),
    ]


def _caveats(result: Race) -> list[str]:
    notes = [result.comparison.reason] if result.comparison else []
    if result.best.disturbed:
        notes.append("other processes were at work during one of its runs")
    if not result.best.values("equality_ratio"):
        notes.append("its loss was not checked against the reference")
    if result.runner_up is not None:
        differing = machine_differences(result.best, result.runner_up)
        if differing:
            notes.append(f"the two differ in {names(differing, 9)} as well")
    return notes


def _left_out(groups: list[Group], running: list[Group]) -> str:
    parts = []
    over = [g for g in running if g.over_subscribed]
    late = [g for g in running if not reaches_target(g) and not g.over_subscribed]
    wrong = [g for g in groups if g.wrong]
    for some, why in (
        (over, "more ranks than cores"),
        (late, "target missed in at least one run"),
        (wrong, "wrong result"),
        ([g for g in groups if not g.ok and not g.wrong], "failed or skipped"),
    ):
        if some:
            parts.append(f"{len(some)} for {why}")
    return f"not compared: {', '.join(parts)}" if parts else ""


def _limit(context: Context, workload: str, best: Group, label: str) -> list[Finding]:
    step = _median(best, "step_time")
    if not step:
        return []
    shares = {
        part: (_median(best, f"{part}_time") or 0.0) / step
        for part in ("compute", "communication", "input")
    }
    part, share = max(shares.items(), key=lambda item: item[1])
    bound = step_bound(best, context.rates)
    what = {"compute": "computing", "communication": "communication", "input": "loading batches"}
    text = f"{workload}: {what[part]} takes {percent(share)} of a step of {label}"
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


def _scaling(
    context: Context, workload: str, groups: list[Group], labels: dict[Cell, str]
) -> list[Finding]:
    floor = context.floors.get("train", workload, METRIC)
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
            f"{_floor_text(floor)}{note}"
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


def _floor_text(floor: NoiseFloor | None) -> str:
    return f"noise floor {percent(floor.relative, 1)}" if floor else "no noise floor known"


def equality_findings(context: Context) -> list[Finding]:
    """Say whether every trainer follows the reference's loss within its tolerance."""
    checked = [
        record
        for record in context.records
        if record.stage == "train"
        and (is_wrong(record) or record.value("equality_ratio") is not None)
    ]
    if not checked:
        return []
    bad = [record.cell_id.split("~")[0] for record in checked if is_wrong(record)]
    ratios = [record.value("equality_ratio") for record in checked]
    worst = max((ratio for ratio in ratios if ratio is not None), default=None)
    good = len(checked) - len(bad)
    if bad:
        text = (
            f"{good} of {count(len(checked), 'training run')} follow the reference within "
            f"tolerance; {names(bad)} {'does' if len(bad) == 1 else 'do'} not."
        )
    else:
        text = f"All {count(len(checked), 'training run')} follow the reference within tolerance."
    evidence = (
        f"largest deviation {number(worst)} times its tolerance, checked at every step"
        if worst is not None
        else "by the status of the records"
    )
    return [_finding("equality", text, evidence, Sureness.FIRM, "equality")]


def _median(group: Group, name: str) -> float | None:
    summary = group.summary(name)
    return summary.median if summary else None


def _finding(kind: str, text: str, evidence: str, sureness: Sureness, about: str) -> Finding:
    return Finding(text=text, evidence=evidence, sureness=sureness, kind=kind, about=about)
