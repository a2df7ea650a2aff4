"""Findings on containers: what each costs, with its interval, and what is left of a published claim."""

from __future__ import annotations

from collections.abc import Iterable

from transect.analysis.groups import grouped
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

# By which of them a study's question is answered.
_TOPICS = {"startup_time": "start-up", "step_time": "step", "input_time": "files", "collective_time": "bandwidth"}

PUBLISHED = "ResNet in Go (Gorgonia), 2023–24"


def all_costs(context: Context) -> list[ContainerCost]:
    """Return what containers cost in every stage that has cells with and without."""
    return [cost for stage in context.stages for cost in container_costs(context.of(stage), context.analysis_plan)]


def place_of(cost: ContainerCost) -> str:
    """Say of what a cost is: `a step of iris-mlp, numpy, 2 ranks`."""
    cell = cost.group.cell
    what = QUESTIONS[cost.metric]
    if cost.size is not None:
        what += f" of {quantity(float(cost.size), 'B')}"
    names = [cell.workload, cell.get("framework"), cell.get("strategy"), cell.get("benchmark")]
    names.append(dict(cell.get("options") or ()).get("test"))
    ranks = f"{cell.nodes}x{cell.ranks_per_node} ranks" if cell.ranks > 1 else "1 rank"
    return f"{what} of {', '.join([*filter(None, names), ranks])}"


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
        able = [cost for cost in members if not cost.over_subscribed] or members
        top = max(able, key=lambda cost: (cost.shown, cost.ratio.value, cost.group.cell.id))
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
    place, cost_text = place_of(cost), cost_words(cost)
    if cost.shown:
        claim = f"in {container}, {place} takes {cost_text}"
    elif cost.same:
        claim = f"in {container}, {place} is {same_within(cost.comparison)}: {cost_text}"
    elif cost.over_subscribed:
        claim = f"in {container}, {place} takes {cost_text}; its ranks share cores, so it decides nothing"
    else:
        claim = f"no cost of {container} can be told from noise in {place}: {cost_text}"
    most = f"; the most of {pairs} comparisons" if pairs > 1 else ""
    version = next((str(v) for r in cost.group.ok if (v := _version(r.provenance))), "")
    return Finding(
        subject=str(cost.group.cell.workload or "study"),
        claim=clean(f"{claim}{most}."),
        kind="container",
        confidence=cost.confidence,
        comparisons=cost.comparisons(pairs),
        groups=(cost.group, cost.base),
        topic="latency" if small else _TOPICS[metric],
        evidence=joined(
            f"with {quantity(cost.comparison.b.median, 's')}, without {quantity(cost.comparison.a.median, 's')}, "
            f"{cost.pairs} pairs of the same repeat in one block",
            clean(cost.reason),
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
        comparisons=cost.comparisons(answer.pairs) if answer.verdict == "not little" else (),
        claim=clean(
            f"{PUBLISHED}, with and without Singularity, no timings published: {verdict}; {place_of(cost)} "
            f"in {cost.container} takes {cost_words(cost)}."
        ),
        evidence=joined("there ResNet-50 on a GPU under Singularity", clean(cost.reason)),
    )
