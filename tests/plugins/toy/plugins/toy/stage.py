"""The toy stage: norms of trained weights."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import Field

from transect.domain.cell import Cell
from transect.domain.registry import Registry
from transect.domain.study import Counts, Section
from transect.domain.takes import Takes
from transect.planning.context import Context
from transect.planning.stage import STAGES, Stage, points
from transect.stages.toy.cell import ToyCell
from transect.stages.train.stage import trained
from transect.training.workloads import WORKLOADS

# Added to every norm.
_OFFSET = 0


class ToySection(Section):
    """Norms of the weights of trained workloads."""

    workloads: list[str] = Field(default=[], description="each must be trained by `framework` on one rank")
    framework: str = Field(default="numpy", description="whose weights are looked at")
    orders: Counts = Field(default=[2], description="of the norms")


@STAGES.register("toy")
class Toy(Stage[ToyCell]):
    """Takes weights and gives a number."""

    payload = "transect.stages.toy.payload:norm"
    takes = {"weights": Takes("weights.npz")}
    key = "toy"
    section = ToySection
    needs = ("train",)

    def environment(self, cell: ToyCell) -> str:
        """Where numpy is."""
        return "base"

    def check(self, section: ToySection, context: Context) -> None:
        """Every workload is trained."""
        where = context.where("toy.workloads")
        for name in section.workloads:
            WORKLOADS.get(name, where)
            trained(name, section.framework, context, where)

    def cells(self, section: ToySection, context: Context) -> Iterable[ToyCell]:
        """Every workload by every order."""
        for point in points(workload=section.workloads, order=section.orders):
            yield ToyCell(**point, framework=section.framework)

    def inputs(self, cell: ToyCell, context: Context) -> dict[str, Cell]:
        """Weights of one training."""
        return {"weights": trained(cell.workload, cell.framework, context)}

    def plugins(self, cell: ToyCell) -> list[tuple[Registry[Any], str]]:
        """The workload."""
        return [(WORKLOADS, cell.workload)]

    def spec(self, cell: ToyCell, context: Context) -> dict[str, Any]:
        """What is added."""
        return {"offset": _OFFSET}
