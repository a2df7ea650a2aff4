"""Findings on what a call costs per language, and on the published overhead of Rust's calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product

from transect.analysis.groups import Floors, grouped
from transect.analysis.serving import (
    REFERENCE,
    WHOLE,
    Beyond,
    InferGroup,
    Versus,
    base_point,
    beyond,
    changed_settings,
    comparable,
    identity_size,
    versus,
)
from transect.report.engine.context import THESIS, Context
from transect.report.engine.finding import Finding, floor_text, inside_run, joined, median, names
from transect.report.engine.text import count, ends, factor, in_unit, number, quantity
from transect.report.topics.serving.findings import faithful_groups
from transect.report.topics.serving.runtime_findings import (
    RULE,
    Nearness,
    cells_of,
    confidence_of,
    nearness,
    times_text,
    what_crosses,
    what_includes,
)
from transect.runtimes.options import EQUAL, LANGUAGE_DEFAULTS
from transect.stats.comparisons import Confidence, Verdict
from transect.stats.estimates import RATIO
from transect.stats.samples import NoiseFloor, Spread

_RUST = "rust"
# What stands for a language's settings in the thesis: C++ and JavaScript had their defaults.
_THESIS = {_RUST: (f"thesis-{_RUST}",), REFERENCE: (f"thesis-{REFERENCE}", LANGUAGE_DEFAULTS)}
_SETTINGS = 4


def overhead_findings(context: Context) -> list[Finding]:
    """Rank the languages by their call, and settle what made Rust slow in the thesis."""
    sizes = {name: size for name in context.workloads("infer") if (size := identity_size(name)) is not None}
    calls = [
        finding
        for name in sorted(sizes, key=lambda name: sizes[name])
        for finding in _calls(context, name, sizes[name])
    ]
    others = [name for name in context.workloads("infer") if name not in sizes]
    points = [groups for name in others for groups in _points(context, name)]
    thesis = [groups for groups in points if _thesis(groups, context.floors) is not None]
    asked = context.asks_for(THESIS, "overhead.ffi-overhead")
    return [*calls, *(_verdict(groups, context.floors, asked) for groups in thesis or points)]


def _calls(context: Context, workload: str, size: int) -> Iterator[Finding]:
    """Say what each language's call takes beyond that of C, in the order of their times."""
    for where, groups in comparable(faithful_groups(context, workload)).items():
        for members in grouped(base_point(groups), lambda group: group.cell.exporter).values():
            rows = beyond(members, context.floors)
            others = [row for row in rows if row.comparison is not None]
            if not others:
                continue
            base = next(row.group for row in rows if row.comparison is None)
            measure = others[0].measure
            floor = context.floors.get("infer", workload, measure)
            whole = " end to end" if measure == WHOLE else ""
            apart = [row for row in others if _differs(row)]
            alike = [row.group.cell.runtime for row in others if not _differs(row)]
            parts = [f"{row.group.cell.runtime} {_excess(row)}" for row in apart]
            numbers = "1 number" if size == 1 else f"{number(size)} numbers"
            claim = f"a call on {numbers} takes {quantity(median(base, measure), 's')} in C{whole}"
            claim += f"; beyond that take {names(parts, 99)}" if parts else ""
            claim += f"; not distinguishable from C: {names(alike, 99)}" if alike else ""
            cell = base.cell
            yield Finding(
                subject=workload,
                scope=f"on {where}, {count(cell.threads, 'thread')}",
                kind="call",
                claim=claim + ".",
                evidence=_call_evidence(rows, floor),
                confidence=_call_confidence(apart, floor),
                comparisons=tuple(row.comparison for row in others if row.comparison is not None),
            )


def _differs(row: Beyond) -> bool:
    return row.comparison is not None and row.comparison.verdict is not Verdict.SAME


def _excess(row: Beyond) -> str:
    assert row.excess is not None
    write = in_unit("s")
    return f"{write(row.excess.value)} ({ends(row.excess, write)})"


