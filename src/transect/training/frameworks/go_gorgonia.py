"""Gorgonia, the deep-learning library in Go: its graph, its automatic differentiation and its tape machine."""

from __future__ import annotations

from pathlib import Path

from transect.stages.train.cell import TrainCell
from transect.training.frameworks import FRAMEWORKS, Framework, ModelPlan, RankFiles, Trainer

__all__ = ["GoGorgonia"]

_PROGRAM = "transect-trainer-go-gorgonia"
_PRECISIONS = ("fp32", "fp64")


@FRAMEWORKS.register("go-gorgonia")
class GoGorgonia(Framework):
    """Gorgonia 0.9.18 of 2023 in pure Go, or with its CUDA build; see docs/go.md for what is wrong in it."""

    environment = "trainer-go-gorgonia"
    optimisers = ("sgd", "nesterov", "adamw")
    program_strategies = frozenset({"single"})

    def supports(self, cell: TrainCell) -> str | None:
        """One rank in float32 and float64; on a GPU by the program of `envs/trainer-go-gorgonia-cuda`."""
        if cell.precision not in _PRECISIONS:
            return f"Gorgonia's nets train in {' or '.join(_PRECISIONS)}, not in {cell.precision}"
        if cell.input == "files":
            return (
                "Go's JPEG decoder interpolates colours and rounds otherwise than Pillow: its pixels "
                "are not those of the data stage"
            )
        return None

    def trainer(self, plan: ModelPlan) -> Trainer:
        """There is none in Python. Raises TypeError."""
        raise TypeError(f"{_PROGRAM} is a program of its own, see `command`")

    def command(self, files: RankFiles) -> list[str]:
        """Start the program."""
        return [str((files.programs or Path()) / _PROGRAM), str(files.plan)]

    def libraries(self) -> dict[str, str]:
        """Nothing: the program tells its own."""
        return {}
