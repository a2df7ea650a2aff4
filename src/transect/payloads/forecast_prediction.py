"""One step of a training, simulated from what a rank computes and how ranks communicate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from transect.domain.axes.train import TrainCell
from transect.domain.errors import Unsupported
from transect.payloads.forecast_sources import Profiled
from transect.simulation.collectives import ALLREDUCES, Allreduce
from transect.simulation.hierarchy import Hierarchy
from transect.simulation.networks import Machine
from transect.simulation.pipelines import pipelined
from transect.simulation.steps import PATTERNS, hierarchical
from transect.simulation.work import Messages, Step, Work
from transect.training.layout import Layout
from transect.training.traffic import Traffic

# Whose time depends on the algorithm of an all-reduce.
_SUMS = ("allreduce", "buckets", "overlap-allreduce", "pipeline")
# And on those of a broadcast and a reduction.
_THROUGH_ROOT = ("bcast-reduce", "overlap-bcast", "overlap")
# What may be measured on all ranks.
COLLECTIVES = ("allreduce", "broadcast", "reduce")


def collectives_of(traffic: Traffic, layout: Layout) -> tuple[str, ...]:
    """Return those that all ranks of a strategy do together, and a prediction takes as measured."""
    if layout.model_parts == 1 and layout.replicas > 1:
        if traffic.pattern in _SUMS:
            return COLLECTIVES[:1]
        if traffic.pattern in _THROUGH_ROOT:
            return COLLECTIVES[1:]
    return ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """What a prediction takes: the machine, a rank's work, and what was measured among `COLLECTIVES`.

    `cores` are a node's.
    """

    cell: TrainCell
    layout: Layout
    traffic: Traffic
    profiled: Profiled
    machine: Machine
    cores: int
    measured: Mapping[str, Allreduce] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Prediction:
    """A simulated step, and what was assumed for it."""

    step: Step
    seconds: float
    algorithm: str
    assumed: tuple[str, ...]

    def details(self) -> dict[str, Any]:
        """Return its parts as JSON."""
        parts = asdict(self.step) | {"waited_s": self.step.waited_s, "overlap": self.step.overlap}
        return {"simulated": parts, "algorithm": self.algorithm, "assumed": list(self.assumed)}


def predict(given: Setting) -> Prediction:
    """Simulate one step. Raises Unsupported for a pattern that is not there."""
    assumed: list[str] = []
    traffic, cell = given.traffic, given.cell
    step, name = _best(given, _work(given))
    seconds = step.seconds
    per_node = cell.ranks_per_node * cell.threads
    if traffic.pattern == "pipeline" and per_node > given.cores:
        # Ranks wait in turns, so that they need not share cores all of the time.
        assumed.append(f"{per_node} threads on {given.cores} cores take all their work at least")
        seconds = max(seconds, step.compute_s * per_node / given.cores)
    if step.overlap > 0 and per_node + cell.ranks_per_node > given.cores and cell.nodes == 1:
        # Within a node a message is a copy, and a copy needs a core.
        assumed.append("no core is spare: messages within a node take the time of computing")
        seconds = max(seconds, step.compute_s + step.under_way_s)
    return Prediction(step, seconds, name, tuple(assumed))


def _work(given: Setting) -> Work:
    known, traffic = given.profiled, given.traffic
    if traffic.pattern == "none" and known.fused_s is not None:
        return replace(known.stretched(known.fused_s), update_s=known.work.update_s * 0)
    exchange = traffic.copies * known.exchange_s if given.layout.replicas > 1 else 0.0
    if traffic.pattern == "pipeline":
        # A batch is brought to the device once, and each stage hands out its own gradients.
        step_s = known.input_s * given.layout.micro_batches + exchange / given.layout.model_parts
        return replace(known.stretched(known.whole_s), step_s=step_s)
    if traffic.cuts:
        # Ranks go through these parts one by one, as the profile did.
        return replace(known.work.joined(traffic.cuts), step_s=known.input_s + exchange)
    return replace(known.stretched(known.trained_s), step_s=known.input_s + exchange)


def _best(given: Setting, work: Work) -> tuple[Step, str]:
    """Return the step with the collectives that were measured, else with the fastest all-reduce; "" where there is none."""
    if given.measured:
        return _simulate(given, work, given.measured), "measured"
    if given.layout.replicas == 1 or given.traffic.pattern not in _SUMS:
        return _simulate(given, work, {}), ""
    steps = {name: _simulate(given, work, {"allreduce": collective}) for name, collective in ALLREDUCES.items()}
    fastest = min(steps, key=lambda name: steps[name].seconds)
    return steps[fastest], fastest


def _simulate(given: Setting, work: Work, collectives: Mapping[str, Any]) -> Step:
    traffic = given.traffic
    messages = Messages(
        **collectives,
        progress=traffic.progress,
        bucket_bytes=traffic.bucket_bytes,
        first_bucket_bytes=traffic.first_bucket_bytes,
    )
    match traffic.pattern:
        case "none":
            pattern = PATTERNS["allreduce"]
        case "pipeline":
            pattern = partial(
                pipelined,
                cuts=traffic.cuts,
                micro_batches=given.layout.micro_batches,
                schedule=traffic.schedule,
                chunks=traffic.chunks,
                behind=traffic.behind,
            )
        case "hierarchical":
            tree = Hierarchy(group=traffic.group, chunk_bytes=traffic.chunk_bytes, upper=traffic.upper)
            pattern = partial(hierarchical, hierarchy=tree, root_updates=traffic.root_updates)
        case name if name in PATTERNS:
            pattern = PATTERNS[name]
        case name:
            raise Unsupported(f"messages in the pattern '{name}' are not simulated")
    return pattern(work, given.machine, messages)
