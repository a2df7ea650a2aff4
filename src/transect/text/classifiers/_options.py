"""Options of classifiers as a study gives them: strictly checked."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from transect.domain.errors import BadInput, unknown_name
from transect.training.optimisers import OPTIMISERS


class Options(BaseModel):
    """No option, unless a classifier's own class has some."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class TrainingOptions(Options):
    """Of what is trained step by step. The first ones are knobs too: a grid's value stands in their place."""

    epochs: int | None = Field(default=20, ge=1)
    updates: int | None = Field(default=None, ge=1)
    batch: int = Field(default=32, ge=1)
    learning_rate: float = Field(default=1e-3, gt=0)
    optimiser: str = "adamw"
    momentum: float = Field(default=0.9, ge=0, lt=1)
    weight_decay: float = Field(default=0.0, ge=0)
    # The largest norm of all gradients together.
    clip: float | None = Field(default=None, gt=0)
    # Epochs without a smaller loss on `valid` after which training ends, with the best epoch's weights.
    patience: int | None = Field(default=None, ge=1)

    @field_validator("optimiser")
    @classmethod
    def _is_known(cls, name: str) -> str:
        if name not in OPTIMISERS:
            raise unknown_name("optimiser", name, OPTIMISERS)
        return name


O = TypeVar("O", bound=Options)  # noqa: E741


def read_options(kind: type[O], options: dict[str, Any], where: str = "options") -> O:
    """Check options. Raises BadInput naming the key, what was given and what was expected."""
    try:
        return kind.model_validate(options)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join([where, *map(str, first["loc"])])
        known = f"; known: {', '.join(kind.model_fields)}" if first["type"] == "extra_forbidden" else ""
        raise BadInput(f"{key}: {first['input']!r:.80}: {first['msg']}{known}") from None


def options_of(kind: type[O], options: dict[str, Any], knobs: dict[str, Any], where: str = "options") -> O:
    """Return the options with a cell's knobs in the place of their own values: epochs, or updates."""
    for one, other in (("updates", "epochs"), ("epochs", "updates")):
        if one in knobs:
            knobs = {other: None} | knobs
    return read_options(kind, options | knobs, where)


class NoKnobs:
    """A classifier that is fitted in one go."""

    knobs: tuple[str, ...] = ()
    options: type[Options] = Options

    def check(self, options: dict[str, Any], where: str) -> None:
        """Raise BadInput, beginning with `where`, for options that it does not have."""
        read_options(self.options, options, where)

    def check_knobs(self, options: dict[str, Any], knobs: dict[str, Any], width: int, where: str) -> None:
        """Any vectors will do."""

    def usual(self, options: dict[str, Any]) -> dict[str, Any]:
        """No knobs."""
        return {}

    def resolved(self, options: dict[str, Any], knobs: dict[str, Any]) -> dict[str, Any]:
        """Return its options with those that are not given."""
        return read_options(self.options, options).model_dump()

    def needs_valid(self, options: dict[str, Any]) -> bool:
        """Nothing ends early."""
        return False

    def supports(self, cell: Any) -> str | None:
        """On a CPU."""
        if cell.device != "cpu":
            return f"this classifier is fitted on a cpu, not on {cell.device}"
        return None


class WithTraining:
    """A classifier that is trained step by step."""

    knobs: tuple[str, ...] = ("epochs", "updates", "batch", "learning_rate", "optimiser")
    options: type[TrainingOptions] = TrainingOptions

    def check(self, options: dict[str, Any], where: str) -> None:
        """Raise BadInput, beginning with `where`, for options that cannot be used."""
        read = read_options(self.options, options, where)
        if read.epochs is None and read.updates is None:
            raise BadInput(f"{where}.epochs: null, and no updates are given")

    def check_knobs(self, options: dict[str, Any], knobs: dict[str, Any], width: int, where: str) -> None:
        """Raise BadInput for a knob's value that it cannot use."""
        options_of(self.options, options, knobs, where)

    def usual(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return its options' values."""
        read = read_options(self.options, options)
        return {name: getattr(read, name) for name in self.knobs} | (
            {"epochs": None} if read.updates is not None else {}
        )

    def resolved(self, options: dict[str, Any], knobs: dict[str, Any]) -> dict[str, Any]:
        """Return its options with those that are not given, and with a cell's knobs."""
        return options_of(self.options, options, knobs).model_dump()

    def needs_valid(self, options: dict[str, Any]) -> bool:
        """With patience."""
        return read_options(self.options, options).patience is not None

    def supports(self, cell: Any) -> str | None:
        """On a CPU or a GPU."""
        if cell.device not in ("cpu", "cuda"):
            return f"torch runs on cpu or cuda, not on {cell.device}"
        return None
