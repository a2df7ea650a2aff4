"""Findings on training: who is first to the quality, what holds it back, and what more ranks bring."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from transect.analysis.best import Best, best
from transect.analysis.contrast import Contrast
from transect.analysis.groups import Group
from transect.analysis.kinds import Kind, kinds_of, main_kind
from transect.analysis.labels import group_labels
from transect.analysis.quality import TIME, may_be_ranked, misses_target, quality_target, score_of, target_of
from transect.analysis.scaling import METRIC
from transect.domain.cell import Cell
from transect.report.engine.best_words import with_open
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import basis_words
from transect.report.engine.decision import Decision, LeftOut, why_not
from transect.report.engine.finding import (
    Finding,
    joined,
    limited_confidence,
    lost_runs,
    machine_differences,
    median,
    names,
)
from transect.report.engine.text import count, ends, number, quantity
from transect.report.topics.training.batches import batch_findings
from transect.report.topics.training.facts import apart
from transect.report.topics.training.steps import limit_finding, scaling_findings
from transect.report.topics.training.words import among, first_words, more_words, namer, said_confidence, unknown_namer
from transect.stats.comparisons import Confidence

# The column of the decision table.
COLUMN = "train"


def training_findings(context: Context) -> list[Finding]:
    """Per workload: the fastest to the same quality, what holds it back, what more ranks bring; then batches side by side.

    Each race is among cells of one kind of training. A kind other than the workload's main one has
    a race of its own when two cells can run in it; sums of gradients and synthetic input have none.
    """
    findings: list[Finding] = []
    for workload in context.workloads("train"):
        groups = context.of("train", workload)
        main = main_kind(groups)
        findings += _fastest(context, workload, groups, main)
        for kind in kinds_of(groups):
            able = [g for g in groups if g.kind == kind and _able(g)]
            if kind != main and not kind.synthetic and not kind.summed and len(able) > 1:
                findings += [made for made in _fastest(context, workload, groups, kind) if made.kind == "fastest"]
        findings += scaling_findings(context, workload, [group for group in groups if group.kind == main])
    return findings + batch_findings(context)


def _able(group: Group) -> bool:
    """Whether it may win: right, within its cores, and at the target in every run."""
    return bool(group.ok) and not group.wrong and not group.over_subscribed and may_be_ranked(group)


def _fastest(context: Context, workload: str, every: list[Group], kind: Kind) -> list[Finding]:
    if kind.synthetic:
        claim = "all its cells ran on synthetic input, so there is no quality to reach."
        instead = Decision(column=COLUMN, instead="synthetic input alone: no quality to reach")
        return [_nobody(workload, claim, count(len(every), "cell"), instead)]
    groups = [group for group in every if group.kind == kind]
    target = quality_target(groups)
    # Who stops earlier is no faster.
    other = [g for g in groups if g.ok and not g.wrong and target_of(g) not in ("", target)]
    able = [g for g in groups if _able(g) and g not in other]
    why = apart([g for g in groups if g not in other]) + ([("another target", other)] if other else [])
    labels = group_labels(groups, always=("ranks",))
    left_out = tuple(LeftOut(what=labels[g.cell], why=why_not(g) or w) for w, members in why for g in members)
    left_out += _other_kinds(every, kind) if kind == main_kind(every) else ()
    apart_words = f"not compared: {', '.join(f'{len(members)} for {w}' for w, members in why)}" if why else ""
    found = best(among(context.contrasts.of("training.fastest", workload), able), able, metric=TIME)
    if found is None:
        claim = f"{_reason(groups, target)}, so there is no fastest way."
        instead = Decision(column=COLUMN, instead=claim.removesuffix("."), left_out=left_out)
        return [_nobody(workload, _with(kind) + claim, apart_words, instead)]
    first, name = found.first, namer(able)
    took = quantity(median(first, TIME), "s")
    # What its own framework gains by more ranks is a sentence of its own, with a confidence of its own.
    ways = [c for c in found.contrasts if c.base is first and c.group.cell.ranks > first.cell.ranks]
    others = {group.cell.get("framework") for group in able} - {first.cell.get("framework")}
    race = found.without([c.group for c in ways]) if first.cell.ranks == 1 and others else found
    claim = first_words(race, able, took)
    if len(able) == 1:
        claim += "; nothing stands to compare it with"
    fastest = Finding(
        subject=workload,
        scope=_with(kind).removesuffix(", "),
        kind="fastest",
        named=True,
        short=claim,
        claim=f"{claim.replace(took, f'{took} to {target}', 1)}.",
        confidence=_held(race, first, len(able)),
        contrasts=race.contrasts,
        numbers=found.numbers(lambda group: median(group, TIME)),
        tests=race.tests,
        groups=(first, *(group for group in able if group is not first)),
        evidence=joined(*_evidence(race, first, name), apart_words),
        decision=Decision(
            column=COLUMN,
            scope=_with(kind).removesuffix(", "),
            winner=name(first.cell),
            value=took,
            tied=tuple(name(group.cell) for group in race.tied),
            unknown=tuple(name(group.cell) for group in race.unknown),
            margin=context.analysis_plan.margin,
            left_out=left_out,
        ),
    )
    return [
        *with_open(unknown_namer(race, able), (fastest, race)),
        *limit_finding(context, workload, first),
        *([_second(fastest, ways)] if race is not found and ways else []),
    ]


def _second(first: Finding, ways: Sequence[Contrast]) -> Finding:
    """Say what the best of the ways to use more ranks brings to the framework that is first."""
    way = min(ways, key=lambda made: (made.cost.value, made.group.cell.id))
    return Finding(
        subject=first.subject,
        scope=first.scope,
        kind="fastest",
        short=more_words(way),
        claim=f"{more_words(way)}.",
        confidence=limited_confidence(way.confidence, way.group, way.base),
        contrasts=tuple(ways),
        groups=tuple(made.group for made in ways),
        evidence=joined(basis_words(way), way.reason),
    )


def _held(found: Best, first: Group, amount: int) -> Confidence:
    """Return with which confidence it is first: one that is alone, short of runs or unchecked is not sure to be."""
    confidence = limited_confidence(said_confidence(found), first, *(entry.group for entry in found.excluded[:1]))
    doubt = amount == 1 or lost_runs(first) or not first.values("equality_ratio")
    return Confidence.PROVISIONAL if doubt and confidence is Confidence.CONFIRMED else confidence


def _reached(group: Group) -> str:
    score = score_of([group])
    value = score.at_end(group)
    words = f"{score.words} unknown" if value is None else f"{score.words} at the end {number(value)}"
    side = f", {'above' if score.lower else 'below'} the target" if misses_target(group) else ""
    return joined(words + side, lost_runs(group), _unchecked(group))


def _unchecked(group: Group) -> str:
    if not group.values("equality_ratio"):
        return (
            f"its loss was not checked against the reference{f' ({group.no_reference})' if group.no_reference else ''}"
        )
    if (step := group.check_inconclusive_from) is not None:
        then = ", and from there on in restarts" if group.values("restart_ratio") else ""
        return f"its loss could be checked until step {step}{then}"
    return ""


def _evidence(found: Best, first: Group, name: Callable[[Cell], str]) -> list[str]:
    summary = first.summary(TIME)
    spread = f", {summary.word} {quantity(summary.low, 's')} to {quantity(summary.high, 's')}" if summary else ""
    pieces = [
        f"median of {count(summary.count if summary else 0, 'run')}{spread}",
        _reached(first),
        *([f"{quantity(median(first, METRIC), '1/s').removesuffix(' 1/s')} samples/s"] if first.values(METRIC) else []),
    ]
    for entry in found.excluded[:4]:
        pieces.append(f"{name(entry.group.cell)}: {number(entry.times.value)} times as long ({ends(entry.times)})")
    pieces += [
        f"{name(made.group.cell)} beside {name(made.base.cell)}: {basis_words(made)}" for made in found.contrasts[:1]
    ]
    rival = found.excluded[0].group if found.excluded else None
    if rival is not None and (differing := machine_differences(first, rival)):
        pieces.append(f"the two differ in {names(differing, 9)} as well")
    return pieces


def _reason(groups: Sequence[Group], target: str) -> str:
    """Say why nobody is first: with the best that was reached."""
    running = [g for g in groups if g.ok and not g.wrong]
    if not running:
        return "no trainer finished with a right result"
    within = [g for g in running if not g.over_subscribed]
    if not within:
        return "every cell had more ranks than cores"
    if any(g.unverified for g in within):
        return f"no cell reached {target} in every run before its check went blind"
    score = score_of(within)
    reached = [value for g in within for value in score.values(g)]
    runs = sum(len(g.ok) for g in within)
    none = not any(g.values(TIME) for g in within)
    what = f"none of {count(runs, 'run')} reached {target}" if none else f"no way reached {target} in every run"
    return what + (f" (best {number((min if score.lower else max)(reached))})" if reached else "")


def _nobody(subject: str, claim: str, evidence: str, decision: Decision) -> Finding:
    return Finding(
        subject=subject,
        claim=claim,
        short=claim.removesuffix("."),
        evidence=evidence,
        confidence=Confidence.CONFIRMED,
        kind="fastest",
        decision=decision,
    )


def _with(kind: Kind) -> str:
    """Write a kind's words as a condition: `with fp64, `, `in podman, `; nothing for the usual one."""
    return f"{'' if kind.words.startswith('in ') else 'with '}{kind.words}, " if kind.words else ""


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
                LeftOut(what=f"{labels[g.cell]}, {words}", why=why_not(g) or "another training") for g in members
            ]
    return tuple(left_out)
