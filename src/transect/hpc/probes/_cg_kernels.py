"""The compiled kernels of the probe of conjugate gradients, on numpy arrays: src/kernels/probes/stencil.c."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import numpy as np

from transect.hpc.probes.common import cpu_flags

PLACES = 27  # entries of a row
# Libraries of `envs/probes-c`, the best first, and what a processor has to have for each.
_LIBRARIES = {"avx512": {"avx2", "fma", "avx512f", "avx512vl", "avx512dq"}, "avx2": {"avx2", "fma"}, "any": set[str]()}
_WHOLE, _REAL, _ARRAY = ctypes.c_int64, ctypes.c_double, ctypes.c_void_p


class Kernels:
    """The library's functions; every array is contiguous, float64 unless another type is named."""

    def __init__(self, folder: Path = Path(sys.prefix) / "lib") -> None:
        """Raise OSError where the library is not there."""
        have = cpu_flags()
        self.name = next(name for name, wanted in _LIBRARIES.items() if wanted <= have)
        self._library = ctypes.CDLL(str(folder / f"transect-probes-{self.name}.so"))
        for name, arguments, result in (
            ("fill", (*[ctypes.c_int] * 3, *[_ARRAY] * 5), _WHOLE),
            ("product", (_WHOLE, *[_ARRAY] * 5), None),
            ("sweep", (_WHOLE, *[_ARRAY] * 6), None),
            ("restriction", (_WHOLE, *[_ARRAY] * 4), None),
            ("prolongation", (_WHOLE, *[_ARRAY] * 3), None),
            ("combination", (_WHOLE, _REAL, _ARRAY, _REAL, *[_ARRAY] * 2), None),
            ("dot", (_WHOLE, *[_ARRAY] * 2), _REAL),
            ("triad", (_WHOLE, *[_ARRAY] * 3, _REAL), None),
        ):
            function = getattr(self._library, name)
            function.argtypes, function.restype = arguments, result

    def combine(self, a: float, x: np.ndarray, b: float, y: np.ndarray, out: np.ndarray, rows: int) -> None:
        """out = a x + b y, of the first `rows`; `out` may be x or y."""
        self._library.combination(rows, a, x.ctypes.data, b, y.ctypes.data, out.ctypes.data)

    def dot(self, x: np.ndarray, y: np.ndarray, rows: int) -> float:
        """Return x'y of the first `rows`."""
        return float(self._library.dot(rows, x.ctypes.data, y.ctypes.data))

    def triad(self, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
        """a = b + 3 c."""
        self._library.triad(a.size, a.ctypes.data, b.ctypes.data, c.ctypes.data, 3.0)

    def restrict(self, points: np.ndarray, r: np.ndarray, ax: np.ndarray, out: np.ndarray) -> None:
        """out = r - ax at `points`, int32."""
        self._library.restriction(points.size, *(each.ctypes.data for each in (points, r, ax, out)))

    def prolong(self, points: np.ndarray, coarse: np.ndarray, x: np.ndarray) -> None:
        """x += coarse at `points`, int32."""
        self._library.prolongation(points.size, *(each.ctypes.data for each in (points, coarse, x)))


class Matrix:
    """A rank's rows: 27 places each, values of 8 and columns of 4 bytes, as HPCG's reference stores them."""

    def __init__(self, kernels: Kernels, columns: np.ndarray) -> None:
        """Make the matrix of a grid: `columns` (nz + 2, ny + 2, nx + 2), int32, has each point's column, else -1."""
        nz, ny, nx = (size - 2 for size in columns.shape)
        self.rows = int(nx * ny * nz)
        self.values = np.empty((self.rows, PLACES))
        self.columns = np.empty((self.rows, PLACES), np.int32)
        self.count, self.place = np.empty(self.rows, np.uint8), np.empty(self.rows, np.uint8)
        self._library = kernels._library
        self._arrays = [each.ctypes.data for each in (self.values, self.columns, self.count, self.place)]
        self.entries = int(self._library.fill(nx, ny, nz, columns.ctypes.data, *self._arrays))

    def multiply(self, x: np.ndarray, out: np.ndarray) -> None:
        """out = A x; x holds what other ranks sent behind its own rows."""
        self._library.product(self.rows, *self._arrays[:3], x.ctypes.data, out.ctypes.data)

    def sweep(self, r: np.ndarray, x: np.ndarray) -> None:
        """Smooth A x = r: Gauss and Seidel once forwards, once backwards."""
        self._library.sweep(self.rows, *self._arrays, r.ctypes.data, x.ctypes.data)

    @property
    def product_bytes(self) -> int:
        """Bytes that `multiply` has to move: every entry, x and the result once."""
        return int(self.entries * 12 + self.rows * (1 + 2 * 8))

    @property
    def sweep_bytes(self) -> int:
        """Bytes that `sweep` has to move: both ways every entry, r, and x read and written."""
        return int(2 * (self.entries * 12 + self.rows * (2 + 3 * 8)))
