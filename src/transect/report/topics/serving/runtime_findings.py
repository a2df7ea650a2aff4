"""Findings on one runtime beside another: is JavaScript near C++, and ten times PyTorch?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from transect.analysis.groups import grouped
from transect.analysis.serving import (
    REFERENCE,
    WHOLE,
    InferGroup,
    Versus,
    base_point,
    comparable,
    identity_size,
    takes_onnx,
    versus,
    was_compared,
)
from transect.domain.record import Status
from transect.report.engine.context import THESIS, Context
from transect.report.engine.finding import Finding, floor_text, inside_run, joined, names
from transect.report.engine.text import clipped, count, ends, factor
from transect.report.topics.serving.findings import faithful_groups
from transect.stats.comparisons import Comparison, Confidence, Verdict
from transect.stats.estimates import RATIO
from transect.stats.samples import Spread

# Two runtimes are near each other when neither takes a tenth more than the other.
NEAR = 0.10
# "10x over PyTorch on GPU": the published factor, and how a ratio stands to it.
_PUBLISHED = 10.0
_REACHED, _MISSED, _UNKNOWN = (
    "10 times or more",
    "less than 10 times",
    "10 times or less, which these runs cannot tell",
)
_FRAMEWORK, _RUNTIME = "torch-eager", "python"
# Workloads with a sentence each; more share one that counts them.
_FEW = 4
_REASON = 120

RULE = f"{RATIO} of one side's runs to the other's"


class Nearness(StrEnum):
    """How a time stands to the reference's, in the words that go before the ratio."""

    NEAR = "near it, within 10 %"
    SLOWER = "more than 10 % slower"
    FASTER = "more than 10 % faster"
    UNKNOWN = "within 10 % or beyond, which these runs cannot tell"


def nearness(pair: Versus) -> Nearness:
    """Judge a ratio by its whole interval, or range; one run a side by twice the noise floor.

    Where the edge of the tenth lies within the noise, neither side of it is claimed.
    """
    low, high, floor = pair.ratio.low, pair.ratio.high, pair.floor
    if pair.ratio.spread is Spread.SINGLE:
        if floor is None:
            return Nearness.UNKNOWN
        low, high = low / (1 + 2 * floor.relative), high * (1 + 2 * floor.relative)
    edges = 1 / (1 + NEAR), 1 + NEAR
    if not all(_is_clear(pair, edge) for edge in edges):
        return Nearness.UNKNOWN
    if low > edges[1] or high < edges[0]:
        if pair.comparison.verdict is Verdict.SAME:
            return Nearness.UNKNOWN
        return Nearness.SLOWER if low > 1 else Nearness.FASTER
    return Nearness.NEAR if low >= edges[0] and high <= edges[1] else Nearness.UNKNOWN


def _is_clear(pair: Versus, edge: float) -> bool:
    """Whether a ratio is farther from an edge than the noise floor; without a floor nobody knows."""
    apart = max(pair.ratio.value / edge, edge / pair.ratio.value) - 1
    return pair.floor is None or apart > pair.floor.relative


def times_text(pair: Versus, more: str = "") -> str:
    """Write a ratio with its interval, `1.06 times (95 % interval 1.04 to 1.08)`."""
    whole = "end to end, " if pair.measure == WHOLE else ""
    addition = f", {more}" if more else ""
    return f"{factor(pair.ratio.value)} times ({whole}{ends(pair.ratio, factor)}{addition})"


def cells_of(pairs: Sequence[Versus]) -> str:
    """Name the cells behind ratios."""
    return "cells " + names([f"{p.group.cell.id} / {p.baseline.cell.id}" for p in pairs], 3)


def what_includes(pairs: Sequence[Versus]) -> str:
    """Say which runtime does more inside of Run than others, so that whole calls are compared."""
    return inside_run(group for pair in pairs for group in (pair.group, pair.baseline))


def what_crosses(pairs: Sequence[Versus]) -> str:
    """Say that a ratio is one between versions too; empty when it is not."""
    ran = sorted({version for pair in pairs for version in pair.crosses})
    return f"the comparison crosses versions: {names(ran, 9)}" if ran else ""


