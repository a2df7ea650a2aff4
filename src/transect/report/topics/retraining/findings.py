"""Findings on retraining: is the path PyTorch's in every language, who is fast, does a relay hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transect.analysis.groups import Group
from transect.domain.record import Cause, Status
from transect.report.engine.context import Context
from transect.report.engine.deciding import same_within
from transect.report.engine.finding import Finding, floor_text, joined, limited_confidence, lowest_confidence, names
from transect.report.engine.text import clipped, count, ends, factor, percent, quantity
from transect.report.topics.retraining.facts import (
    PEERS,
    STEP_TIME,
    RetrainGroup,
    StepRatio,
    is_relay,
    points,
    sorted_by_time,
    step_ratio,
)
from transect.report.topics.serving.runtime_findings import RULE
from transect.stats.comparisons import Confidence, Verdict
from transect.stats.samples import Spread

_MAX_LENGTH = 120


def retraining_findings(context: Context) -> list[Finding]:
    """The path of all, then per workload the fastest step, then each relay."""
    groups: list[RetrainGroup] = context.of("retrain")
    if not groups:
        return []
    return [
        _equality(groups),
        *(finding for name in context.workloads("retrain") for finding in _speed(context, name)),
        *(_relay(group) for group in groups if is_relay(group)),
    ]


def _shares(groups: Sequence[Group]) -> list[float]:
    """Return every usable record's largest deviation as a share of its tolerance."""
    names_ = ("equality_ratio", "weights_equality_ratio")
    return [
        max(known)
        for group in groups
        for record in group.ok
        if (known := [v for name in names_ if (v := record.value(name)) is not None])
    ]


def path_text(groups: Sequence[RetrainGroup]) -> str:
    """Say how many retrainings followed PyTorch's float64 path."""
    ended = [r for g in groups for r in g.records if r.status is not Status.SKIPPED]
    wrong = sum(record.cause is Cause.WRONG_RESULT for record in ended)
    right, shares = sum(len(group.ok) for group in groups), _shares(groups)
    most = f", at most {percent(max(shares), 1)} of the tolerance off" if shares else ""
    names_ = sorted({name for group in groups if group.ok for name in group.cell.runtimes})
    claim = (
        f"{right} of {len(ended)} retrainings by {count(len(names_), 'runtime')} computed PyTorch's float64 path{most}"
    )
    return f"{claim}; {wrong} gave another one." if wrong else f"{claim}."


def _equality(groups: Sequence[RetrainGroup]) -> Finding:
    records = [record for group in groups for record in group.records]
    wrong = [record for record in records if record.cause is Cause.WRONG_RESULT]
    others = [r for r in records if r.status is Status.FAILED and r.cause is not Cause.WRONG_RESULT]
    blind = [group.cell.id for group in groups if group.ok and group.check_inconclusive_from is not None]
    shares = _shares(groups)
    confidence = Confidence.CONFIRMED if shares and not blind else Confidence.PROVISIONAL
    return Finding(
        subject="study",
        kind="retraining-path",
        claim=path_text(groups),
        named=True,
        alarm=bool(wrong),
        confidence=confidence if shares or wrong else Confidence.INCONCLUSIVE,
        evidence=joined(
            "loss of each step and all final weights, within a tolerance from perturbed float64 runs",
            f"wrong: {names([f'{r.cell_id} ({clipped(r.message, _MAX_LENGTH)})' for r in wrong], 3)}" if wrong else "",
            f"without a path to compare: {names([f'{r.cell_id} ({r.cause})' for r in others], 3)}" if others else "",
            f"{count(len(blind), 'cell')} whose tolerance tells nothing at the end" if blind else "",
        ),
    )


def _speed(context: Context, workload: str) -> Iterator[Finding]:
    """Set the fastest portable step beside each that does without it, at the point of most runtimes."""
    compared: set[str] = set()
    for groups in points(context.of("retrain", workload)):
        right = [group for group in sorted_by_time(groups) if not group.wrong]
        portable = [group for group in right if group.cell.runtime not in PEERS]
        peers = [group for group in right if group.cell.runtime in {*PEERS} - compared]
        pairs = [p for peer in peers if (p := step_ratio(portable[0], peer, context.floors))] if portable else []
        compared |= {pair.baseline.cell.runtime for pair in pairs}
        if pairs:
            rivals = [r for group in portable[1:] if (r := step_ratio(portable[0], group, context.floors))]
            yield _fastest(workload, portable, pairs, rivals)


