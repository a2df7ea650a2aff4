"""The option `plan` of a grid: the planner turns it into the options of a pipeline before a cell has an id."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from pydantic import Field

from transect.domain.axes.train import TrainCell
from transect.domain.errors import BadInput, Unsupported
from transect.domain.options import Value
from transect.domain.study import Section
from transect.planner.auto import MODES, Asked, make_plan
from transect.planner.costs import Rates, counted_costs, weight_copies
from transect.planner.machine import Machine
from transect.planner.problem import Infeasible, Link
from transect.training.parts import no_parts
from transect.training.strategies import STRATEGIES
from transect.training.workloads import WORKLOADS, Parameters, model_of

PLAN = "plan"
# What the planner decides: a grid that says `plan` says none of them.
_OPTIONS = ("stages", "micro_batches", "schedule", "cut")


class PlannerSection(Section):
    """What the planner assumes of a rank and its messages: plans only compare by it, but ids depend on it."""

    flops_per_s: float = Field(gt=0, description="of one rank, as `matrix-multiply-probe` measures")
    bytes_per_s: float = Field(gt=0, description="read and written by one rank, as `memory-bandwidth-probe` measures")
    latency_s: float = Field(ge=0, description="of a message within a node, as `network-probe` measures")
    link_bytes_per_s: float = Field(gt=0, description="of messages within a node")
    node_latency_s: float | None = Field(
        default=None, ge=0, description="of a message between nodes; null: as within one"
    )
    node_link_bytes_per_s: float | None = Field(
        default=None, gt=0, description="of messages between nodes; null: as within one"
    )
    memory_bytes: int | None = Field(default=None, ge=1, description="what a rank's training may hold; null: no limit")

    def machine(self) -> Machine:
        """Return it as the planner takes it."""
        inside = Link(self.latency_s, 1 / self.link_bytes_per_s)
        alpha = inside.alpha_s if self.node_latency_s is None else self.node_latency_s
        rate = self.node_link_bytes_per_s
        return Machine(
            rates=Rates(self.flops_per_s, self.bytes_per_s),
            inside=inside,
            source="the study",
            between=Link(alpha, inside.beta_s_per_byte if rate is None else 1 / rate),
        )


def check_plan(
    strategy: str, options: Mapping[str, Value | None], planner: PlannerSection | None, where: str
) -> dict[str, Value | None]:
    """Return the options without `plan`. Raises BadInput where it is none, or cannot be followed."""
    remaining = {name: value for name, value in options.items() if name != PLAN}
    if PLAN not in options:
        return remaining
    if options[PLAN] not in MODES:
        raise BadInput(f"{where}.{PLAN}: expected {', '.join(MODES)}, got {options[PLAN]!r}")
    known = STRATEGIES.get(strategy).options
    if missing := [name for name in _OPTIONS if name not in known]:
        raise BadInput(
            f"{where}.{PLAN}: strategy {strategy} has no option {', '.join(missing)}, which a plan "
            "decides: expected one such as mpi-pipeline"
        )
    if given := [name for name in _OPTIONS if name in remaining]:
        raise BadInput(f"{where}: `{PLAN}` decides {', '.join(given)}: expected one or the other")
    if planner is None:
        raise BadInput(f"{where}.{PLAN}: expected `train.planner`, which says what a rank and its messages take")
    return remaining


@cache
def _planned(
    workload: str, values: str, planner: PlannerSection, ranks: int, nodes: int, batch: int, precision: str, mode: str
) -> tuple[tuple[str, Value], ...]:
    machine, parameters = planner.machine(), Parameters.model_validate_json(values)
    model = model_of(WORKLOADS.get(workload))
    if (reason := no_parts(model)) is not None:
        raise Unsupported(reason)
    found = make_plan(
        Asked(
            costs_of=lambda size: counted_costs(model, parameters, size, precision, machine.rates),
            machine=machine,
            ranks=ranks,
            nodes=nodes,
            batch=batch,
            mode=mode,  # type: ignore[arg-type]
            memory_bytes=planner.memory_bytes,
            copies=weight_copies(parameters),
        )
    )
    if isinstance(found, Infeasible):
        raise Unsupported(found.reason)
    return tuple(found.options().items())


def planned_options(
    cell: TrainCell,
    parameters: Parameters,
    options: Mapping[str, Value | None],
    planner: PlannerSection | None,
    where: str,
) -> dict[str, Value | None]:
    """Return a cell's options with `plan` resolved; the cell has none yet, and its global batch.

    Raises BadInput where there is no such plan, naming the constraint.
    """
    remaining = check_plan(cell.strategy, options, planner, where)
    if PLAN not in options:
        return remaining
    assert planner is not None
    try:
        chosen = _planned(
            cell.workload,
            parameters.model_dump_json(),
            planner,
            cell.ranks,
            cell.nodes,
            cell.batch,
            cell.precision,
            str(options[PLAN]),
        )
    except Unsupported as error:
        raise BadInput(
            f"{where}.{PLAN}: no plan {options[PLAN]} of {cell.workload} for {cell.ranks} ranks: {error}"
        ) from None
    return remaining | dict(chosen)