def _call_evidence(rows: Sequence[Beyond], floor: NoiseFloor | None) -> str:
    groups = [row.group for row in rows]
    whole = [
        f"{group.cell.runtime} {quantity(time, 's')}"
        for group in groups
        if (time := median(group, "end_to_end_time")) is not None
    ]
    return joined(
        f"a model that computes nothing; beyond C by the {RATIO} of one side's runs to C's, of C's median",
        f"end to end: {names(whole, 99)}" if whole else "",
        inside_run(groups),
        floor_text(floor),
        f"cells {names([group.cell.id for group in groups], 3)}",
    )


def _call_confidence(apart: Sequence[Beyond], floor: NoiseFloor | None) -> Confidence:
    if not apart:
        return Confidence.INCONCLUSIVE
    whole = all(row.excess and row.excess.spread is Spread.INTERVAL for row in apart)
    quiet = not any(row.group.noisy for row in apart)
    return Confidence.CONFIRMED if whole and quiet and floor is not None else Confidence.PROVISIONAL


@dataclass(frozen=True, kw_only=True, slots=True)
class _Setting:
    """One session option of the slower side, changed alone: what it does to its latency."""

    words: str
    pair: Versus


def _points(context: Context, workload: str) -> Iterator[list[InferGroup]]:
    """Yield the groups of each point at which Rust and C++ ran with equal settings.

    Points where both ran with the thesis's come before others; with most threads, where the
    number of threads of a session shows.
    """
    groups = [
        group for group in faithful_groups(context, workload) if group.cell.load is None and group.cell.sessions == 1
    ]
    of_point = grouped(groups, lambda group: group.cell.apart_from("runtime", "options"))
    able = [members for members in of_point.values() if _pair(members, EQUAL, EQUAL, context.floors)]
    thesis = [members for members in able if _thesis(members, context.floors) is not None]
    for first in base_point((members[0] for members in thesis or able), most_threads=True):
        yield of_point[first.cell.apart_from("runtime", "options")]


def _pair(groups: Sequence[InferGroup], mine: str, theirs: str, floors: Floors) -> Versus | None:
    """Return Rust with one set of options beside C++ with another, or None."""
    of = {(group.cell.runtime, group.cell.options): group for group in groups}
    rust, reference = of.get((_RUST, mine)), of.get((REFERENCE, theirs))
    return versus(rust, reference, floors) if rust and reference else None


def _thesis(groups: Sequence[InferGroup], floors: Floors) -> Versus | None:
    pairs = (_pair(groups, *sets, floors) for sets in product(_THESIS[_RUST], _THESIS[REFERENCE]))
    return next(filter(None, pairs), None)


def _verdict(groups: Sequence[InferGroup], floors: Floors, asked: bool) -> Finding:
    equal, thesis = _pair(groups, EQUAL, EQUAL, floors), _thesis(groups, floors)
    assert equal is not None
    near = nearness(equal)
    claim = f"the latency of {_RUST} is {times_text(equal)} that of {REFERENCE} under equal settings"
    single = _single(groups, floors)
    if thesis is None:
        claim += f": {near.value}" + ("; the thesis's settings were not run" if asked else "")
    else:
        claim = (
            f"the latency of {_RUST} is {times_text(thesis)} that of {REFERENCE} under the thesis's "
            f"settings and {times_text(equal)} under equal ones: {_conclusion(thesis, equal)}"
        )
    real = [setting for setting in single if setting.pair.comparison.verdict is not Verdict.SAME]
    none = [setting.words for setting in single if setting not in real]
    if real:
        listed = [f"{setting.words} {times_text(setting.pair)}" for setting in real[:_SETTINGS]]
        claim += f". Against its latency under equal settings, changed alone: {names(listed, 9)}"
    if none:
        claim += f". No difference can be told with {names(none, _SETTINGS)}, changed alone"
    pairs = [pair for pair in (thesis, equal) if pair is not None]
    levels = {confidence_of(pair) for pair in pairs}
    undecided = near is Nearness.UNKNOWN if thesis is None else _effect(thesis, equal) is _Effect.UNKNOWN
    cell = equal.group.cell
    return Finding(
        subject=cell.workload,
        kind="FFI overhead",
        claim=claim + ".",
        scope=f"on {cell.provider}, batch {cell.batch}, {count(cell.threads, 'thread')}, from {cell.exporter}",
        confidence=Confidence.INCONCLUSIVE
        if undecided
        else Confidence.PROVISIONAL
        if Confidence.PROVISIONAL in levels or thesis is None
        else Confidence.CONFIRMED,
        evidence=joined(
            RULE,
            floor_text(equal.floor),
            "" if single else "no setting was changed alone",
            what_includes(pairs),
            what_crosses(pairs),
            cells_of(pairs),
        ),
        comparisons=tuple(pair.comparison for pair in (*pairs, *(setting.pair for setting in single))),
    )


