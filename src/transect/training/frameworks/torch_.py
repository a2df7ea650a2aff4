"""PyTorch: eager mode, autograd, torch.optim."""

from __future__ import annotations

from transect.domain.axes.train import TrainCell
from transect.training.frameworks import FRAMEWORKS, ModelPart, ModelPlan, PartFramework, runs_on
from transect.training.frameworks._torch_losses import LOSSES
from transect.training.frameworks._torch_optimisers import OPTIMISERS
from transect.training.frameworks._torch_part import TorchPart
from transect.training.frameworks._torch_trainer import TorchTrainer
from transect.training.models import Model, no_module
from transect.training.optimisers import OWN_OPTIMISER


@FRAMEWORKS.register("torch", "pytorch")
class TorchFramework(PartFramework):
    """PyTorch on a CPU or one GPU per rank."""

    environment = "torch"
    optimisers = (*OPTIMISERS, OWN_OPTIMISER)
    losses = LOSSES
    follows = ("decay", "label_smoothing", "clip_norm", "accumulation", "ema")

    def supports(self, cell: TrainCell) -> str | None:
        return runs_on(cell, "torch", ("cpu", "cuda"), ("fp32", "fp64", "amp-bf16"))

    def builds(self, model: Model) -> str | None:
        return no_module(model)

    def trainer(self, plan: ModelPlan) -> TorchTrainer:
        return TorchTrainer(plan)

    def part_trainer(self, plan: ModelPlan, part: ModelPart) -> TorchPart:
        return TorchPart(plan, part)

    def libraries(self) -> dict[str, str]:
        import torch

        cuda = {"cuda": str(torch.version.cuda)} if torch.version.cuda else {}
        return {"torch": torch.__version__} | cuda
