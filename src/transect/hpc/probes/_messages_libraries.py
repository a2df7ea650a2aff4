"""The libraries that move messages, behind one set of calls: mpi4py and torch.distributed.

Buffers are flat arrays of one library's own kind. A reduction of torch works in place, one of MPI
from a buffer into another: `ready` puts before either what it needs.
"""

from __future__ import annotations

import datetime
import importlib
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from transect.domain.mpi_libraries import library_name

LIBRARIES = ("mpi4py", "gloo", "nccl")
_PATIENCE = datetime.timedelta(seconds=120)


class Mpi:
    """mpi4py with buffers of numpy. Rank 0 is the root of everything."""

    def __init__(self) -> None:
        mpi4py: Any = importlib.import_module("mpi4py")
        self._mpi: Any = importlib.import_module("mpi4py.MPI")
        self._comm = self._mpi.COMM_WORLD
        self.rank, self.size = int(self._comm.rank), int(self._comm.size)
        self.name = f"mpi4py {mpi4py.__version__}, {library_name(self._mpi.Get_library_version())}"

    def put(self, values: np.ndarray) -> np.ndarray:
        return values.copy()

    def get(self, buffer: np.ndarray) -> np.ndarray:
        return buffer

    def ready(self, sent: np.ndarray, got: np.ndarray) -> None:
        """Wipe `got`: the result comes from `sent`."""
        got.fill(0)

    def settle(self) -> None:
        """Nothing runs on behind MPI's back."""

    def barrier(self) -> None:
        self._comm.Barrier()

    def allreduce(self, sent: np.ndarray, got: np.ndarray) -> None:
        self._comm.Allreduce(sent, got, op=self._mpi.SUM)

    def iallreduce(self, sent: np.ndarray, got: np.ndarray) -> Any:
        return self._comm.Iallreduce(sent, got, op=self._mpi.SUM)

    def reduce(self, sent: np.ndarray, got: np.ndarray) -> None:
        self._comm.Reduce(sent, got if self.rank == 0 else None, op=self._mpi.SUM, root=0)

    def bcast(self, buffer: np.ndarray) -> None:
        self._comm.Bcast(buffer, root=0)

    def allgather(self, sent: np.ndarray, got: np.ndarray) -> None:
        self._comm.Allgather(sent, got)

    def isend(self, buffer: np.ndarray, rank: int) -> Any:
        return self._comm.Isend(buffer, dest=rank)

    def irecv(self, buffer: np.ndarray, rank: int) -> Any:
        return self._comm.Irecv(buffer, source=rank)

    def wait(self, requests: Sequence[Any]) -> None:
        self._mpi.Request.Waitall(list(requests))

    def exchange(self, values: Sequence[float]) -> np.ndarray:
        return np.array(self._comm.allgather(list(values)))

    def close(self) -> None:
        """mpi4py finalises MPI itself."""


class Torch:
    """torch.distributed with gloo and CPU tensors, or with nccl and one GPU for each rank."""

    def __init__(self, backend: str) -> None:
        """Join by MASTER_ADDR and the variables of torchrun. Raises OSError without a GPU."""
        torch: Any = importlib.import_module("torch")
        self._dist: Any = importlib.import_module("torch.distributed")
        self._torch, self._device = torch, "cpu"
        torch.set_num_threads(1)
        version = f"torch {torch.__version__} gloo"
        if backend == "nccl":
            if not torch.cuda.is_available():
                raise OSError("nccl needs a GPU for every rank, torch sees none")
            here = int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count()
            torch.cuda.set_device(here)
            self._device = f"cuda:{here}"
            version = f"torch {torch.__version__} nccl {'.'.join(map(str, torch.cuda.nccl.version()))}"
        self._dist.init_process_group(backend, timeout=_PATIENCE)
        # Older releases know only the name that newer ones deprecate.
        single = getattr(self._dist, "all_gather_single", None)
        self._gather = single or self._dist.all_gather_into_tensor
        # Facts travel beside the messages, on the CPU.
        self._beside = None if backend == "gloo" else self._dist.new_group(backend="gloo")
        self.rank, self.size = self._dist.get_rank(), self._dist.get_world_size()
        self.name = version

    def put(self, values: np.ndarray) -> Any:
        return self._torch.from_numpy(values.copy()).to(self._device)

    def get(self, buffer: Any) -> np.ndarray:
        return np.asarray(buffer.cpu().numpy())

    def ready(self, sent: Any, got: Any) -> None:
        """Copy `sent` into `got`: the reduction is in place."""
        got.copy_(sent)
        self.settle()

    def settle(self) -> None:
        if self._device != "cpu":
            self._torch.cuda.synchronize()

    def barrier(self) -> None:
        """Wait for all ranks, beside the messages."""
        self._dist.barrier(group=self._beside)

    def allreduce(self, sent: Any, got: Any) -> None:
        self._dist.all_reduce(got)

    def iallreduce(self, sent: Any, got: Any) -> Any:
        return self._dist.all_reduce(got, async_op=True)

    def reduce(self, sent: Any, got: Any) -> None:
        self._dist.reduce(got, dst=0)

    def bcast(self, buffer: Any) -> None:
        self._dist.broadcast(buffer, src=0)

    def allgather(self, sent: Any, got: Any) -> None:
        """all_gather_single, or all_gather_into_tensor."""
        self._gather(got, sent)

    def isend(self, buffer: Any, rank: int) -> Any:
        return self._dist.isend(buffer, dst=rank)

    def irecv(self, buffer: Any, rank: int) -> Any:
        return self._dist.irecv(buffer, src=rank)

    def wait(self, requests: Sequence[Any]) -> None:
        """Wait for each; with nccl that is the stream's wait, so for the GPU too."""
        for request in requests:
            request.wait()
        self.settle()

    def exchange(self, values: Sequence[float]) -> np.ndarray:
        """Gather the values of all ranks through gloo."""
        mine = self._torch.tensor(list(values), dtype=self._torch.float64)
        every = [self._torch.empty_like(mine) for _ in range(self.size)]
        self._dist.all_gather(every, mine, group=self._beside)
        return np.array([tensor.numpy() for tensor in every])

    def close(self) -> None:
        self._dist.destroy_process_group()


Library = Mpi | Torch


def open_library(name: str) -> Library:
    """Start the library of that name on this rank. Raises ImportError, OSError."""
    return Mpi() if name == "mpi4py" else Torch(name)
