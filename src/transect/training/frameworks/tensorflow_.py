"""TensorFlow without Keras: `tf.Variable`s, `tf.nn` and compiled functions, on 2.15 and later."""

from __future__ import annotations

from transect.domain.axes.train import TrainCell
from transect.training.frameworks import FRAMEWORKS, ModelPart, ModelPlan, PartFramework, runs_on
from transect.training.frameworks._tensorflow_losses import LOSSES
from transect.training.frameworks._tensorflow_part import TensorflowPart
from transect.training.frameworks._tensorflow_trainer import TensorflowTrainer


@FRAMEWORKS.register("tensorflow", "tf")
class TensorflowFramework(PartFramework):
    """TensorFlow on a CPU or one GPU per rank."""

    environment = "tensorflow"
    optimisers = ("sgd", "nesterov", "adam", "adamw", "rmsprop", "adagrad", "lamb")
    losses = LOSSES
    follows = ("decay", "label_smoothing", "clip_norm", "accumulation", "ema")

    def supports(self, cell: TrainCell) -> str | None:
        return runs_on(cell, "tensorflow", ("cpu", "cuda"), ("fp32", "fp64", "amp-bf16"))

    def trainer(self, plan: ModelPlan) -> TensorflowTrainer:
        """Make the variables and the functions, which are traced when they are first called."""
        return TensorflowTrainer(plan)

    def part_trainer(self, plan: ModelPlan, part: ModelPart) -> TensorflowPart:
        return TensorflowPart(plan, part)

    def libraries(self) -> dict[str, str]:
        import tensorflow as tf

        cuda = tf.sysconfig.get_build_info().get("cuda_version")
        return {"tensorflow": tf.__version__} | ({"cuda": str(cuda)} if cuda else {})
