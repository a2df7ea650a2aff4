"""One call: data parallel, a pipeline, or replicas of one, with how many micro-batches and which cut.

Every way to divide N ranks into R replicas of S stages is a candidate with 1, 2, 4, … micro-batches, as far as the batch
allows. Of each the best partition is bounded from above and from below (`bounds`); those whose lower bound is
above what another one reaches are left, and the others solved as ILPs, cheapest first. The least predicted
step wins; equals go to fewer stages, then fewer micro-batches. 1F1B is planned: it takes no longer than GPipe and keeps less;
for fewer micro-batches than stages GPipe, as torch's own 1F1B takes no such number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from transect.domain.errors import BadInput
from transect.domain.options import Value
from transect.planner.bounds import known_partition, lower_bound
from transect.planner.costs import LayerCosts
from transect.planner.machine import Machine
from transect.planner.partition import infeasible, mebibytes, partition
from transect.planner.problem import Infeasible, Problem, Solution
from transect.training.cuts import cut_text
from transect.training.layout import Layout

Mode = Literal["auto", "data", "model", "hybrid"]
MODES: tuple[Mode, ...] = ("auto", "data", "model", "hybrid")
# The strategy that all plans are run by: a pipeline of one stage is data parallel.
PIPELINE = "mpi-pipeline"
_MAX_MICRO_BATCHES = 64


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is to be planned. `costs_of` gives the layers' costs for micro-batches of so many samples.

    `memory_bytes`: the memory limit of a rank's training; None: no limit. `copies`: see `Problem`.
    """

    costs_of: Callable[[int], tuple[LayerCosts, ...]]
    machine: Machine
    ranks: int
    batch: int
    mode: Mode = "auto"
    nodes: int = 1
    memory_bytes: int | None = None
    copies: int = 2
    solver: str = "highs"


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """One way to divide the ranks; its step, or why there is none."""

    stages: int
    replicas: int
    micro_batches: int
    step_s: float | None
    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What to run, what it is predicted to take, and why."""

    kind: str
    stages: int
    replicas: int
    micro_batches: int
    schedule: str
    cut: str
    layers: tuple[tuple[int, int], ...]
    memory_bytes: tuple[int, ...]
    predicted_step_s: float
    why: tuple[str, ...]
    candidates: tuple[Candidate, ...]

    def options(self) -> dict[str, Value]:
        """Return the explicit options of a pipeline's cell."""
        found: dict[str, Value] = {"stages": self.stages, "micro_batches": self.micro_batches}
        if self.stages > 1:
            found |= {"schedule": self.schedule, "cut": self.cut}
        return found

    def json(self) -> dict[str, Any]:
        """Return all of it as JSON holds it."""
        return asdict(self) | {"options": self.options()}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Way:
    layout: Layout
    problem: Problem
    known: Solution | None
    least_s: float


def _kind(layout: Layout) -> str:
    if layout.model_parts == 1:
        return "data"
    return "model" if layout.replicas == 1 else "hybrid"


def _layouts(asked: Asked) -> Iterator[Layout]:
    for stages in range(1, asked.ranks + 1):
        if asked.ranks % stages:
            continue
        replicas = asked.ranks // stages
        micro_batches = 1
        while micro_batches <= _MAX_MICRO_BATCHES:
            layout = Layout(replicas, stages, micro_batches)
            if layout.complaint(asked.batch) is not None:
                break
            # One rank is data parallel, a pipeline, and both.
            if asked.mode == "auto" or asked.ranks == 1 or _kind(layout) == asked.mode:
                yield layout
            micro_batches *= 2


