"""What a container costs: the same cells with and without, compared repeat by repeat.

Both sides of a pair are the same repeat: one seed, one block, one set of nodes, in random order. What is printed is the
geometric mean of the pairs' ratios with the interval that decides. The noise floor is that of the ratios themselves: by
how much those of two repeats differ, where nothing but the repeat does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from transect.analysis.contrast import Contrast
from transect.analysis.groups import Group, grouped
from transect.analysis.labels import people_name
from transect.analysis.side_by_side import apart
from transect.domain.until import MARGIN, MIN_RUNS
from transect.report.engine.blocks import Lead, Part, digits, table, words
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import contrast_columns
from transect.report.engine.deciding import same_within
from transect.report.engine.finding import Finding, joined
from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.engine.text import clean, ends, factor, in_unit, quantity, scale_for
from transect.stats.comparisons import compare_paired
from transect.stats.estimates import Estimate
from transect.stats.samples import Spread, noise_floor
from transect.stats.verdicts import Answer

# What is compared in a pair: metric, its words, and the stage whose cells measure it.
QUESTIONS = {
    "startup_time": "start-up",
    "step_time": "a step",
    "input_time": "reading a step's files",
    "collective_time": "a collective",
}
# What a sweep calls its points.
_LATENCY = "avg_latency"


@dataclass(frozen=True, kw_only=True, slots=True)
class ContainerCost:
    """One number of a group in a container beside that of the same cells without; `size` is the message's in bytes, if any."""

    contrast: Contrast
    size: int | None = None

    @property
    def ratio(self) -> Estimate:
        """With over without."""
        return self.contrast.ratio

    @property
    def more(self) -> Estimate:
        """What it costs, in s, of the median without."""
        return self.ratio.beyond(self.contrast.comparison.b.median)


def container_costs(
    groups: Iterable[Group[Any]], *, margin: float = MARGIN, asks: Callable[[str], bool] = lambda metric: True
) -> list[ContainerCost]:
    """Return every number of every group in a container that ran without one too, in order of the cells.

    Of a collective those of the smallest and of the largest message that all runs of both sides came to.
    """
    every = [group for group in groups if group.ok and not group.wrong]
    bases = {group.cell.apart_from("container"): group for group in every if group.cell.container is None}
    found = []
    for group in every:
        base = None if group.cell.container is None else bases.get(group.cell.apart_from("container"))
        if base is None:
            continue
        for metric, label, size in _asked(group, base):
            made = _contrast(group, base, metric, label, margin=margin, asked=asks(metric))
            if made is not None:
                found.append(ContainerCost(contrast=made, size=size))
    return found


def _asked(group: Group[Any], base: Group[Any]) -> Iterator[tuple[str, str | None, int | None]]:
    for metric in QUESTIONS:
        if metric == "input_time" and group.cell.get("input") != "files":
            continue
        series = [
            {
                (number.label, number.log.size if number.log and number.log.series == _LATENCY else None)
                for number in record.metrics
                if number.name == metric
            }
            for record in (*group.ok, *base.ok)
        ]
        common = set.intersection(*series)
        if (None, None) in common:
            yield metric, None, None
        sized = {size: label for label, size in common if size is not None}
        for size in sorted({min(sized), max(sized)}) if sized else ():
            yield metric, sized[size], size


def _contrast(
    group: Group[Any], base: Group[Any], metric: str, label: str | None, *, margin: float, asked: bool
) -> Contrast | None:
    inside, without = (side.by_repeat(metric, label) for side in (group, base))
    common = [n for n in sorted(inside.keys() & without.keys()) if min(inside[n], without[n]) > 0]
    still = [side.by_repeat(metric, label, quiet=True) for side in (group, base)]
    quiet = [n for n in common if all(n in side for side in still)]
    enough = len(quiet) >= min(MIN_RUNS, len(common))
    kept = quiet if enough else common
    floor = noise_floor([[inside[n] / without[n] for n in kept]], margin=margin)
    comparison = compare_paired({n: inside[n] for n in kept}, {n: without[n] for n in kept}, floor=floor)
    if comparison is None:
        return None
    disturbed = "" if enough else "other programs ran during too many of these runs"
    return Contrast(
        group=group,
        base=base,
        varies="container",
        metric=metric,
        by="run",
        pairs=len(kept),
        left_out=len(common) - len(kept),
        quiet=enough,
        asked=asked,
        comparison=comparison,
        doubt=disturbed or apart((group, base)) or comparison.doubt,
        barred="processes share cores" if group.over_subscribed or base.over_subscribed else "",
    )


# By which of them a study's question is answered.
_TOPICS = {"startup_time": "start-up", "step_time": "step", "input_time": "files", "collective_time": "bandwidth"}


def all_costs(context: Context) -> list[ContainerCost]:
    """Return what containers cost in every stage that has cells with and without."""
    margin = context.analysis_plan.margin

    def asks(metric: str) -> bool:
        return context.asks(
            f"container.{_TOPICS[metric]}", *(("container.latency",) if metric == "collective_time" else ())
        )

    return [cost for stage in context.stages for cost in container_costs(context.of(stage), margin=margin, asks=asks)]


