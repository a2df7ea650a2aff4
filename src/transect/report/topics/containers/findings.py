"""Findings on containers: what each costs, with its interval, and what is left of a published claim."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from transect.analysis.contrast import Contrast
from transect.analysis.groups import grouped
from transect.analysis.labels import people_name
from transect.report.engine.context import Context
from transect.report.engine.deciding import same_within
from transect.report.engine.finding import Finding, joined
from transect.report.engine.text import clean, ends, factor, percent, quantity
from transect.report.topics.containers.facts import (
    LITTLE,
    QUESTIONS,
    ContainerCost,
    Published,
    container_costs,
    published_answer,
)
from transect.stats.samples import Spread
from transect.stats.verdicts import Answer

# By which of them a study's question is answered.
_TOPICS = {"startup_time": "start-up", "step_time": "step", "input_time": "files", "collective_time": "bandwidth"}

PUBLISHED = "ResNet in Go (Gorgonia), 2023–24"


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
    cell = cost.group.cell
    what = QUESTIONS[cost.metric]
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
    """One for each container and question: where it costs most; then one for what was published."""
    costs = all_costs(context)
    findings = []
    for (container, metric, small), members in grouped(costs, _question).items():
        # Ranks that share cores measure the sharing: those that do not share come first.
        able = [cost for cost in members if not cost.contrast.over_subscribed] or members
        top = max(able, key=lambda cost: (cost.contrast.shown, cost.ratio.value, cost.group.cell.id))
        findings.append(_finding(container, metric, top, len(able), small))
    answer = claim_answer(context, costs)
    return findings if answer is None else [*findings, _published(answer)]


def claim_answer(context: Context, costs: Iterable[ContainerCost]) -> Published | None:
    """Return what is left of the published claim, where the study asks for it."""
    asked = context.asks_for(PUBLISHED, "container.claim")
    return published_answer(costs) if asked else None


def _question(cost: ContainerCost) -> tuple[str, str, bool]:
    return cost.container, cost.metric, cost.size is not None and cost.size <= 1024


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
    most = f"; the most of {pairs} comparisons" if pairs > 1 else ""
    version = next((str(v) for r in cost.group.ok if (v := _version(r.provenance))), "")
    return Finding(
        subject=str(cost.group.cell.workload or "study"),
        claim=clean(f"{claim}{most}."),
        kind="container",
        confidence=pair.confidence,
        contrasts=(chosen(pair, pairs),),
        groups=(pair.group, pair.base),
        topic="latency" if small else _TOPICS[metric],
        evidence=joined(
            f"with {quantity(pair.comparison.a.median, 's')}, without {quantity(pair.comparison.b.median, 's')}, "
            f"{pair.pairs} pairs of the same repeat in one block",
            clean(pair.reason),
            _named(container, version),
        ),
    )


def chosen(pair: Contrast, pairs: int) -> Contrast:
    """Return a contrast as the largest of so many."""
    return replace(pair, candidates=2 * pairs)


def _named(container: str, version: str) -> str | None:
    """Return a container program's words on its version, with its name where they lack it."""
    named = container.lower() in version.lower()
    return clean(version if named else f"{container} {version}") if version else None


def _version(provenance: dict[str, object]) -> object:
    environment = provenance.get("environment")
    return environment.get("wrapper_version") if isinstance(environment, dict) else None


def _published(answer: Published) -> Finding:
    cost = answer.cost
    verdict = {
        "little": f"a container costs little here: at most {percent(LITTLE)} of a step anywhere",
        "not little": f"a container does not cost little here: more than {percent(LITTLE)} of a step",
        "open": "whether a container costs little is not decided here",
    }[answer.verdict]
    return Finding(
        subject="claims",
        kind="container claim",
        confidence=answer.confidence,
        contrasts=(chosen(cost.contrast, answer.pairs),) if answer.verdict == "not little" else (),
        claim=clean(
            f"{PUBLISHED}, with and without Singularity, no timings published: {verdict}; {place_of(cost)} "
            f"in {cost.container} takes {cost_words(cost)}."
        ),
        evidence=joined("there ResNet-50 on a GPU under Singularity", clean(cost.contrast.reason)),
    )
