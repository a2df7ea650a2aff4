"""Findings on retraining: is the path PyTorch's in every language, who is fast, does a relay hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transect.analysis.contrasts import best
from transect.analysis.groups import Group
from transect.analysis.labels import people_name, word
from transect.domain.axes.retrain import RetrainCell
from transect.domain.record import Cause, Status
from transect.report.engine.best_words import beside, confidence_of, with_open
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, limited_confidence, median, names
from transect.report.engine.text import clipped, count, percent, quantity
from transect.report.topics.retraining.facts import STEP_TIME, RetrainGroup, is_relay, points, sorted_by_time
from transect.stats.comparisons import Confidence

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


def shares(groups: Sequence[Group]) -> list[float]:
    """Return every usable record's largest deviation as a share of its tolerance."""
    ratios = ("equality_ratio", "weights_equality_ratio")
    every = ([record.value(name) for name in ratios] for group in groups for record in group.ok)
    return [max(known) for values in every if (known := [value for value in values if value is not None])]


def path_text(groups: Sequence[RetrainGroup]) -> str:
    """Say how many retrainings followed PyTorch's float64 path."""
    ended = [r for g in groups for r in g.records if r.status is not Status.SKIPPED]
    wrong = sum(record.cause is Cause.WRONG_RESULT for record in ended)
    right, known = sum(len(group.ok) for group in groups), shares(groups)
    most = f", at most {percent(max(known), 1)} of the tolerance off" if known else ""
    runtimes = {name for group in groups if group.ok for name in group.cell.runtimes}
    claim = f"{right} of {len(ended)} retrainings by {count(len(runtimes), 'runtime')} computed PyTorch's float64 path{most}"
    return f"{claim}; {wrong} gave another one." if wrong else f"{claim}."


def _equality(groups: Sequence[RetrainGroup]) -> Finding:
    records = [record for group in groups for record in group.records]
    wrong = [record for record in records if record.cause is Cause.WRONG_RESULT]
    others = [r for r in records if r.status is Status.FAILED and r.cause is not Cause.WRONG_RESULT]
    blind = [group.cell.id for group in groups if group.ok and group.check_inconclusive_from is not None]
    known = shares(groups)
    confidence = Confidence.CONFIRMED if known and not blind else Confidence.PROVISIONAL
    return Finding(
        subject="study",
        kind="retraining-path",
        claim=path_text(groups),
        named=True,
        alarm=bool(wrong),
        confidence=confidence if known or wrong else Confidence.INCONCLUSIVE,
        evidence=joined(
            "loss of each step and all final weights, within a tolerance from perturbed float64 runs",
            f"wrong: {names([f'{r.cell_id} ({clipped(r.message, _MAX_LENGTH)})' for r in wrong], 3)}" if wrong else "",
            f"without a path to compare: {names([f'{r.cell_id} ({r.cause})' for r in others], 3)}" if others else "",
            f"{count(len(blind), 'cell')} whose tolerance tells nothing at the end" if blind else "",
        ),
    )


def _speed(context: Context, workload: str) -> Iterator[Finding]:
    """Say whose step is the fastest, at the point of most runtimes."""
    groups = next(iter(points(context.of("retrain", workload))), [])
    timed = sorted_by_time(group for group in groups if group.ok and not group.wrong)
    pairs = [c for c in context.contrasts.of("retraining.speed", workload) if c.group in timed and c.base in timed]
    found = best(pairs, timed, metric=STEP_TIME) if len(timed) > 1 else None
    if found is None:
        return
    cell = found.first.cell

    def name(group: Group) -> str:
        return people_name(group.cell, never=("optimiser", "rate", "threads"))

    short = f"{name(found.first)} takes {quantity(median(found.first, STEP_TIME), 's')} a step"
    short += beside(found, name)
    fastest = Finding(
        subject=workload,
        kind="retraining-speed",
        scope=f"{cell.get('optimiser')}, batch {cell.get('batch')}, {count(cell.threads, 'thread')}",
        claim=f"{short}.",
        short=short,
        named=True,
        confidence=limited_confidence(confidence_of(found), *timed),
        contrasts=found.contrasts,
        tests=found.tests,
        groups=tuple(timed),
        evidence=joined(*(f"{name(c.group)} beside {name(c.base)}: {c.reason}" for c in found.contrasts)),
    )
    yield from with_open(name, (fastest, found))


def relay_words(cell: RetrainCell) -> str:
    """Name the runtimes of a relay in their turns."""
    return " → ".join(word("runtime", name) for name in cell.runtimes)


def _relay(group: RetrainGroup) -> Finding:
    cell, record = group.cell, group.ok[0] if group.ok else group.records[0]
    share = max(shares([group]), default=None)
    if group.ok:
        off = "" if share is None else f", at most {percent(share, 1)} of the tolerance off"
        said = f", each from the state that the one before left, computed the path of {cell.steps} steps without a change{off}"
        evidence = f"{record.cell_id}, in {len(group.ok)} of {count(len(group.records), 'run')}"
        known = share is not None
    else:
        said, known = (
            f" did not follow the path: {clipped(record.message, _MAX_LENGTH)}",
            record.cause is Cause.WRONG_RESULT,
        )
        evidence = f"{record.cell_id}: {record.cause}"
    confidence = Confidence.CONFIRMED if known else Confidence.INCONCLUSIVE
    return Finding(
        subject=str(cell.workload),
        kind="retraining-relay",
        scope=f"{count(cell.steps // len(cell.runtimes), 'step')} each",
        named=True,
        claim=f"{relay_words(cell)}{said}.",
        confidence=limited_confidence(confidence, group) if group.ok else confidence,
        evidence=evidence,
    )
