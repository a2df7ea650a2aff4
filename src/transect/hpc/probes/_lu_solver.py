"""Solves A x = b by LU with partial pivoting over MPI ranks: blocks of columns are dealt out in turn.

Why columns only (a 1 x Q grid, what HPL's near-square grid is on two ranks too): a panel lies on one rank, so it is
factored by one call of LAPACK and no pivot is searched over the network, for which Python would need a message a column.
What that costs on Q ranks: all of them receive all of L (n^2 / 2 numbers each, where a P x Q grid sends n^2 (1/P + 1/Q) / 2),
and the n^2 NB / 2 operations of the panels are done by one rank at a time. Look-ahead hides both behind the
update as long as a rank's update of a step, 2 m^2 NB / Q operations with m rows left, takes longer than the next panel,
m NB^2 operations at a panel's share r of the peak: down to m* = Q NB / (2 r). What then remains is (m* / n)^3 / 2 of the
whole: at 30 ranks with NB = 256 and r = 0.6 it is 13 % of n = 10,000 and 0.5 % of n = 30,000; nothing to speak of at two.

b is one more column, so that the elimination solves L y = b on the way, as HPL does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from transect.hpc.probes._lu_blas import Blas

SEED = 20260101
# Columns that are updated between two looks at the messages under way.
_STRIP = 1024


class Solver:
    """One problem on the ranks of `comm`: order n, blocks of `nb` columns."""

    def __init__(self, comm: Any, blas: Blas, n: int, nb: int) -> None:
        self.comm, self.blas, self.n, self.nb = comm, blas, n, nb
        self.blocks = -(-n // nb)
        self.mine = range(comm.rank, self.blocks, comm.size)
        # Local columns at which each own block begins, and where the last one ends.
        self.edges = [0, *np.cumsum([self.width(block) for block in self.mine]).tolist()]
        self.has_b = self.owner(self.blocks - 1) == comm.rank
        self.a = np.zeros((n, self.edges[-1] + self.has_b), order="F")
        # Two panels, each with its pivots behind it: one is used while the next one arrives.
        self._buffers = [np.empty((n + 1) * nb) for _ in range(2)]

    def owner(self, block: int) -> int:
        """Return the rank that has a block."""
        return int(block % self.comm.size)

    def width(self, block: int) -> int:
        """Return the columns of a block."""
        return min(self.nb, self.n - block * self.nb)

    def columns(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the global columns of each own block and what A holds there, in -0.5 to 0.5 as in HPL, made anew."""
        for block in self.mine:
            drawn = np.random.default_rng([SEED, block]).random((self.width(block), self.n))
            yield slice(block * self.nb, block * self.nb + self.width(block)), drawn.T - 0.5

    def b(self) -> np.ndarray:
        """Return the right-hand side, (n,)."""
        return np.random.default_rng([SEED, self.blocks]).random(self.n) - 0.5

    def fill(self) -> None:
        """Put A and b into the matrix."""
        for (low, high), (_, values) in zip(zip(self.edges, self.edges[1:], strict=False), self.columns(), strict=True):
            self.a[:, low:high] = values
        if self.has_b:
            self.a[:, -1] = self.b()

    def solve(self) -> tuple[np.ndarray, float]:
        """Factor and solve; return x, (n,), on all ranks, and the seconds of the slowest rank."""
        self.comm.Barrier()
        start = time.perf_counter()
        self._factor()
        x = self._back()
        mine = np.array([time.perf_counter() - start])
        self.comm.Allreduce(mine.copy(), mine, op=_max())
        return x, float(mine[0])

    def _panel(self, block: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the place of a block's panel below the diagonal, (m, width), and of its pivots, in one buffer."""
        rows, width = self.n - block * self.nb, self.width(block)
        buffer = self._buffers[block % 2]
        return buffer[: rows * width].reshape((rows, width), order="F"), buffer[rows * width : (rows + 1) * width]

    def _send(self, block: int) -> Any:
        """Factor the panel where it is, and start to send it to all; return the request."""
        panel, pivots = self._panel(block)
        if self.owner(block) == self.comm.rank:
            low = self.edges[self.mine.index(block)]
            own = self.a[block * self.nb :, low : low + panel.shape[1]]
            panel[:] = own
            pivots[:] = self.factor_panel(panel)
            own[:] = panel
        whole = self._buffers[block % 2][: panel.size + pivots.size]
        return self.comm.Ibcast(whole, root=self.owner(block))

    def factor_panel(self, panel: np.ndarray) -> np.ndarray:
        """Factor a panel in place; return its pivots, counted from its first row."""
        return self.blas.factor(panel)

    def _factor(self) -> None:
        self._send(0).Wait()
        for block in range(self.blocks):
            panel, pivots = self._panel(block)
            # The first of the own columns behind this block.
            at = self.edges[-(-(block + 1 - self.comm.rank) // self.comm.size)] if block >= self.comm.rank else 0
            coming = None
            if block + 1 < self.blocks:
                if self.owner(block + 1) == self.comm.rank:
                    ahead = at + self.width(block + 1)
                    self._update(block, panel, pivots, slice(at, ahead))
                    at = ahead
                coming = self._send(block + 1)
            while at < self.a.shape[1]:
                self._update(block, panel, pivots, slice(at, at + _STRIP))
                at += _STRIP
                if coming is not None:
                    coming.Test()
            if coming is not None:
                coming.Wait()

    def _update(self, block: int, panel: np.ndarray, pivots: np.ndarray, columns: slice) -> None:
        """Apply a panel to some of the columns behind it: swap rows, solve for U, subtract L U."""
        width, part = panel.shape[1], self.a[block * self.nb :, columns]
        self.blas.swap_rows(part, pivots)
        self.blas.solve_lower(panel[:width], part[:width])
        self.blas.subtract_product(part[width:], panel[width:], part[:width])

    def _back(self) -> np.ndarray:
        """Solve U x = y from the last block to the first; each rank adds up what its own part of x contributes."""
        y = np.ascontiguousarray(self.a[:, -1]) if self.has_b else np.empty(self.n)
        self.comm.Bcast(y, root=self.owner(self.blocks - 1))
        x, known = np.zeros(self.n), np.zeros(self.n)
        for block in reversed(range(self.blocks)):
            rows, root = slice(block * self.nb, block * self.nb + self.width(block)), self.owner(block)
            total = np.empty(self.width(block))
            self.comm.Reduce(known[rows].copy(), total, root=root)
            if root == self.comm.rank:
                low = self.edges[self.mine.index(block)]
                own = self.a[:, low : low + self.width(block)]
                right = (y[rows] - total)[:, None]
                self.blas.solve_upper(own[rows], right)
                x[rows] = right[:, 0]
                known[: rows.start] += own[: rows.start] @ x[rows]
        self.comm.Allreduce(x.copy(), x)
        return x

    def residual(self, x: np.ndarray) -> float:
        """Return HPL's: ||A x - b|| / (eps (||A|| ||x|| + ||b||) n), largest norms, with A and b made anew.

        Infinite when x holds a number that is none.
        """
        product, rows = np.zeros(self.n), np.zeros(self.n)
        for columns, values in self.columns():
            product += values @ x[columns]
            rows += np.abs(values).sum(axis=1)
        for array in (product, rows):
            self.comm.Allreduce(array.copy(), array)
        b = self.b()
        scale = rows.max() * np.abs(x).max() + np.abs(b).max()
        value = float(np.abs(product - b).max() / (np.finfo(float).eps * scale * self.n))
        return value if np.isfinite(value) else float("inf")


def _max() -> Any:
    from mpi4py import MPI

    return MPI.MAX


def operations(n: int) -> float:
    """Return HPL's count for order n.

    >>> operations(2)
    11.333333333333332
    """
    return 2 / 3 * n**3 + 3 / 2 * n**2