class _Effect(StrEnum):
    """What the thesis's settings do to the ratio under equal ones."""

    SLOWER = "the settings made it slower"
    NOT = "the settings did not make it slower"
    UNKNOWN = "what the settings do cannot be told from these runs"


def _effect(thesis: Versus, equal: Versus) -> _Effect:
    """Judge by the whole intervals of the two ratios, which have to be apart by more than noise."""
    if thesis.measure != equal.measure:
        return _Effect.UNKNOWN
    single = [pair for pair in (thesis, equal) if pair.ratio.spread is Spread.SINGLE]
    if any(pair.floor is None for pair in single):
        return _Effect.UNKNOWN
    noise = max((pair.floor.relative for pair in (thesis, equal) if pair.floor), default=0.0)
    apart = max(thesis.ratio.value / equal.ratio.value, equal.ratio.value / thesis.ratio.value)
    # Each ratio of one run a side may be off by the noise.
    if apart <= 1 + noise * (1 + len(single)):
        return _Effect.UNKNOWN
    if thesis.ratio.low > equal.ratio.high:
        return _Effect.SLOWER
    return _Effect.NOT if thesis.ratio.high < equal.ratio.low else _Effect.UNKNOWN


def _conclusion(thesis: Versus, equal: Versus) -> str:
    """Say what the two ratios together mean for the published overhead of calls."""
    effect = _effect(thesis, equal)
    verdict = equal.comparison.verdict
    if verdict is Verdict.WORSE:
        ending = f"; a difference of {factor(equal.ratio.value)} times is left that no setting makes"
    elif verdict is Verdict.SAME and nearness(equal) is Nearness.UNKNOWN:
        ending = "; whether a difference is left under equal ones cannot be told"
    elif effect is _Effect.SLOWER and thesis.comparison.verdict is Verdict.WORSE:
        ending = ", and not calls through its foreign function interface"
    else:
        ending = "; under equal ones it is not slower"
    return effect.value + ending


def _single(groups: Sequence[InferGroup], floors: Floors) -> list[_Setting]:
    """Return Rust's sets of options that differ from the equal one in a single option, worst first."""
    rust = [group for group in groups if group.cell.runtime == _RUST]
    equal = next((group for group in rust if group.cell.options == EQUAL), None)
    found = []
    for group in rust if equal is not None else []:
        changed = changed_settings(group, equal) if equal is not None else None
        pair = versus(group, equal, floors) if changed and len(changed) == 1 and equal else None
        if pair is not None and changed is not None:
            found.append(_Setting(words=setting_words(changed), pair=pair))
    return sorted(found, key=lambda setting: (-setting.pair.ratio.value, setting.words))


def setting_words(changed: dict[str, object]) -> str:
    """Write changed session options, `graph_optimization_level=basic`; those not set come last."""
    given = [f"{key}={value}" for key, value in changed.items() if value is not None]
    unset = [key for key, value in changed.items() if value is None]
    if len(unset) > _SETTINGS:
        return ", ".join([*given, f"{len(unset)} others not set" if given else "nothing set"])
    return ", ".join([*given, *(f"{key} not set" for key in unset)])
