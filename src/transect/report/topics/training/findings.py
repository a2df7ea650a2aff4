"""Findings on training: who is first to the quality, and what limits it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from transect.analysis.groups import Group
from transect.analysis.kinds import Kind, kinds_of, main_kind
from transect.analysis.labels import group_labels
from transect.analysis.quality import TIME, may_be_ranked, quality_target, reaches_target, target_of
from transect.analysis.scaling import METRIC
from transect.domain.cell import Cell
from transect.domain.until import MARGIN
from transect.report.engine.context import Context
from transect.report.engine.deciding import same_within
from transect.report.engine.decision import Decision, LeftOut, gain_text, tie_text, why_not
from transect.report.engine.finding import (
    Finding,
    Race,
    joined,
    limited_confidence,
    lost_runs,
    machine_differences,
    median,
    names,
    race,
)
from transect.report.engine.text import count, number, quantity
from transect.report.topics.training.steps import limit_finding, scaling_findings
from transect.stats.comparisons import Comparison, Confidence
from transect.stats.samples import summarise

# The column of the decision table.
COLUMN = "train"


def _below_target(group: Group) -> bool:
    """Whether it ends below the accuracy that it had reached on the way."""
    _, _, least = target_of(group).rpartition(" ")
    reached = median(group, "accuracy")
    try:
        return reached is not None and target_of(group).startswith("accuracy ") and reached < float(least)
    except ValueError:
        return False


def training_findings(context: Context) -> list[Finding]:
    """Per workload: the fastest to the same quality, its limit, and the scaling.

    Each race is among cells of one kind of training. A kind other than the workload's main one has
    a race of its own when two cells can run in it; sums of gradients and synthetic input have none.
    """
    findings: list[Finding] = []
    for workload in context.workloads("train"):
        groups = context.of("train", workload)
        main = main_kind(groups)
        findings += _fastest(context, workload, groups, main)
        for kind in kinds_of(groups):
            members = [g for g in groups if g.kind == kind and _able(g)]
            if kind != main and not kind.synthetic and not kind.summed and len(members) > 1:
                findings += _fastest(context, workload, groups, kind)[:1]
        members = [group for group in groups if group.kind == main]
        findings += scaling_findings(context, workload, members, group_labels(members, always=("ranks",)))
    return findings


def _able(group: Group) -> bool:
    """Whether it may win: right, within its cores, and at the target in every run."""
    return not group.wrong and not group.over_subscribed and may_be_ranked(group)


def _fastest(context: Context, workload: str, groups: list[Group], kind: Kind) -> list[Finding]:
    if kind.synthetic:
        claim = "all its cells ran on synthetic input, so there is no quality to reach."
        instead = Decision(column=COLUMN, instead="synthetic input alone: no quality to reach")
        return [_finding(workload, claim, count(len(groups), "cell"), Confidence.CONFIRMED, decision=instead)]
    every, groups = groups, [group for group in groups if group.kind == kind]
    labels = group_labels(groups, always=("ranks",))
    target = quality_target(groups)
    running = [g for g in groups if g.ok and not g.wrong]
    # Who stops earlier is no faster.
    other_target = [g for g in running if target_of(g) not in ("", target)]
    able = [g for g in running if _able(g) and g not in other_target]
    # All trainers of a kind have the same starts: a seed that takes more epochs does so for all.
    floor = context.floors.paired("train", workload, TIME, kind)
    result = race(able, TIME, floor, paired=True)
    apart = _apart(groups, [g for g in running if g not in other_target])
    apart += [("another target", other_target)] if other_target else []
    left_out = _left_out(apart, groups, every)
    named = tuple(LeftOut(what=labels[g.cell], why=why_not(g) or why) for why, members in apart for g in members)
    named += _other_kinds(every, kind) if kind == main_kind(every) else ()
    of_kind = f"{_with(kind.words)}, " if kind.words else ""
    if result is None:
        reason = (
            "no trainer finished with a right result"
            if not running
            else (f"no cell within its cores reached {target} in every run")
        )
        if any(g.unverified for g in running):
            reason += " before its check went blind"
        claim = f"{of_kind}{reason}, so no speed is compared."
        instead = Decision(column=COLUMN, instead=reason, left_out=named)
        return [_finding(workload, claim, left_out, Confidence.CONFIRMED, decision=instead)]
    best, label = result.best, labels[result.best.cell]
    summary = summarise(result.values)
    if summary is None:
        raise ValueError(f"{label}: won without a time")
    few = summary.count < len(best.values(TIME))
    took = quantity(summary.median, "s")
    accuracy = best.summary("accuracy")
    reached = f"accuracy at the end {number(accuracy.median)}" if accuracy else "accuracy unknown"
    reached += ", below the target" if _below_target(best) else ""
    reached += f"; {lost}" if (lost := lost_runs(best)) else ""
    evidence = [
        f"median of {count(summary.count, 'run')}"
        + (
            f", {summary.word} {quantity(summary.low, 's')} to {quantity(summary.high, 's')}"
            if summary.count > 1
            else ""
        )
        + (", the starts that all cells ran" if few else ""),
        reached,
        f"{quantity(median(best, METRIC), '1/s').removesuffix(' 1/s')} samples/s",
    ]
    if result.tied:
        others = [labels[group.cell] for group in result.tied]
        together = f"{of_kind}{names([label, *others], 4)} reach {target} soonest and"
        if all(tie.equal for tie in result.ties):
            claim = f"{together} are {same_within(result.ties[0])}: the median of the first is {took}."
        else:
            claim = f"{together} cannot be told apart: the median of the first is {took}."
        confidence = result.confidence
    elif result.runner_up is not None and result.comparison is not None:
        claim = (
            f"{of_kind}{label} reaches {target} soonest, in {took}, "
            f"{number(result.comparison.factor)} times sooner than {labels[result.runner_up.cell]}."
        )
        confidence = result.confidence
    else:
        claim = f"{of_kind}{label} reaches {target} in {took}; nothing stands to compare it with."
        confidence = Confidence.PROVISIONAL
    evidence += _caveats(result)
    if left_out:
        evidence.append(left_out)
    rival = result.runner_up
    loud = best.noisy or (rival is not None and rival.noisy)
    if loud or lost or not best.values("equality_ratio"):
        confidence = Confidence.PROVISIONAL if confidence is Confidence.CONFIRMED else confidence
    confidence = limited_confidence(confidence, best, rival)
    unchecked = "" if best.values("equality_ratio") else "; loss not checked"
    limits = limit_finding(context, workload, best, label)
    return [
        _finding(
            workload,
            claim,
            joined(*evidence),
            confidence,
            named=not of_kind,
            comparisons=result.comparisons,
            decision=_decision(result, labels, took, f"{target}, {reached}{unchecked}", limits, named, kind.words),
        ),
        *limits,
    ]


def _decision(
    result: Race,
    labels: Mapping[Cell, str],
    took: str,
    quality: str,
    limits: Sequence[Finding],
    left_out: tuple[LeftOut, ...],
    kind: str,
) -> Decision:
    rival = labels[result.runner_up.cell] if result.runner_up is not None else ""
    later = next((group for group in result.ranked[1:] if group not in result.tied), None)
    return Decision(
        column=COLUMN,
        scope=_with(kind) if kind else "",
        winner=labels[result.best.cell],
        value=took,
        quality=quality,
        tied=tuple(labels[group.cell] for group in result.tied),
        equal=bool(result.ties) and all(tie.equal for tie in result.ties),
        margin=result.ties[0].margin if result.ties else MARGIN,
        gain=tie_text(result.comparison, rival) if result.tied else gain_text(result.comparison, "sooner than", rival),
        limit=_limit_words(limits, labels[result.best.cell]),
        second=labels[later.cell] if later is not None else "",
        left_out=left_out,
    )


def _with(kind: str) -> str:
    """Write a kind's words as a condition: `with fp64`, `in podman`."""
    return kind if kind.startswith("in ") else f"with {kind}"


