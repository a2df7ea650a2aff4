"""Grids of the probe of conjugate gradients: a box of points on each rank, and a coarser one below it."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.hpc.probes._cg_kernels import Kernels, Matrix

LEVELS = 4
# Towards each neighbour along z, y, x; that of the opposite way has the index 26 - i.
_WAYS = [(z, y, x) for z in (-1, 0, 1) for y in (-1, 0, 1) for x in (-1, 0, 1)]
# Points of a box of n, in a grid with one more on each side: of the side before, inside, and of that behind.
_BEYOND = {-1: slice(0, 1), 0: slice(1, -1), 1: slice(-1, None)}
_WITHIN = {-1: slice(1, 2), 0: slice(1, -1), 1: slice(-2, -1)}


class Level:
    """One grid: its matrix, its vectors, and who sends what to whom."""

    def __init__(self, kernels: Kernels, comm: Any, dims: tuple[int, int, int], shape: tuple[int, int, int], left: int):
        """`dims` and `shape`: ranks, and points of a rank, along z, y, x; `left`: coarser grids below."""
        self.kernels, self.comm, self.shape = kernels, comm, shape
        rows = int(np.prod(shape))
        columns = np.full([size + 2 for size in shape], -1, np.int32)
        own = np.arange(rows, dtype=np.int32).reshape(shape)
        columns[1:-1, 1:-1, 1:-1] = own
        at = np.array(np.unravel_index(comm.rank, dims))
        # Partner, the message's tag, and the part of the buffer and of the vector.
        self._sends: list[tuple[int, int, slice]] = []
        self._receives: list[tuple[int, int, slice]] = []
        chosen, sent, self.length = [], 0, rows
        for index, way in enumerate(_WAYS):
            place = at + way
            if way == (0, 0, 0) or (place < 0).any() or (place >= dims).any():
                continue
            partner = int(np.ravel_multi_index(tuple(place), dims))
            beyond = columns[tuple(_BEYOND[step] for step in way)]
            beyond[...] = np.arange(self.length, self.length + beyond.size, dtype=np.int32).reshape(beyond.shape)
            self._receives.append((partner, 26 - index, slice(self.length, self.length + beyond.size)))
            chosen.append(columns[tuple(_WITHIN[step] for step in way)].ravel())
            self._sends.append((partner, index, slice(sent, sent + beyond.size)))
            self.length, sent = self.length + beyond.size, sent + beyond.size
        self._chosen = np.concatenate(chosen) if chosen else np.empty(0, np.int32)
        self._buffer = np.empty(sent)
        self.matrix = Matrix(kernels, columns)
        self.coarser = None
        if left:
            half = (shape[0] // 2, shape[1] // 2, shape[2] // 2)
            self.coarser = Level(kernels, comm, dims, half, left - 1)
            self._points = np.ascontiguousarray(own[::2, ::2, ::2]).ravel()
            self._ax = np.zeros(rows)
            self._r, self._x = np.zeros(self.coarser.matrix.rows), self.coarser.vector()

    def vector(self) -> np.ndarray:
        """Return a vector of zeros, with room for what other ranks send."""
        return np.zeros(self.length)

    def exchange(self, x: np.ndarray) -> None:
        """Bring the neighbours' values behind the vector's own."""
        if not self._sends:
            return
        waiting = [self.comm.Irecv(x[part], source=rank, tag=tag) for rank, tag, part in self._receives]
        np.take(x, self._chosen, out=self._buffer)
        waiting += [self.comm.Isend(self._buffer[part], dest=rank, tag=tag) for rank, tag, part in self._sends]
        type(waiting[0]).Waitall(waiting)

    def multiply(self, x: np.ndarray, out: np.ndarray) -> None:
        """out = A x over all ranks."""
        self.exchange(x)
        self.matrix.multiply(x, out)

    def smooth(self, r: np.ndarray, x: np.ndarray) -> None:
        """Sweep once each way; other ranks' values are those of before."""
        self.exchange(x)
        self.matrix.sweep(r, x)

    def precondition(self, r: np.ndarray, x: np.ndarray) -> None:
        """x = M r: a V-cycle from zero, one sweep each way before and after the coarser grid, one on the coarsest."""
        x.fill(0)
        self.smooth(r, x)
        if self.coarser is None:
            return
        self.multiply(x, self._ax)
        self.kernels.restrict(self._points, r, self._ax, self._r)
        self.coarser.precondition(self._r, self._x)
        self.kernels.prolong(self._points, self._x, x)
        self.smooth(r, x)

    def dot(self, x: np.ndarray, y: np.ndarray) -> float:
        """Return x'y over all ranks."""
        return float(self.comm.allreduce(self.kernels.dot(x, y, self.matrix.rows)))

    def below(self) -> list[Level]:
        """Return this level and all coarser ones."""
        return [self, *(self.coarser.below() if self.coarser else [])]