def confidence_of(pair: Versus) -> Confidence:
    """Return the confidence of a claim on a ratio, whichever way it goes.

    Confirmed: an interval, a known noise floor, one version, quiet machines and outputs that were compared.
    """
    sides = (pair.group, pair.baseline)
    sound = not pair.crosses and not any(group.noisy for group in sides)
    checked = any(map(was_compared, sides))
    whole = pair.ratio.spread is Spread.INTERVAL and pair.floor is not None
    few = pair.comparison.confidence is Confidence.PROVISIONAL
    return Confidence.CONFIRMED if whole and sound and checked and not few else Confidence.PROVISIONAL


@dataclass(frozen=True, kw_only=True, slots=True)
class _Case:
    """One pair of runtimes at one point of a workload."""

    workload: str
    where: str
    pair: Versus

    @property
    def exporter(self) -> str:
        return self.pair.group.cell.exporter or self.pair.baseline.cell.exporter or ""


def runtime_findings(context: Context) -> list[Finding]:
    """Judge two published claims where both sides ran: JavaScript near C++, 10 times PyTorch."""
    near = _cases(context, _is_javascript, lambda group: _name(group) == REFERENCE)
    fast = _cases(context, lambda group: _name(group) == _FRAMEWORK, lambda group: _name(group) == _RUNTIME)
    return [*_near_findings(list(near)), *_framework_findings(context, list(fast))]


def _name(group: InferGroup) -> str:
    return group.cell.runtime


def _is_javascript(group: InferGroup) -> bool:
    return _name(group).startswith("javascript")


def _cases(
    context: Context, wanted: Callable[[InferGroup], bool], base: Callable[[InferGroup], bool]
) -> Iterator[_Case]:
    """Yield pairs that differ in their runtime alone, at the smallest batch and fewest threads.

    A side without an exporter is paired with each exporter of the other. Models that compute
    nothing are another question.
    """
    for workload in context.workloads("infer"):
        if identity_size(workload) is not None:
            continue
        for where, groups in comparable(faithful_groups(context, workload)).items():
            able = [group for group in groups if wanted(group) or base(group)]
            for group in base_point(filter(wanted, able)):
                for reference in filter(base, able):
                    same = (group.cell.batch, group.cell.threads) == (reference.cell.batch, reference.cell.threads)
                    both = takes_onnx(group) and takes_onnx(reference)
                    alike = not both or group.cell.exporter == reference.cell.exporter
                    pair = versus(group, reference, context.floors) if same and alike else None
                    if pair is not None:
                        yield _Case(workload=workload, where=where, pair=pair)


def _near_findings(cases: Sequence[_Case]) -> Iterator[Finding]:
    for runtime, members in grouped(cases, lambda case: _name(case.pair.group)).items():
        of_workload = grouped(members, lambda case: (case.workload, case.where))
        if len({case.workload for case in members}) > _FEW:
            yield _near_counted(runtime, members)
            continue
        for (workload, where), alike in of_workload.items():
            verdicts = grouped(alike, lambda case: nearness(case.pair))
            parts = [f"{_times(same)} that of {REFERENCE}: {verdict.value}" for verdict, same in verdicts.items()]
            yield Finding(
                subject=workload,
                scope=f"on {where}, {_point(alike)}",
                kind="language",
                claim=f"the latency of {runtime} is {'; and '.join(parts)}.",
                evidence=_evidence(alike),
                confidence=_least(alike, verdicts),
                comparisons=_comparisons(alike),
            )


def _point(cases: Sequence[_Case]) -> str:
    cell = cases[0].pair.group.cell
    return f"batch {cell.batch}, {count(cell.threads, 'thread')}"


def _comparisons(cases: Sequence[_Case]) -> tuple[Comparison, ...]:
    return tuple(case.pair.comparison for case in cases)


def _times(cases: Sequence[_Case]) -> str:
    return names([times_text(case.pair, f"from {case.exporter}") for case in cases], 9)


def _near_counted(runtime: str, cases: Sequence[_Case]) -> Finding:
    """Join the verdicts on many workloads: how many of each, and the ends."""
    verdicts = grouped(cases, lambda case: nearness(case.pair))
    listed = [f"{verdict.value} in {len(verdicts[verdict])}" for verdict in Nearness if verdict in verdicts]
    claim = f"{runtime} beside {REFERENCE} in {_models(cases)}: {names(listed, 9)}; {_span(cases)}."
    return Finding(
        subject="study",
        claim=claim,
        evidence=_evidence(cases),
        kind="language",
        confidence=_least(cases, verdicts),
        named=True,
        comparisons=_comparisons(cases),
    )


