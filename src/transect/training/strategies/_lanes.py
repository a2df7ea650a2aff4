"""What passes between neighbouring stages: arrays of known shapes, received ahead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from transect.training.layers import Shape
from transect.training.strategies._progress import Flight, Progress


class Lane:
    """Arrays from one neighbour, one for each micro-batch in their order.

    `slots` buffers are used again and again: the receive of micro-batch i + slots is posted when i is
    released. Shapes follow from the model on both sides; a message of another size is a fault.
    """

    def __init__(
        self, progress: Progress, comm: Any, source: int, tag: int, slots: int, shape: Shape, dtype: np.dtype
    ) -> None:
        self._progress, self._comm, self._source, self._tag = progress, comm, source, tag
        self._slots, self._shape, self._dtype = slots, shape, dtype
        self._buffers: list[np.ndarray] = []
        self._sizes: Sequence[int] = ()
        self._coming: dict[int, tuple[Flight, np.ndarray]] = {}
        self.waited = 0.0

    def open(self, sizes: Sequence[int]) -> None:
        """Begin a step with micro-batches of so many samples: post the first receives."""
        self._sizes, self.waited = sizes, 0.0
        slots = min(self._slots, len(sizes))
        if len(self._buffers) < slots or len(self._buffers[0]) < max(sizes):
            full = (max(sizes), *self._shape)
            self._buffers = [np.empty(full, self._dtype) for _ in range(slots)]
        for i in range(slots):
            self._post(i)

    def _post(self, i: int) -> None:
        buffer = self._buffers[i % self._slots][: self._sizes[i]]
        flight = self._progress.expect(self._comm.Irecv, buffer, source=self._source, tag=2 * i + self._tag)
        self._coming[i] = flight, buffer

    def take(self, i: int) -> np.ndarray:
        """Wait for micro-batch i. Raises RuntimeError where its message has another size."""
        from mpi4py import MPI

        flight, buffer = self._coming.pop(i)
        try:
            self.waited += self._progress.wait(flight)
        except MPI.Exception as error:
            raise RuntimeError(f"{self._expected(i, buffer)}: {error}") from error
        got = flight.status.Get_count(MPI.BYTE)
        if got != buffer.nbytes:
            raise RuntimeError(f"{self._expected(i, buffer)}, got {got} bytes")
        return buffer

    def _expected(self, i: int, buffer: np.ndarray) -> str:
        what = "outputs" if self._tag == 0 else "gradients"
        return f"expected {what} {buffer.shape} of micro-batch {i} from stage {self._source}, {buffer.nbytes} bytes"

    def release(self, i: int) -> None:
        if i + self._slots < len(self._sizes):
            self._post(i + self._slots)


class Outbox:
    """Arrays to one neighbour; each is kept until its message is known to be over."""

    def __init__(self, progress: Progress, comm: Any, target: int, tag: int) -> None:
        self._progress, self._comm, self._target, self._tag = progress, comm, target, tag
        self._under_way: dict[int, tuple[Flight, np.ndarray]] = {}

    def send(self, i: int, array: np.ndarray) -> None:
        """Begin to send that of micro-batch i, which nobody may change any more."""
        flight = self._progress.add(self._comm.Isend, array, dest=self._target, tag=2 * i + self._tag)
        self._under_way[i] = flight, array

    def sent(self, i: int) -> None:
        """Wait until the array of micro-batch i has left; it is forgotten here."""
        self._progress.wait(self._under_way.pop(i)[0])

    def clear(self) -> None:
        self._under_way.clear()
