"""Findings on one runtime beside another: are languages near C++, and is ONNX Runtime ten times PyTorch?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from transect.analysis.contrast import Contrast
from transect.analysis.groups import Group, grouped
from transect.analysis.labels import word
from transect.analysis.serving import WHOLE, base_point, comparable, identity_size, versions, was_compared
from transect.domain.record import Status
from transect.report.engine.context import THESIS, Context
from transect.report.engine.finding import Finding, inside_run, joined, lowest_confidence, names
from transect.report.engine.text import clipped, count, ends, factor, number
from transect.report.topics.serving.facts import faithful_groups, place_of, runtime_name
from transect.stats.comparisons import Confidence
from transect.stats.estimates import Estimate
from transect.stats.samples import Spread
from transect.stats.verdicts import Answer

# Two runtimes are near each other when neither takes a tenth more than the other.
NEAR = 0.10
_FRAMEWORK, _RUNTIME = "torch-eager", "python"
# Workloads with a sentence each; more share one that counts them.
_FEW = 4
_REASON = 120


class Nearness(StrEnum):
    """How a time stands to the reference's."""

    NEAR = "within 10 %"
    SLOWER = "slower"
    FASTER = "faster"
    UNKNOWN = "not known"


def nearness(pair: Contrast) -> Nearness:
    """Judge a pair by the whole interval that decides; not known where there is none, or where it may decide nothing."""
    decides = pair.decision is not None and not pair.barred and pair.ratio.spread is Spread.INTERVAL
    return _near(pair.ratio) if decides else Nearness.UNKNOWN


def _near(ratio: Estimate) -> Nearness:
    """Judge a ratio by its whole interval.

    >>> ends = ((0.95, 1.05), (1.2, 1.3), (0.5, 0.6), (1.05, 1.2))
    >>> [_near(Estimate(value=low, low=low, high=high, spread=Spread.INTERVAL)).value for low, high in ends]
    ['within 10 %', 'slower', 'faster', 'not known']
    """
    if ratio.low > 1 + NEAR:
        return Nearness.SLOWER
    if ratio.high < 1 / (1 + NEAR):
        return Nearness.FASTER
    return Nearness.NEAR if ratio.low >= 1 / (1 + NEAR) and ratio.high <= 1 + NEAR else Nearness.UNKNOWN


def confidence_of(pair: Contrast) -> Confidence:
    """Return the confidence of what its interval says: confirmed with one version, and outputs that were compared."""
    if pair.confidence is not Confidence.CONFIRMED:
        return Confidence.PROVISIONAL
    sides = (pair.group, pair.base)
    return (
        Confidence.CONFIRMED if any(map(was_compared, sides)) and not what_crosses([pair]) else Confidence.PROVISIONAL
    )


def what_crosses(pairs: Iterable[Contrast]) -> str:
    """Say that a ratio is one between versions of ONNX Runtime too; empty when it is not."""
    sides = [(pair.group, pair.base) for pair in pairs]
    both = [members for members in sides if all(group.cell.get("exporter") for group in members)]
    ran = {version for members in both if len(found := versions(members)) > 1 for version in found}
    return f"the comparison crosses versions: {names(sorted(ran), 9)}" if ran else ""


def evidence_of(pairs: Sequence[Contrast], *more: str) -> str:
    """Say what ratios rest on."""
    whole = any(pair.metric == WHOLE for pair in pairs)
    return joined(
        *more,
        "whole calls, end to end" if whole else "",
        inside_run(group for pair in pairs for group in (pair.group, pair.base)),
        what_crosses(pairs),
        names([f"{runtime_name(pair.group)}: {pair.reason}" for pair in pairs], 3),
    )


def runtime_findings(context: Context) -> list[Finding]:
    """Languages beside C++, and what was published of ONNX Runtime beside PyTorch."""
    return [*_languages(context), *_framework(context)]


def _at_base(context: Context, rule: str) -> Iterator[tuple[str, str, list[Contrast]]]:
    """Yield workload, provider and pairs at the smallest batch and fewest threads. What computes nothing is another question."""
    for workload in context.workloads("infer"):
        if identity_size(workload) is None:
            for where, groups in comparable(faithful_groups(context, workload)).items():
                pairs = [c for c in context.contrasts.of(rule, workload) if c.group in groups and c.base in groups]
                first = base_point(pair.group for pair in pairs)
                if first:
                    yield workload, where, [pair for pair in pairs if pair.group in first]


