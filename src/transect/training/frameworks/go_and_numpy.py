"""Two languages in one training: even ranks in Go, odd ranks in numpy, in one MPI."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from transect.domain.axes.train import TrainCell
from transect.domain.options import Value
from transect.training.frameworks import FRAMEWORKS, ProgramFramework, RankFiles, only_layers
from transect.training.frameworks.go_ import GoFramework
from transect.training.frameworks.numpy_ import NumpyFramework
from transect.training.models import Model


@FRAMEWORKS.register("go+numpy")
class GoAndNumpy(NumpyFramework, ProgramFramework):
    """The trainer in Go and the one in numpy make the same calls of MPI in the same order."""

    environment = "trainer-go-numpy"
    takes_turns = True
    optimisers, losses, follows = GoFramework.optimisers, GoFramework().losses, GoFramework.follows
    # Strategies whose messages are the whole gradient; which layers share a message is each language's own.
    program_strategies = frozenset(
        {"async", "mpi-allreduce", "mpi-sendrecv", "published-allreduce", "published-sendrecv"}
    )
    program_options: Mapping[str, Mapping[str, tuple[Value, ...] | None]] = MappingProxyType(
        {"async": {"staleness": None, "workers": None}}
    )

    def supports(self, cell: TrainCell) -> str | None:
        if cell.ranks < 2:
            return "one rank has one language: expected at least 2 ranks"
        return GoFramework().supports(cell) or super().supports(cell)

    def builds(self, model: Model) -> str | None:
        return only_layers(model)

    def code_files(self) -> list[Path]:
        """What each rank begins as."""
        return [Path(__file__).parents[2] / "launch" / "mixed.py"]

    def command(self, files: RankFiles) -> list[str]:
        program = (files.programs or Path()) / "transect-trainer-go-mpi"
        python = files.worker[0]
        go = [str(program), str(files.plan)]
        return [python, "-m", "transect.launch.mixed", *go, "--", *files.worker]