def _problem(asked: Asked, layout: Layout) -> Problem:
    largest = layout.micro(asked.batch // layout.replicas)[0]
    per_node = asked.ranks // asked.nodes
    machine, stages = asked.machine, layout.model_parts
    return Problem(
        layers=asked.costs_of(largest.stop - largest.start),
        devices=stages,
        micro_batches=layout.micro_batches,
        memory_bytes=asked.memory_bytes,
        schedule="1f1b" if layout.micro_batches >= stages else "gpipe",
        links=machine.links(stages, asked.ranks, per_node),
        copies=asked.copies,
        replicas=layout.replicas,
        replica_link=machine.replica_link(asked.ranks, per_node) if layout.replicas > 1 else machine.inside,
    )


def _check(asked: Asked) -> None:
    if asked.mode not in MODES:
        raise BadInput(f"plan {asked.mode!r}: expected {', '.join(MODES)}")
    if min(asked.ranks, asked.nodes, asked.batch) < 1 or asked.ranks % asked.nodes:
        raise BadInput(
            f"{asked.ranks} ranks on {asked.nodes} nodes, batch {asked.batch}: expected as many ranks on "
            "each node, and at least one of each"
        )


def _why_not(asked: Asked) -> str:
    if asked.mode == "hybrid" and not any(asked.ranks % s == 0 for s in range(2, asked.ranks)):
        return f"ranks: {asked.ranks} cannot be divided into several replicas of several stages"
    return (
        f"batch: {asked.batch} samples cannot be cut for {asked.ranks} ranks as plan {asked.mode} asks: "
        "as many for each replica, at least one for each micro-batch"
    )


def make_plan(asked: Asked) -> Plan | Infeasible:
    """Return the plan of the least predicted step, proved among all candidates, or which constraint leaves none.

    Raises BadInput for numbers that fit nothing.
    """
    _check(asked)
    ways: list[_Way] = []
    refused: list[Candidate] = []
    for layout in _layouts(asked):
        problem = _problem(asked, layout)
        known = known_partition(problem)
        if known is None:
            refused.append(_candidate(layout, None, infeasible(problem).reason))
            continue
        ways.append(_Way(layout=layout, problem=problem, known=known, least_s=lower_bound(problem)))
    if not ways and not refused:
        return Infeasible(_why_not(asked))
    solved: list[tuple[float, Layout, Solution, Problem]] = []
    left: list[Candidate] = []
    for way in sorted(ways, key=lambda way: way.known.step_s if way.known else 0.0):
        best = min((plan[0] for plan in solved), default=float("inf"))
        if way.least_s > best and way.known is not None:
            left.append(_candidate(way.layout, way.known.step_s, "not the least"))
            continue
        found = partition(way.problem, asked.solver)
        assert isinstance(found, Solution)
        solved.append((found.step_s, way.layout, found, way.problem))
    if not solved:
        # What comes nearest: the most memory is there for the most stages and micro-batches that there may be.
        cut = [candidate for candidate in refused if candidate.stages <= problem.count] or refused
        return Infeasible(cut[-1].reason)
    step, layout, solution, problem = min(solved, key=lambda way: (way[0], way[1].model_parts, way[1].micro_batches))
    candidates = [_candidate(way[1], way[0], "") for way in solved] + left + refused
    return Plan(
        kind=_kind(layout),
        stages=layout.model_parts,
        replicas=layout.replicas,
        micro_batches=layout.micro_batches,
        schedule=problem.schedule,
        cut=cut_text(solution.cuts),
        layers=tuple((stage.first, stage.last) for stage in solution.stages),
        memory_bytes=solution.memory_bytes,
        predicted_step_s=step,
        why=tuple(_reasons(asked, layout, solution, problem, candidates)),
        candidates=tuple(sorted(candidates, key=lambda candidate: (candidate.stages, candidate.micro_batches))),
    )


def _candidate(layout: Layout, step: float | None, reason: str) -> Candidate:
    return Candidate(
        stages=layout.model_parts,
        replicas=layout.replicas,
        micro_batches=layout.micro_batches,
        step_s=step,
        reason=reason,
    )


def _reasons(
    asked: Asked, layout: Layout, solution: Solution, problem: Problem, all_of: list[Candidate]
) -> Iterator[str]:
    compute = sum(layer.compute_s for layer in problem.layers)
    step = solution.step_s
    yield (
        f"the least predicted step of {len(all_of)} candidates: {step:.3g} s; a rank alone would "
        f"compute a replica's share in {layout.micro_batches * compute:.3g} s"
    )
    if layout.model_parts > 1:
        slowest = max(solution.stages, key=lambda stage: stage.time_s)
        idle = 1 - layout.micro_batches * sum(s.time_s for s in solution.stages) / (layout.model_parts * step)
        yield (
            f"its slowest stage, layers {slowest.first} to {slowest.last - 1}, takes "
            f"{slowest.time_s:.3g} s for a micro-batch; stages wait {100 * max(0.0, idle):.0f} % of the step"
        )
    if layout.replicas > 1:
        size = max(
            sum(layer.weight_bytes for layer in problem.layers[stage.first : stage.last]) for stage in solution.stages
        )
        yield f"{layout.replicas} replicas sum at most {mebibytes(size)} of gradients for a stage"
    for kind in ("data", "model", "hybrid"):
        others = [candidate for candidate in all_of if _kind(Layout(candidate.replicas, candidate.stages)) == kind]
        known = [candidate for candidate in others if candidate.step_s is not None]
        if kind == _kind(layout) or not others:
            continue
        if known:
            near = min(known, key=lambda candidate: candidate.step_s or 0.0)
            yield (
                f"{kind}: {near.step_s:.3g} s at best, {near.replicas} replicas of {near.stages} stages, "
                f"{near.micro_batches} micro-batches"
            )
        else:
            yield f"{kind}: {others[-1].reason}"
    if asked.memory_bytes is not None:
        most = max(solution.memory_bytes)
        yield f"memory: at most {mebibytes(most)} of {mebibytes(asked.memory_bytes)}"