def _fastest(
    workload: str, portable: Sequence[RetrainGroup], pairs: Sequence[StepRatio], rivals: Sequence[StepRatio]
) -> Finding:
    first, last, cell = portable[0], portable[-1], portable[0].cell
    tied = [pair for pair in rivals if pair.comparison.verdict is Verdict.SAME]
    asked = [*pairs, *(tied or rivals[:1])]
    claim = f"the fastest portable step is {cell.runtime}'s, {_time(first)}"
    if tied:
        # Each beside the first: which of them is the fastest is not known.
        alike = all(pair.comparison.equal for pair in tied)
        how = f"{same_within(tied[0].comparison)} as" if alike else "not told apart from"
        others = names([pair.baseline.cell.runtime for pair in tied], 3)
        claim = f"the portable step of {cell.runtime} takes {_time(first)}, {how} that of {others}"
    return Finding(
        subject=workload,
        kind="retraining-speed",
        scope=f"{cell.optimiser}, batch {cell.batch}, {count(cell.threads, 'thread')}",
        claim=f"{claim}: {'; '.join(_beside(pair) for pair in pairs)}.",
        confidence=lowest_confidence({_confidence(pair) for pair in (pairs if tied else asked)}),
        comparisons=tuple(pair.comparison for pair in asked),
        evidence=joined(
            RULE,
            names(sorted({floor_text(pair.floor) for pair in pairs}), 3),
            *(f"{pair.baseline.cell.runtime}: {pair.comparison.reason}" for pair in asked),
            f"slowest: {last.cell.runtime}, {_time(last)}" if last is not first else "",
        ),
    )


def _time(group: RetrainGroup) -> str:
    summary = group.summary(STEP_TIME)
    return quantity(summary.median if summary else None, "s")


def _beside(pair: StepRatio) -> str:
    same, equal = pair.comparison.verdict is Verdict.SAME, pair.comparison.equal
    equality = ", which these runs cannot tell from 1" if same and not equal else ""
    equality = f", {same_within(pair.comparison)}" if equal else equality
    runtime = pair.baseline.cell.runtime
    return f"{factor(pair.ratio.value)} times that of {runtime} ({ends(pair.ratio, factor)}{equality})"


def _confidence(pair: StepRatio) -> Confidence:
    if pair.comparison.verdict is Verdict.SAME and not pair.comparison.equal:
        return Confidence.INCONCLUSIVE
    if pair.comparison.decision is not None:
        return limited_confidence(pair.comparison.confidence, pair.group, pair.baseline)
    quiet = not pair.group.noisy and not pair.baseline.noisy
    whole = pair.ratio.spread is Spread.INTERVAL and pair.floor is not None and quiet
    return limited_confidence(Confidence.CONFIRMED if whole else Confidence.PROVISIONAL, pair.group, pair.baseline)


def _relay(group: RetrainGroup) -> Finding:
    cell = group.cell
    each = count(cell.steps // len(cell.runtimes), "step")
    scope, turns = f"{each} each", " → ".join(cell.runtimes)
    if not group.ok:
        record = group.records[0]
        return Finding(
            subject=str(cell.workload),
            kind="retraining-relay",
            scope=scope,
            confidence=Confidence.INCONCLUSIVE if record.cause is not Cause.WRONG_RESULT else Confidence.CONFIRMED,
            named=True,
            claim=f"{turns} did not follow the path: {clipped(record.message, _MAX_LENGTH)}.",
            evidence=f"{record.cell_id}: {record.cause}",
        )
    share = max(_shares([group]), default=None)
    distance = "" if share is None else f", at most {percent(share, 1)} of the tolerance off"
    confidence = Confidence.CONFIRMED if share is not None else Confidence.INCONCLUSIVE
    return Finding(
        subject=str(cell.workload),
        kind="retraining-relay",
        scope=scope,
        named=True,
        claim=f"{turns}, each from the state that the one before left, computed the path of "
        f"{cell.steps} steps without a change{distance}.",
        confidence=limited_confidence(confidence, group),
        evidence=f"{group.ok[0].cell_id}, in {len(group.ok)} of {count(len(group.records), 'run')}",
    )
