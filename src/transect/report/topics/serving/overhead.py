"""Findings on what a call costs per language, and on the published overhead of Rust's calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transect.analysis.contrast import Contrast
from transect.analysis.contrasts import contrast
from transect.analysis.groups import grouped
from transect.analysis.serving import (
    REFERENCE,
    InferGroup,
    base_point,
    changed_settings,
    comparable,
    identity_size,
    measure_of,
)
from transect.report.engine.context import THESIS, Context
from transect.report.engine.contrast_words import ratio_words
from transect.report.engine.finding import Finding, lowest_confidence, median, names
from transect.report.engine.text import count, factor, in_unit, number, quantity, with_ends
from transect.report.topics.serving.facts import faithful_groups, place_of
from transect.report.topics.serving.runtime_findings import Nearness, confidence_of, evidence_of, language_of, nearness
from transect.runtimes.options import EQUAL, LANGUAGE_DEFAULTS
from transect.stats.comparisons import Confidence
from transect.stats.estimates import Estimate
from transect.stats.verdicts import Answer

_RUST = "rust"
# What stands for a language's settings in the thesis: C++ and JavaScript had their defaults.
_THESIS = {_RUST: (f"thesis-{_RUST}",), REFERENCE: (f"thesis-{REFERENCE}", LANGUAGE_DEFAULTS)}
_SETTINGS = 4


def overhead_findings(context: Context) -> list[Finding]:
    """Rank the languages by their call, and settle what made Rust slow in the thesis."""
    sizes = {name: size for name in context.workloads("infer") if (size := identity_size(name)) is not None}
    calls = [one for name in sorted(sizes, key=lambda name: sizes[name]) for one in _calls(context, name, sizes[name])]
    others = [name for name in context.workloads("infer") if name not in sizes]
    points = [groups for name in others for groups in _points(context, name)]
    thesis = [groups for groups in points if _thesis(context, groups) is not None]
    return [*calls, *(_verdict(context, groups) for groups in thesis or points)]


def _calls(context: Context, workload: str, size: int) -> Iterator[Finding]:
    """Say what each language's call takes beyond that of C, in the order of their times."""
    every = context.contrasts.of("overhead.call", workload)
    for where, groups in comparable(faithful_groups(context, workload)).items():
        able = [pair for pair in every if pair.group in groups]
        first = base_point(pair.group for pair in able)
        pairs = sorted((pair for pair in able if pair.group in first), key=lambda pair: pair.ratio.value)
        for members in grouped(pairs, lambda pair: pair.base).values():
            yield _call(workload, size, where, members)


def _call(workload: str, size: int, where: str, pairs: Sequence[Contrast]) -> Finding:
    base, metric = pairs[0].base, pairs[0].metric
    write = in_unit("s")
    apart = [pair for pair in pairs if pair.answer is Answer.DIFFERENT]
    listed = {
        "as fast": [pair for pair in pairs if pair.answer is Answer.SAME],
        "not known": [pair for pair in pairs if pair.answer is Answer.OPEN],
    }
    claim = f"a call on {'1 number' if size == 1 else f'{number(size)} numbers'} takes {quantity(median(base, metric), 's')} in C"
    beyond = [f"{language_of(pair.group)} {with_ends(excess(pair), write)}" for pair in apart]
    claim += f"; beyond that take {names(beyond, 99)}" if beyond else ""
    claim += "".join(
        f"; {what}: {names([language_of(pair.group) for pair in members], 99)}"
        for what, members in listed.items()
        if members
    )
    decided = [pair.confidence for pair in pairs if pair.answer is not Answer.OPEN]
    return Finding(
        subject=workload,
        scope=f"on {where}, {count(base.cell.get('threads') or 1, 'thread')}",
        kind="call",
        claim=claim + ".",
        evidence=evidence_of(pairs, "a model that computes nothing; beyond C by the ratio to C, of C's median"),
        confidence=lowest_confidence(decided) if decided else Confidence.INCONCLUSIVE,
        contrasts=tuple(pairs),
    )


def excess(pair: Contrast) -> Estimate:
    """Return what a call takes beyond that of C, in s: what the ratio of the two comes to, of C's median."""
    return pair.ratio.beyond(median(pair.base, pair.metric) or 0.0)


def _points(context: Context, workload: str) -> Iterator[list[InferGroup]]:
    """Yield the groups of each point at which Rust and C++ ran with equal settings.

    Points where both ran with the thesis's come before others; with most threads, where the
    number of threads of a session shows.
    """
    groups = [g for g in faithful_groups(context, workload) if g.cell.load is None and g.cell.sessions == 1]
    of_point = grouped(groups, lambda group: group.cell.apart_from("runtime", "options"))
    able = [members for members in of_point.values() if _pair(context, members, EQUAL, EQUAL)]
    thesis = [members for members in able if _thesis(context, members) is not None]
    for first in base_point((members[0] for members in thesis or able), most_threads=True):
        yield of_point[first.cell.apart_from("runtime", "options")]


