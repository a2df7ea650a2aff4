"""Trainers written from scratch in Go: pure Go on gonum, or with OpenBLAS through cgo."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from transect.domain.options import Value
from transect.stages.train.cell import TrainCell
from transect.training.frameworks import FRAMEWORKS, Framework, ModelPlan, RankFiles, Trainer

__all__ = ["GoFramework", "GoOpenblas"]

_PRECISIONS = ("fp32", "fp64")
# What the program without MPI knows, and what only the one with MPI does.
_ALONE = frozenset({"single"})
_BY_MPI: frozenset[str] = frozenset()


@FRAMEWORKS.register("go")
class GoFramework(Framework):
    """Own layers on gonum's matrix products, without a line of C; see docs/go.md."""

    environment = "trainer-go"
    optimisers = ("sgd", "nesterov", "adamw")
    program = "transect-trainer-go"
    program_strategies = _ALONE | _BY_MPI
    # Of a strategy's knobs, the values that the program implements besides the default.
    program_options: Mapping[str, Mapping[str, tuple[Value, ...]]] = MappingProxyType({})

    def supports(self, cell: TrainCell) -> str | None:
        """CPU only, in float32 and float64; `program_strategies` says by which strategies."""
        if cell.device != "cpu":
            return f"the trainers in Go compute on the CPU, not on {cell.device}"
        if cell.precision not in _PRECISIONS:
            return (
                f"the trainers in Go train in {' or '.join(_PRECISIONS)}, not in {cell.precision}"
            )
        if cell.input == "files":
            return (
                "Go's JPEG decoder interpolates colours and rounds otherwise than Pillow: its pixels "
                "are not those of the data stage"
            )
        return None

    def trainer(self, plan: ModelPlan) -> Trainer:
        """There is none in Python. Raises TypeError."""
        raise TypeError(f"{self.program} is a program of its own, see `command`")

    def command(self, files: RankFiles) -> list[str]:
        """Start the program, the one with MPI where the strategy needs it."""
        folder = files.programs or Path()
        by_mpi = "-mpi" if files.cell is not None and files.cell.strategy in _BY_MPI else ""
        return [str(folder / f"{self.program}{by_mpi}"), str(files.plan)]

    def libraries(self) -> dict[str, str]:
        """Nothing: the program tells its own."""
        return {}


@FRAMEWORKS.register("go-openblas")
class GoOpenblas(GoFramework):
    """The same with OpenBLAS for matrix products, the release that numpy has."""

    program = "transect-trainer-go-openblas"
