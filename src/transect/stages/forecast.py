"""The forecast stage: what trainings will take, predicted before they run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from transect.domain.axes.bench import BenchCell
from transect.domain.axes.train import ForecastCell, TrainCell, forecast_of, trained_as
from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.domain.mpi_libraries import OWN, chosen_mpi
from transect.domain.registry import Registry
from transect.domain.study import Count, Section, typed
from transect.domain.takes import Metrics, Takes
from transect.measure.provenance import available_cores
from transect.payloads.forecast_prediction import COLLECTIVES, collectives_of
from transect.payloads.forecast_sources import profile_of
from transect.payloads.profile import PROFILE
from transect.planning.context import Context
from transect.planning.expand import reason_to_skip
from transect.planning.sources import plugin_files
from transect.planning.stage import STAGES, Placement, Stage
from transect.training.frameworks import FRAMEWORKS
from transect.training.strategies import STRATEGIES
from transect.training.traffic import Traffic
from transect.training.workloads import WORKLOADS


class ForecastGrid(Section):
    """Trainings of the study: those that every list allows; an empty list allows all."""

    workloads: list[str] = Field(default=[], description="only these workloads")
    frameworks: Annotated[list[str], typed(FRAMEWORKS.named)] = Field(default=[], description="only these frameworks")
    strategies: Annotated[list[str], typed(STRATEGIES.named)] = Field(default=[], description="only these strategies")
    ranks: list[Count] = Field(default=[], description="only so many ranks on each node")
    nodes: list[Count] = Field(default=[], description="only so many nodes")

    def takes(self, cell: TrainCell) -> bool:
        """Whether a training is among them."""
        return all(
            not allowed or value in allowed
            for allowed, value in (
                (self.workloads, cell.workload),
                (self.frameworks, cell.framework),
                (self.strategies, cell.strategy),
                (self.ranks, cell.ranks_per_node),
                (self.nodes, cell.nodes),
            )
        )


class ForecastSection(Section):
    """Predictions of trainings, each stored before its training begins."""

    grids: list[ForecastGrid] = Field(default=[], description="which trainings; `- {}` is all of them")
    network: Literal["probe", "system"] = Field(
        default="probe",
        description="where latency and bandwidth between nodes come from: probes that run before, or the "
        "system file's `latency_s` and `bytes_per_s` of the network; within a node from probes",
    )


# The sweep over sizes of messages with each carrier.
_BRIEF = (("seconds", 5),)
_SWEEPS = {"mpi": "message-sweep", "gloo": "message-sweep-torch"}


def _traffic(cell: TrainCell) -> Traffic | None:
    return STRATEGIES.get(cell.strategy).traffic(cell)


def _like(cell: ForecastCell, benchmark: str, **axes: Any) -> BenchCell:
    shape: dict[str, Any] = {"nodes": cell.nodes, "ranks_per_node": cell.ranks_per_node} | axes
    if benchmark == _SWEEPS["mpi"] and (mpi := chosen_mpi(cell.options)) != OWN:
        shape["options"] = tuple(sorted((*shape["options"], ("mpi", mpi))))
    return BenchCell(benchmark=benchmark, network=cell.network, **shape)


@STAGES.register("forecast")
class Forecast(Stage[ForecastCell]):
    """Simulates a step from measured layers and messages."""

    payload = "transect.payloads.forecast:run"
    takes = {"profile": Takes(PROFILE), **{role: Metrics() for role in ("messages", *COLLECTIVES)}}
    key = "forecast"
    section = ForecastSection
    needs = ("profile", "bench")
    precedes = ("train",)
    placement = Placement(local=True)

    def check(self, section: ForecastSection, context: Context) -> None:
        """The study has what it selects by, and the system describes the networks that it is to take from there."""
        for number, grid in enumerate(section.grids):
            where = f"forecast.grids.{number}"
            known = [
                context.knows(registry, names, f"{where}.{key}")
                for registry, names, key in (
                    (WORKLOADS, grid.workloads, "workloads"),
                    (FRAMEWORKS, grid.frameworks, "frameworks"),
                    (STRATEGIES, grid.strategies, "strategies"),
                )
            ]
            # Trainings that do not fit this system may have been left out.
            if all(known) and not context.left_out and not any(map(grid.takes, _trainings(context))):
                with context.complaints.noted():
                    raise BadInput(f"{context.where(where)}: the study trains nothing of that kind")

    def size(self, section: ForecastSection) -> int:
        """Of trainings that are counted as such."""
        return 0

    def cells(self, section: ForecastSection, context: Context) -> Iterable[ForecastCell]:
        """One for each training that can run, whatever its repeats."""
        found: dict[ForecastCell, None] = {}
        for cell in _trainings(context):
            if any(grid.takes(cell) for grid in section.grids) and reason_to_skip(cell) is None:
                found.setdefault(forecast_of(cell))
        return found

    def inputs(self, cell: ForecastCell, context: Context) -> dict[str, Cell]:
        """The layers, profiled by as many ranks at once as share a node, and probes of messages.

        Nothing for what is not simulated: nobody is to measure in vain.
        """
        if reason_to_skip(cell) is not None:
            return {}
        layout = STRATEGIES.get(cell.strategy).layout(trained_as(cell))
        cores = context.system.cores_per_node or available_cores()
        found: dict[str, Cell] = {"profile": profile_of(cell, layout, cores)}
        traffic = _traffic(trained_as(cell))
        if traffic is None or cell.ranks == 1 or self._from_system(cell, context):
            return found
        if traffic.carrier == "none":
            return found
        sweep = _SWEEPS[traffic.carrier]
        across = {"nodes": 2, "ranks_per_node": 1} if cell.nodes > 1 else {"ranks_per_node": 2}
        found["messages"] = _like(cell, sweep, **across, options=(*_BRIEF, ("test", "latency")))
        for role in collectives_of(traffic, layout):
            # An all-reduce is what it measures unasked.
            test = {"broadcast": "bcast", "reduce": "reduce"}.get(role)
            options = (*_BRIEF, ("test", test)) if test else _BRIEF
            found[role] = _like(cell, sweep, options=options)
        return found

    def _from_system(self, cell: ForecastCell, context: Context) -> bool:
        return cell.nodes > 1 and context.section(self.key).network == "system"

    def before(self, cell: ForecastCell, context: Context) -> Iterable[Cell]:
        """Every repeat of its training."""
        return context.all_of("train", forecast_of, cell)

    def plugins(self, cell: ForecastCell) -> list[tuple[Registry[Any], str]]:
        """The workload; of the strategy only what it says of itself."""
        return [(WORKLOADS, cell.workload)]

    def supports(self, cell: ForecastCell) -> str | None:
        """Strategies that describe their communication, and activations that are simply kept."""
        if _traffic(trained_as(cell)) is None:
            return f"{cell.strategy} does not describe its communication: it has no `traffic`"
        if cell.memory != "plain":
            return f"what {cell.memory} memory costs is not simulated"
        if cell.memory_budget is not None:
            return "what a memory_budget costs is not simulated"
        if cell.device != "cpu":
            return f"what a step takes on {cell.device} is not simulated"
        if cell.input != "stored":
            return f"what input '{cell.input}' costs is not simulated"
        if cell.hyperparameters:
            return "layers are profiled with the workload's own hyper-parameters: what a step takes with others is not simulated"
        return None

    def spec(self, cell: ForecastCell, context: Context) -> dict[str, Any]:
        """Where the network's numbers come from, and these where the system gives them."""
        if not self._from_system(cell, context):
            return {"network_from": "probe"}
        name = cell.network or context.system.network
        known = context.system.networks.get(name) if name is not None else None
        if known is None or known.latency_s is None or known.bytes_per_s is None:
            raise BadInput(
                f"{context.where('forecast.network')}: system '{context.system.name}' gives no "
                f"`latency_s` and `bytes_per_s` of network '{name}'"
            )
        return {"network_from": "system", "network": {"latency_s": known.latency_s, "bytes_per_s": known.bytes_per_s}}

    def sources(self, cell: ForecastCell) -> list[Path]:
        """The strategy, which says how its ranks talk."""
        return plugin_files(STRATEGIES, cell.strategy)

    def gpus(self, cell: ForecastCell) -> int:
        """None: it simulates."""
        return 0

    def environment(self, cell: ForecastCell) -> str:
        """The driver's own."""
        return ""


def _trainings(context: Context) -> list[TrainCell]:
    return [cell for cell in context.cells["train"] if isinstance(cell, TrainCell)]