def _limit_words(limits: Sequence[Finding], label: str) -> str:
    """Write what a step is made of and how near it is to its bound, for who reads the winner beside it."""
    limit = limits[0].claim.removesuffix(".").partition(", so ")[0] if limits else ""
    return limit.replace(f" of {label}", "").replace("; the step reaches", ",")


def _caveats(result: Race) -> list[str]:
    notes = [result.comparison.reason] if result.comparison else []
    if result.best.noisy:
        notes.append("other processes were at work during its runs")
    if not result.best.values("equality_ratio"):
        why = f" ({result.best.no_reference})" if result.best.no_reference else ""
        notes.append(f"its loss was not checked against the reference{why}")
    if (step := result.best.check_inconclusive_from) is not None:
        then = ", and from there on in restarts" if result.best.values("restart_ratio") else ""
        notes.append(f"its loss could be checked until step {step}{then}")
    if result.runner_up is not None:
        differing = machine_differences(result.best, result.runner_up)
        if differing:
            notes.append(f"the two differ in {names(differing, 9)} as well")
    return notes


def _apart(groups: Sequence[Group], running: Sequence[Group]) -> list[tuple[str, list[Group]]]:
    """Return the groups that ran in no race, by why not."""
    late = [g for g in running if not reaches_target(g) and not g.over_subscribed]
    unseen = [g for g in running if reaches_target(g) and g.unverified and not g.over_subscribed]
    every = [
        ("more ranks than cores", [g for g in running if g.over_subscribed]),
        ("target missed in at least one run", late),
        ("not checkable until the target", unseen),
        ("wrong result", [g for g in groups if g.wrong and not g.diverged]),
        ("a loss that diverged", [g for g in groups if g.diverged]),
        ("failed or skipped", [g for g in groups if not g.ok and not g.wrong]),
    ]
    return [(why, members) for why, members in every if members]


def _other_kinds(groups: Sequence[Group], main: Kind) -> tuple[LeftOut, ...]:
    """Name the groups of another training that have no race of their own; those that have stand beside."""
    left_out = []
    for kind in kinds_of(groups):
        members = [group for group in groups if group.kind == kind]
        raced = not kind.synthetic and not kind.summed and sum(map(_able, members)) > 1
        if kind != main and not raced:
            labels = group_labels(members, always=("ranks",))
            words = kind.words or "the usual one"
            left_out += [
                LeftOut(what=f"{labels[group.cell]}, {words}", why=why_not(group) or "another training")
                for group in members
            ]
    return tuple(left_out)


def _left_out(apart: Sequence[tuple[str, list[Group]]], groups: Sequence[Group], every: Sequence[Group]) -> str:
    parts = [f"{len(members)} for {why}" for why, members in apart]
    ids = {id(group) for group in groups}
    others = [group for group in every if id(group) not in ids]
    kinds = [kind.words or "the usual training" for kind in kinds_of(others)]
    if others:
        parts.append(f"{len(others)} of another training ({names(kinds, 4)})")
    return f"not compared: {', '.join(parts)}" if parts else ""


def _finding(
    subject: str,
    claim: str,
    evidence: str,
    confidence: Confidence,
    *,
    named: bool = False,
    comparisons: tuple[Comparison, ...] = (),
    decision: Decision | None = None,
) -> Finding:
    return Finding(
        subject=subject,
        claim=claim,
        evidence=evidence,
        confidence=confidence,
        kind="fastest",
        named=named,
        comparisons=comparisons,
        decision=decision,
    )