def _languages(context: Context) -> Iterator[Finding]:
    found = [case for case in _at_base(context, "runtime.language") if case[2]]
    if len({workload for workload, _, _ in found}) > _FEW:
        every = [(workload, pair) for workload, _, pairs in found for pair in pairs]
        for runtime, members in grouped(every, lambda case: case[1].group.cell.get("runtime")).items():
            yield _counted(str(runtime), members)
        return
    for workload, where, pairs in found:
        near = grouped(pairs, nearness)
        listed = {
            verdict: names([f"{_language(pair, pairs)} {_times(pair, len(pairs))}" for pair in members], 99)
            for verdict, members in sorted(near.items())
        }
        parts = [f"{verdict.value}: {text}" for verdict, text in listed.items()]
        yield Finding(
            subject=workload,
            scope=f"on {where}, {place_of(pairs[0].group)}",
            kind="language",
            claim=f"times of a call over that of C++: {'; '.join(parts)}.",
            evidence=evidence_of(pairs),
            confidence=_least(pairs),
            contrasts=tuple(pairs),
        )


def language_of(group: Group) -> str:
    """Name the language that calls ONNX Runtime: `Rust`."""
    return word("runtime", group.cell.get("runtime")).removeprefix("ONNX Runtime (").removesuffix(")")


def _language(pair: Contrast, beside: Sequence[Contrast]) -> str:
    exporter = pair.group.cell.get("exporter")
    several = len({other.group.cell.get("exporter") for other in beside}) > 1
    return language_of(pair.group) + (f" from {word('exporter', exporter)}" if several else "")


def _times(pair: Contrast, beside: int = 1) -> str:
    """Write a ratio; with its interval where few stand beside it."""
    return f"{factor(pair.ratio.value)}" + (f" ({ends(pair.ratio, factor)})" if beside <= _FEW else "")


def _least(pairs: Sequence[Contrast]) -> Confidence:
    known = [pair for pair in pairs if nearness(pair) is not Nearness.UNKNOWN]
    return lowest_confidence(map(confidence_of, known)) if known else Confidence.INCONCLUSIVE


def _counted(runtime: str, cases: Sequence[tuple[str, Contrast]]) -> Finding:
    """Join the verdicts on many workloads: how many of each, and the ends."""
    pairs = [pair for _, pair in cases]
    verdicts = grouped(pairs, nearness)
    listed = [f"{verdict.value} in {len(verdicts[verdict])}" for verdict in Nearness if verdict in verdicts]
    ordered = sorted(cases, key=lambda case: case[1].ratio.value)
    span = " to ".join(f"{number(pair.ratio.value)} times ({workload})" for workload, pair in (ordered[0], ordered[-1]))
    return Finding(
        subject="study",
        claim=f"{word('runtime', runtime)} beside C++ in {count(len(cases), 'model')}: {names(listed, 9)}; from {span} as long.",
        evidence=evidence_of(pairs),
        kind="language",
        confidence=_least(pairs),
        named=True,
        contrasts=tuple(pairs),
    )


def _framework(context: Context) -> Iterator[Finding]:
    """Hold PyTorch beside ONNX Runtime, where the study asks for it."""
    if not context.asks_for(THESIS, "runtime.framework"):
        return
    found = {
        workload: [pair for pair in pairs if pair.group.cell.get("runtime") == _RUNTIME]
        for workload, _, pairs in _at_base(context, "runtime.framework")
    }
    pairs = [pair for members in found.values() for pair in members]
    if not pairs:
        return
    of_provider = grouped(pairs, lambda pair: str(pair.group.cell.get("provider")))
    parts = []
    for provider, members in of_provider.items():
        ratios = sorted((pair.ratio.inverse for pair in members), key=lambda ratio: ratio.value)
        ends_ = dict.fromkeys(number(ratio.value) for ratio in (ratios[0], ratios[-1]))
        parts.append(f"{' to '.join(ends_)} times as long as ONNX Runtime (Python) on {word('provider', provider)}")
    cuda = "" if "cuda" in of_provider else f"; {_no_cuda(context, found)}"
    decided = [confidence_of(pair) for pair in pairs if pair.answer is not Answer.OPEN]
    yield Finding(
        subject="study",
        kind="framework",
        claim=f"PyTorch takes {names(parts, 9)} here{cuda}.",
        named=True,
        evidence=evidence_of(pairs),
        contrasts=tuple(pairs),
        confidence=lowest_confidence(decided) if decided else Confidence.INCONCLUSIVE,
    )


def _no_cuda(context: Context, workloads: Iterable[str]) -> str:
    """Say why there is no time on the device that the published factor is of."""
    tried = [
        record
        for workload in workloads
        for group in context.of("infer", workload)
        if group.cell.provider == "cuda" and group.cell.runtime in (_FRAMEWORK, _RUNTIME)
        for record in group.records
    ]
    reason = next((r.message for r in tried if r.status is not Status.OK and r.message), "")
    return f"no GPU was measured ({clipped(reason, _REASON)})" if reason else "no GPU was measured"