def place_of(cost: ContainerCost, *, whole: bool = True) -> str:
    """Say of what a cost is: `a step of iris-mlp by numpy on 2 processes`; not `whole`: without the workload."""
    cell = cost.contrast.group.cell
    what = QUESTIONS[cost.contrast.metric]
    if cost.size is not None:
        what += f" of {quantity(float(cost.size), 'B')}"
    test = dict(cell.get("options") or ()).get("test")
    name = f"{people_name(cell, always=('ranks',), never=('container', 'options'))}{f' ({test})' if test else ''}"
    return f"{what} of {cell.workload} by {name}" if whole and cell.workload else f"{what} of {name}"


def cost_words(cost: ContainerCost) -> str:
    """Write a cost: its ratio with ends, and its difference in seconds."""
    less = "less" if cost.more.value < 0 else "more"
    interval = "one pair" if cost.ratio.spread is Spread.SINGLE else ends(cost.ratio, factor)
    return f"{factor(cost.ratio.value)} times ({interval}), {quantity(abs(cost.more.value), 's')} {less}"


def container_findings(context: Context) -> list[Finding]:
    """One for each container and question: where it costs most."""
    costs = all_costs(context)
    findings = []
    for (container, metric, small), members in grouped(costs, _question).items():
        # Ranks that share cores measure the sharing: those that do not share come first.
        able = [cost for cost in members if not cost.contrast.over_subscribed] or members
        top = max(able, key=lambda cost: (cost.contrast.shown, cost.ratio.value, cost.contrast.group.cell.id))
        findings.append(_finding(container, metric, top, len(able), small))
    return findings


def _question(cost: ContainerCost) -> tuple[str, str, bool]:
    return str(cost.contrast.group.cell.container), cost.contrast.metric, cost.size is not None and cost.size <= 1024


def _finding(container: str, metric: str, cost: ContainerCost, pairs: int, small: bool) -> Finding:
    place, cost_text, pair = place_of(cost, whole=False), cost_words(cost), cost.contrast
    if pair.over_subscribed:
        claim = f"in {container}, {place} takes {cost_text}; its ranks share cores, so it decides nothing"
    elif pair.shown:
        claim = f"in {container}, {place} takes {cost_text}"
    elif pair.answer is Answer.SAME:
        claim = f"in {container}, {place} is {same_within(pair.comparison)}: {cost_text}"
    else:
        claim = f"what {container} costs in {place} is not known: {cost_text}"
    most = f"; the most {'that is shown ' if pair.shown else ''}of {pairs} comparisons" if pairs > 1 else ""
    version = next((str(v) for r in cost.contrast.group.ok if (v := _version(r.provenance))), "")
    return Finding(
        subject=str(cost.contrast.group.cell.workload or "study"),
        claim=clean(f"{claim}{most}."),
        kind="container",
        confidence=pair.confidence,
        contrasts=(replace(pair, candidates=2 * pairs),),
        groups=(pair.group, pair.base),
        topic="latency" if small else _TOPICS[metric],
        evidence=joined(
            f"with {quantity(pair.comparison.a.median, 's')}, without {quantity(pair.comparison.b.median, 's')}, "
            f"{pair.pairs} pairs of the same repeat in one block",
            f"{pair.left_out} disturbed left out" if pair.left_out else "",
            clean(pair.reason),
            _named(container, version),
        ),
    )


def _named(container: str, version: str) -> str | None:
    """Return a container program's words on its version, with its name where they lack it."""
    named = container.lower() in version.lower()
    return clean(version if named else f"{container} {version}") if version else None


def _version(provenance: dict[str, object]) -> object:
    environment = provenance.get("environment")
    return environment.get("wrapper_version") if isinstance(environment, dict) else None


def containers_body(context: Context) -> Iterator[Part]:
    """List every pair, a table for each question; nothing where no cell ran in a container and without."""
    costs = all_costs(context)
    if not costs:
        return
    yield Lead(
        "The same cells in a container and without one, on the same nodes, in one block in random order. Inside runs the same "
        "Python from the same lock. A pair is one repeat with and without, so that what its seed does drops out."
    )
    for metric, members in grouped(costs, lambda cost: cost.contrast.metric).items():
        yield _table(metric, members)


def _table(metric: str, costs: list[ContainerCost]) -> Part:
    scale = scale_for([cost.contrast.comparison.b.median for cost in costs], "s")
    return table(
        costs,
        [
            words("Container", lambda cost: clean(cost.contrast.group.cell.container)),
            words("Of", lambda cost: clean(place_of(cost))),
            digits(f"With ({scale.unit})", lambda cost: cost.contrast.comparison.a.median, scale),
            digits(f"Without ({scale.unit})", lambda cost: cost.contrast.comparison.b.median, scale),
            *contrast_columns("Ratio", lambda cost: cost.contrast),
            digits("More", lambda cost: cost.more.value, in_unit("s")),
            digits("Pairs", lambda cost: cost.contrast.pairs),
        ],
        caption=f"{QUESTIONS[metric][:1].upper()}{QUESTIONS[metric][1:]}, in a container and without",
    )


REPORT = StageReport(
    sections=(Section(key="containers", title="Containers", order=760, make=containers_body),),
    findings=(FindingMaker(name="container", order=840, make=container_findings, section="containers"),),
)
