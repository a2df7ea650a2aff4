"""Horovod 0.28, over Gloo or MPI between CPUs; tensors on GPUs go over NCCL where it was built in."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.domain.mpi_libraries import MPI, chosen_mpi, library_name, linked
from transect.domain.options import Option
from transect.training.frameworks import Trainer
from transect.training.strategies import STRATEGIES, Operation, Parts, Place, Strategy


class Adapter(Protocol):
    """What Horovod is to one framework, one class each; made when all ranks have equal weights."""

    def __init__(self, hvd: Any, trainer: Any, operation: Operation) -> None: ...

    @staticmethod
    def of_rank_0(hvd: Any, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return rank 0's weights on all ranks."""
        found: dict[str, np.ndarray] = hvd.broadcast_object(weights, root_rank=0)
        return found

    def step(self, x: object, y: object, learning_rate: float) -> Parts:
        """Do one step with gradients that are the ranks' mean or sum."""

    def barrier(self) -> None:
        """Wait for all ranks."""


# Framework to Horovod's module, and to where its adapter is.
_MODULES = {
    "torch": ("horovod.torch", "_horovod_torch.TorchAdapter"),
    "tensorflow": ("horovod.tensorflow", "_horovod_tensorflow.TensorflowAdapter"),
    "keras-2": ("horovod.tensorflow", "_horovod_tensorflow.KerasAdapter"),
    "mxnet": ("horovod.mxnet", "_horovod_mxnet.MxnetAdapter"),
}


class _Horovod(Strategy):
    """Every gradient is a message of its own, which Horovod may fuse with others.

    Running statistics of a batch norm stay those of the rank. `under_way` is not known: Horovod
    tells when a message is there, not when it was sent.
    """

    controller = ""
    accumulates_in = ("torch",)
    environments: Mapping[str, str] = MappingProxyType(
        {
            "torch": "horovod-torch",
            "tensorflow": "horovod-tensorflow",
            "keras-2": "horovod-tensorflow",
            "mxnet": "horovod-mxnet",
        }
    )

    def __init__(self) -> None:
        self._hvd: Any = None
        self._adapter: Adapter | None = None

    def supports(self, cell: TrainCell) -> str | None:
        """The frameworks that Horovod is built for here; on GPUs only torch."""
        if cell.framework not in _MODULES:
            return f"Horovod works with {', '.join(_MODULES)}, not with {cell.framework}"
        if cell.device != "cpu" and cell.framework != "torch":
            return f"Horovod's environment for {cell.framework} is for CPUs: only torch uses GPUs"
        return None

    def code_files(self) -> list[Path]:
        """Return the adapters: they are loaded by name, which no import statement shows."""
        files = {adapter.split(".")[0] for _, adapter in _MODULES.values()}
        return [Path(__file__).with_name(f"{file}.py") for file in sorted(files)]

    def join(self) -> Place:
        self._hvd = hvd = import_module(_MODULES[self.framework][0])
        hvd.init()
        return Place(hvd.rank(), hvd.size(), hvd.local_rank())

    def start(self, trainer: Trainer) -> None:
        file, name = _MODULES[self.framework][1].split(".")
        kind = getattr(import_module(f"{__package__}.{file}"), name)
        trainer.load(kind.of_rank_0(self._hvd, trainer.weights()))
        self._adapter = kind(self._hvd, trainer, self.operation)

    def step(self, trainer: Trainer, x: object, y: object, learning_rate: float) -> Parts:
        assert self._adapter is not None
        return self._adapter.step(x, y, learning_rate)

    def barrier(self) -> None:
        assert self._adapter is not None
        self._adapter.barrier()

    def leave(self) -> None:
        self._hvd.shutdown()

    def libraries(self) -> dict[str, str]:
        """Return Horovod with its controller, and the MPI library where that is the controller."""
        import horovod

        found = {"horovod": horovod.__version__, "horovod controller": self.controller}
        if self.controller == "mpi":
            import mpi4py

            # MPI runs already and is Horovod's to end.
            mpi4py.rc(initialize=False, finalize=False)
            from mpi4py import MPI

            found["mpi"] = library_name(MPI.Get_library_version())
        return found


@STRATEGIES.register("horovod-gloo", "horovod")
class HorovodGloo(_Horovod):
    """Ranks meet at a key-value store and talk over Gloo."""

    rendezvous = "horovod"
    controller = "gloo"


@STRATEGIES.register("horovod-mpi", "horovod")
class HorovodMpi(_Horovod):
    """Ranks of one MPI program."""

    rendezvous = "horovod-mpi"
    controller = "mpi"
    options: Mapping[str, Option] = MappingProxyType({"mpi": MPI})

    def supports(self, cell: TrainCell) -> str | None:
        """Also no other MPI library than Horovod was compiled with."""
        return super().supports(cell) or linked("Horovod", chosen_mpi(cell.options))
