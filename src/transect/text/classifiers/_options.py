"""Options of classifiers as a study gives them: strictly checked."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import Field

from transect.domain.errors import BadInput
from transect.text.classifiers import Classifier
from transect.text.options import Options, checked
from transect.training.optimisers import OptimiserName


class TrainingOptions(Options):
    """Options of step-by-step training. The first ones are hyper-parameters too: a grid's value replaces them."""

    epochs: int | None = Field(default=20, ge=1)
    updates: int | None = Field(default=None, ge=1)
    batch: int = Field(default=32, ge=1)
    learning_rate: float = Field(default=1e-3, gt=0)
    optimiser: OptimiserName = "adamw"
    momentum: float = Field(default=0.9, ge=0, lt=1)
    weight_decay: float = Field(default=0.0, ge=0)
    # The largest norm of all gradients together.
    clip: float | None = Field(default=None, gt=0)
    # Epochs without a smaller loss on `validation` after which training ends, with the best epoch's weights.
    patience: int | None = Field(default=None, ge=1)


T = TypeVar("T", bound=TrainingOptions)


def options_of(kind: type[T], options: dict[str, Any], values: dict[str, Any], where: str = "options") -> T:
    """Return the options with a cell's hyper-parameters in the place of their own values: epochs, or updates."""
    for given, replaced in (("updates", "epochs"), ("epochs", "updates")):
        if given in values:
            values = {replaced: None} | values
    return checked(kind, options | values, where)


class WithTraining(Classifier):
    """A classifier that is trained step by step."""

    hyperparameters: tuple[str, ...] = ("epochs", "updates", "batch", "learning_rate", "optimiser")
    options: type[TrainingOptions] = TrainingOptions

    def check(self, options: dict[str, Any], where: str) -> None:
        """Raise BadInput, beginning with `where`, for options that cannot be used."""
        read = checked(self.options, options, where)
        if read.epochs is None and read.updates is None:
            raise BadInput(f"{where}.epochs: null, and no updates are given")

    def check_hyperparameters(self, options: dict[str, Any], values: dict[str, Any], width: int, where: str) -> None:
        """Raise BadInput for a hyper-parameter's value that it cannot use."""
        options_of(self.options, options, values, where)

    def usual(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return its options' values."""
        read = checked(self.options, options, "options")
        return {name: getattr(read, name) for name in self.hyperparameters} | (
            {"epochs": None} if read.updates is not None else {}
        )

    def resolved(self, options: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
        """Return its options with those that are not given, and with a cell's hyper-parameters."""
        return options_of(self.options, options, values).model_dump()

    def needs_valid(self, options: dict[str, Any]) -> bool:
        """With patience."""
        return checked(self.options, options, "options").patience is not None

    def supports(self, cell: Any) -> str | None:
        """On a CPU or a GPU."""
        if cell.device not in ("cpu", "cuda"):
            return f"torch runs on cpu or cuda, not on {cell.device}"
        return None