def _models(cases: Sequence[_Case]) -> str:
    exports = {(case.workload, case.exporter, case.where) for case in cases}
    return count(len(exports), "model")


def _span(cases: Sequence[_Case]) -> str:
    ordered = sorted(cases, key=lambda case: case.pair.ratio.value)
    ends = (f"{times_text(case.pair)} for {case.workload}" for case in (ordered[0], ordered[-1]))
    return "from {} to {}".format(*ends)


def _least(cases: Sequence[_Case], verdicts: dict[Nearness, list[_Case]]) -> Confidence:
    if list(verdicts) == [Nearness.UNKNOWN]:
        return Confidence.INCONCLUSIVE
    every = {confidence_of(case.pair) for case in cases}
    mixed = Nearness.UNKNOWN in verdicts or Confidence.PROVISIONAL in every
    return Confidence.PROVISIONAL if mixed else Confidence.CONFIRMED


def _evidence(cases: Sequence[_Case]) -> str:
    pairs = [case.pair for case in cases]
    floors = {floor_text(pair.floor) for pair in pairs}
    return joined(RULE, names(sorted(floors), 3), what_includes(pairs), what_crosses(pairs), cells_of(pairs))


def _framework_findings(context: Context, cases: Sequence[_Case]) -> Iterator[Finding]:
    """Compare PyTorch with ONNX Runtime and with the published factor, per workload."""
    of_workload = grouped(cases, lambda case: case.workload)
    few = len(of_workload) <= _FEW
    asked = context.asks_for(THESIS, "runtime.framework")
    for workload, members in of_workload.items() if few else [("study", list(cases))]:
        verdicts = grouped(members, _factor)
        if few:
            verdict_text = "; ".join(_ratios(same, verdict if asked else "") for verdict, same in verdicts.items())
            claim = f"the latency of {_FRAMEWORK} is {verdict_text}"
        else:
            verdict_text = names([f"{verdict} in {len(same)}" for verdict, same in verdicts.items()], 9)
            claim = f"{_FRAMEWORK} beside {_RUNTIME} in {_models(members)}: "
            claim += f"{verdict_text}; {_span(members)}" if asked else _span(members)
        levels = {confidence_of(case.pair) for case in members}
        mixed = _UNKNOWN in verdicts or Confidence.PROVISIONAL in levels
        confidence = Confidence.PROVISIONAL if mixed else Confidence.CONFIRMED
        yield Finding(
            subject=workload,
            scope=f"at {_point(members)}" if few else "",
            kind="framework",
            named=not few,
            claim=f"{claim}. The published factor is of a GPU{_on_cuda(context, members)}." if asked else f"{claim}.",
            evidence=_evidence(members),
            comparisons=_comparisons(members),
            confidence=Confidence.INCONCLUSIVE if list(verdicts) == [_UNKNOWN] else confidence,
        )


def _factor(case: _Case) -> str:
    """Judge whether the published factor is reached, by the whole interval."""
    ratio = case.pair.ratio
    across = ratio.low < _PUBLISHED <= ratio.high
    same = case.pair.comparison.verdict is Verdict.SAME
    if same or across or not _is_clear(case.pair, _PUBLISHED):
        return _UNKNOWN
    return _REACHED if ratio.low >= _PUBLISHED else _MISSED


def _ratios(cases: Sequence[_Case], verdict: str) -> str:
    parts = [f"{_times(alike)} on {where}" for where, alike in grouped(cases, lambda case: case.where).items()]
    return f"{names(parts, 9)} that of {_RUNTIME}" + (f": {verdict}" if verdict else "")


def _on_cuda(context: Context, cases: Sequence[_Case]) -> str:
    """Say so where this study has no time on the device that the published factor is of."""
    if any(case.pair.group.cell.provider == "cuda" for case in cases):
        return ""
    workloads = dict.fromkeys(case.workload for case in cases)
    tried = [
        record
        for workload in workloads
        for group in context.of("infer", workload)
        if group.cell.provider == "cuda" and _name(group) in (_FRAMEWORK, _RUNTIME)
        for record in group.records
    ]
    reason = next((r.message for r in tried if r.status is not Status.OK and r.message), "")
    if reason:
        return f", and on cuda nothing was measured here: {clipped(reason, _REASON)}"
    return ", and this study asks for no pair on cuda"
