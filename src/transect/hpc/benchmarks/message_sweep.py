"""The sweep over message sizes, as benchmarks: with mpi4py, and with torch.distributed."""

from __future__ import annotations

from typing import ClassVar

from transect.domain.axes.bench import BenchCell
from transect.domain.mpi_libraries import MPI, MPI_LIBRARIES, OWN, chosen_mpi, contradiction, inside_container
from transect.hpc.base import Run
from transect.hpc.benchmarks._options import OptionError, complaint, one_of, whole
from transect.hpc.benchmarks._probes import Probe
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.hpc.parsers.message_sweep import COMPARED
from transect.hpc.probes import messages

_TEST, _MAX_SIZE, _SECONDS = "allreduce", messages.SIZES[-1], 10
_PAIRS = ("latency", "bw")
_OPTIONS = {
    "test": f"one of {', '.join(messages.NAMES)}; default {_TEST}",
    "max_size": f"largest message in bytes; default {_MAX_SIZE}",
    "compared_size": "bytes of the message by which libraries are compared, a power of 4; default "
    f"{messages.COMPARED}, or `max_size` where that is less",
    "seconds": f"budget over all sizes, in whole seconds; default {_SECONDS}",
}


class _Sweep(Probe):
    parser = "message-sweep"
    devices = ("cpu", "cuda")
    prefix_starts_ranks = True
    many_ranks = True
    least_ranks = 2
    threads = False
    turns_by = "operation_time"
    smoke: ClassVar[dict[str, int | float | str]] = {"max_size": 65536, "seconds": 1}
    libraries: ClassVar[tuple[str, ...]] = ()

    def flags(self, cell: BenchCell) -> list[str]:
        flags = ["--library", one_of(cell, "library", self.libraries[0], self.libraries)]
        flags += ["--test", one_of(cell, "test", _TEST, messages.NAMES)]
        largest = whole(cell, "max_size", _MAX_SIZE, messages.SIZES[0])
        if largest > _MAX_SIZE:
            raise OptionError(f"option max_size: expected at most {_MAX_SIZE}, found {largest}")
        compared = whole(cell, "compared_size", min(messages.COMPARED, max(s for s in messages.SIZES if s <= largest)))
        if compared not in messages.SIZES or compared > largest:
            raise OptionError(f"option compared_size: expected a power of 4 of at most {largest}, found {compared}")
        flags += ["--ranks", str(cell.ranks), "--max-size", str(largest), "--compared-size", str(compared)]
        return [*flags, "--seconds", str(whole(cell, "seconds", _SECONDS))]

    def iterations(self, run: Run) -> list[float]:
        """Return seconds of an operation, of each iteration at the compared size; none where that was left out."""
        return [value * 1e-6 for value in run.samples[COMPARED].values] if COMPARED in run.samples else []

    def supports(self, cell: BenchCell) -> str | None:
        """Return why not: also a device that the library does not send from, more ranks than two of a pair."""
        if (reason := super().supports(cell)) is not None:
            return reason
        library, test = str(cell.option("library", self.libraries[0])), cell.option("test", _TEST)
        device = "cuda" if library == "nccl" else "cpu"
        if cell.device != device:
            return f"{library} sends from the memory of '{device}' here, not of '{cell.device}'"
        if test in _PAIRS and cell.ranks != 2:
            return f"{test} is between two ranks; {cell.ranks} were asked for"
        return None


@BENCHMARKS.register("message-sweep")
class MessageSweep(_Sweep):
    """Runs `transect.hpc.probes.messages` with mpi4py on all ranks of the cell."""

    name = "message-sweep"
    environment = "base"
    # mpi4py as the program ends every rank when one raises; else the others wait for ever.
    python = ("-m", "mpi4py", "-m", "transect.hpc.probes.messages")
    libraries = ("mpi4py",)
    options: ClassVar[dict[str, str]] = {
        "library": "mpi4py",
        "mpi": f"one of {', '.join(map(str, MPI.choices))}: {MPI.description}; default {MPI.default}",
        **_OPTIONS,
    }

    def mpi(self, cell: BenchCell) -> str:
        """Return the option."""
        return chosen_mpi(cell.options)

    def supports(self, cell: BenchCell) -> str | None:
        """Return why not: also another MPI library in a container."""
        reason = complaint(lambda cell: one_of(cell, "mpi", OWN, (OWN, *MPI_LIBRARIES)), cell)
        return reason or super().supports(cell) or inside_container(self.mpi(cell), cell.container)

    def contradicts(self, cell: BenchCell, run: Run) -> str | None:
        """Return also which library ran where the cell has another one."""
        # The log names mpi4py first.
        name = str(run.parameters.get("library", "")).partition(", ")[2]
        return super().contradicts(cell, run) or contradiction(self.mpi(cell), name)


@BENCHMARKS.register("message-sweep-torch")
class MessageSweepTorch(_Sweep):
    """Runs `transect.hpc.probes.messages` with torch.distributed on all ranks of the cell."""

    name = "message-sweep-torch"
    environment = "torch"
    python = ("-m", "transect.hpc.probes.messages")
    rendezvous = "tcp"
    libraries = ("gloo", "nccl")
    options: ClassVar[dict[str, str]] = {"library": "gloo, or nccl with one GPU per rank; default gloo", **_OPTIONS}
