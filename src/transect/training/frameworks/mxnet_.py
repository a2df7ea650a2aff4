"""Apache MXNet, archived upstream since 2023: Gluon, hybridized, with autograd and gluon.Trainer."""

from __future__ import annotations

from transect.domain.axes.train import TrainCell
from transect.training.frameworks import FRAMEWORKS, ModelPart, ModelPlan, PartFramework, runs_on
from transect.training.frameworks._mxnet_part import MxnetPart
from transect.training.frameworks._mxnet_trainer import MxnetTrainer


@FRAMEWORKS.register("mxnet")
class MxnetFramework(PartFramework):
    """MXNet on a CPU, with oneDNN for float32: its last wheels have no GPU code for today's CUDA."""

    environment = "mxnet"
    optimisers = ("sgd", "nesterov", "adamw")

    def supports(self, cell: TrainCell) -> str | None:
        """CPU only, in float32 and float64."""
        return runs_on(cell, "mxnet")

    def trainer(self, plan: ModelPlan) -> MxnetTrainer:
        """Build the net and its gluon.Trainer."""
        return MxnetTrainer(plan)

    def part_trainer(self, plan: ModelPlan, part: ModelPart) -> MxnetPart:
        """Build the part's net and its gluon.Trainer."""
        return MxnetPart(plan, part)

    def libraries(self) -> dict[str, str]:
        """Return MXNet's version and whether oneDNN computes."""
        import mxnet as mx

        on = mx.runtime.Features().is_enabled("MKLDNN")
        return {"mxnet": mx.__version__, "onednn": "on" if on else "off"}
