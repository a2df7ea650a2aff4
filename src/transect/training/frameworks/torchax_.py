"""A user's module of torch in JAX: its exported operators by torchax, under `jit` and `value_and_grad`."""

from __future__ import annotations

from transect.domain.axes.train import TrainCell
from transect.domain.precisions import find_precision
from transect.training.frameworks import FRAMEWORKS, Framework, ModelPlan, runs_on
from transect.training.frameworks._jax_losses import LOSSES
from transect.training.frameworks._jax_module import ModuleNetwork
from transect.training.frameworks._jax_optimisers import OPTIMISERS
from transect.training.frameworks._jax_trainer import JaxTrainer
from transect.training.models import Model
from transect.training.module_model import ModuleModel


class TorchaxTrainer(JaxTrainer):
    """The trainer of JAX on a module's function; samples and weights stay in torch's layout."""

    def network(self, plan: ModelPlan) -> ModuleNetwork:
        assert isinstance(plan.model, ModuleModel)
        return ModuleNetwork(plan.model, find_precision(plan.precision).stored, plan.batch)


@FRAMEWORKS.register("torchax")
class TorchaxFramework(Framework):
    """Modules of torch, computed by JAX."""

    environment = "torchax"
    optimisers = OPTIMISERS
    losses = (*LOSSES, "next-token")
    follows = ("decay", "label_smoothing", "clip_norm", "ema")

    def supports(self, cell: TrainCell) -> str | None:
        return runs_on(cell, "torchax")

    def builds(self, model: Model) -> str | None:
        """What torch can export is known when it is tried."""
        if not isinstance(model, ModuleModel):
            return "it takes modules of torch; `jax` builds transect's own models"
        if model.own_loss is not None:
            file, name = model.own_loss
            return f"the loss {file.name}:{name} is a function of torch's tensors"
        return None

    def trainer(self, plan: ModelPlan) -> TorchaxTrainer:
        return TorchaxTrainer(plan)

    def libraries(self) -> dict[str, str]:
        import jax
        import optax
        import torch
        import torchax

        versions = {"jax": jax, "optax": optax, "torch": torch, "torchax": torchax}
        return {name: library.__version__ for name, library in versions.items()}