def _pair(context: Context, groups: Sequence[InferGroup], mine: str, theirs: str) -> Contrast | None:
    """Return Rust with one set of options beside C++ with another, or None."""
    of = {(group.cell.runtime, group.cell.options): group for group in groups}
    rust, reference = of.get((_RUST, mine)), of.get((REFERENCE, theirs))
    if rust is None or reference is None:
        return None
    metric = measure_of((rust, reference))
    return contrast(
        rust, reference, context.floors, metric, varies="runtime", by="run", asked=context.asks("overhead.ffi-overhead")
    )


def _thesis(context: Context, groups: Sequence[InferGroup]) -> Contrast | None:
    pairs = (_pair(context, groups, mine, theirs) for mine in _THESIS[_RUST] for theirs in _THESIS[REFERENCE])
    return next(filter(None, pairs), None)


def _verdict(context: Context, groups: Sequence[InferGroup]) -> Finding:
    equal, thesis = _pair(context, groups, EQUAL, EQUAL), _thesis(context, groups)
    assert equal is not None
    every = context.contrasts.of("overhead.ffi-overhead", groups[0].cell.workload)
    single = [(pair, words) for pair in every if pair.group in groups and (words := _single(pair)) is not None]
    claim = f"Rust takes {ratio_words(equal)} as long as C++ under equal settings"
    if thesis is not None:
        claim += f", and {ratio_words(thesis)} under the thesis's: {_conclusion(thesis, equal)}"
    elif context.asks_for(THESIS, "overhead.ffi-overhead"):
        claim += "; the thesis's settings were not run"
    real = sorted(
        (case for case in single if case[0].answer is Answer.DIFFERENT), key=lambda case: -case[0].ratio.value
    )
    if real:
        listed = [f"{words} {factor(pair.ratio.value)} times" for pair, words in real[:_SETTINGS]]
        claim += f". One setting changed alone, over equal ones: {names(listed, 9)}"
    pairs = [pair for pair in (thesis, equal) if pair is not None]
    known = thesis is not None and (thesis.ratio.low > equal.ratio.high or thesis.ratio.high < equal.ratio.low)
    decided = known if thesis is not None else nearness(equal) is not Nearness.UNKNOWN
    cell = equal.group.cell
    return Finding(
        subject=str(cell.workload),
        kind="FFI overhead",
        claim=claim + ".",
        named=True,
        scope=f"on {cell.get('provider')}, {place_of(equal.group)}, from {cell.get('exporter')}",
        confidence=lowest_confidence(map(confidence_of, pairs)) if decided else Confidence.INCONCLUSIVE,
        evidence=evidence_of(pairs, "" if single else "no setting was changed alone"),
        contrasts=(*pairs, *(pair for pair, _ in single)),
    )


def _conclusion(thesis: Contrast, equal: Contrast) -> str:
    """Say what the two ratios together mean for the published overhead of calls."""
    slower = thesis.ratio.low > equal.ratio.high
    if slower:
        effect = "the settings made it slower"
    elif thesis.ratio.high < equal.ratio.low:
        effect = "the settings did not make it slower"
    else:
        effect = "what the settings do is not known"
    if equal.better is equal.base:
        return f"{effect}; a difference of {factor(equal.ratio.value)} times is left that no setting makes"
    if nearness(equal) is Nearness.UNKNOWN:
        return f"{effect}; whether a difference is left under equal ones is not known"
    blamed = slower and thesis.better is thesis.base
    return (
        f"{effect}, and not calls through its foreign function interface"
        if blamed
        else f"{effect}; under equal ones it is not slower"
    )


def _single(pair: Contrast) -> str | None:
    """Write the one setting in which Rust differs from its equal ones; None where there are more, or another runtime's."""
    changed = changed_settings(pair.group, pair.base) if pair.group.cell.get("runtime") == _RUST else None
    return setting_words(changed) if changed and len(changed) == 1 else None


def setting_words(changed: dict[str, object]) -> str:
    """Write changed session options, `graph_optimization_level=basic`; those not set come last."""
    given = [f"{key}={value}" for key, value in changed.items() if value is not None]
    unset = [key for key, value in changed.items() if value is None]
    if len(unset) > _SETTINGS:
        return ", ".join([*given, f"{len(unset)} others not set" if given else "nothing set"])
    return ", ".join([*given, *(f"{key} not set" for key in unset)])
