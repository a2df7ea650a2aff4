"""JAX without Keras: `value_and_grad` and `jit` of pure functions, with optax."""

from __future__ import annotations

from transect.domain.axes.train import TrainCell
from transect.training.encoder_model import TextEncoder
from transect.training.frameworks import FRAMEWORKS, ModelPart, ModelPlan, PartFramework, only_layers, runs_on
from transect.training.frameworks._jax_losses import LOSSES
from transect.training.frameworks._jax_optimisers import OPTIMISERS
from transect.training.frameworks._jax_part import JaxPart
from transect.training.frameworks._jax_trainer import JaxTrainer
from transect.training.models import Model


@FRAMEWORKS.register("jax")
class JaxFramework(PartFramework):
    """JAX on CPUs or on one GPU."""

    environment = "keras-jax"
    optimisers = OPTIMISERS
    losses = LOSSES
    follows = ("decay", "label_smoothing", "clip_norm", "accumulation", "ema")

    def supports(self, cell: TrainCell) -> str | None:
        if cell.device == "cuda" and cell.strategy != "single":
            return f"jax trains on one GPU by itself: strategy single, not {cell.strategy}"
        return runs_on(cell, "jax", ("cpu", "cuda"), ("fp32", "fp64", "amp-bf16"))

    def builds(self, model: Model) -> str | None:
        """Lists of layers, and encoders of texts."""
        return None if isinstance(model, TextEncoder) else only_layers(model)

    def trainer(self, plan: ModelPlan) -> JaxTrainer:
        return JaxTrainer(plan)

    def part_trainer(self, plan: ModelPlan, part: ModelPart) -> JaxPart:
        return JaxPart(plan, part, JaxTrainer)

    def libraries(self) -> dict[str, str]:
        import jax
        import jaxlib
        import optax

        return {"jax": jax.__version__, "jaxlib": jaxlib.__version__, "optax": optax.__version__}
