"""Routines of scipy's BLAS and LAPACK on parts of a matrix, in place.

scipy's own wrappers copy an operand whose columns do not lie back to back, which a part of a larger matrix never does.
The routines themselves take the distance between columns: scipy exports their addresses for Cython.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

_API = ctypes.pythonapi
_API.PyCapsule_GetName.restype, _API.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
_API.PyCapsule_GetPointer.restype = ctypes.c_void_p
_API.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
Pointer = ctypes.c_void_p


def _routine(module: Any, name: str) -> Any:
    capsule = module.__pyx_capi__[name]
    signature = _API.PyCapsule_GetName(capsule)
    if b"int64" in signature or b"long" in signature:
        raise ImportError(f"scipy's {name} counts in 64 bits, expected int: {signature.decode()}")
    arguments = signature.count(b",") + 1
    return ctypes.CFUNCTYPE(None, *[Pointer] * arguments)(_API.PyCapsule_GetPointer(capsule, signature))


def _integer(value: int) -> Any:
    return ctypes.byref(ctypes.c_int(value))


_ONE, _MINUS_ONE = ctypes.byref(ctypes.c_double(1.0)), ctypes.byref(ctypes.c_double(-1.0))
_LEFT, _LOWER, _UPPER, _NO, _UNIT = (ctypes.c_char_p(word) for word in (b"L", b"L", b"U", b"N", b"U"))


class Blas:
    """The routines; matrices are float64 with consecutive rows (strides (8, distance)), of any distance."""

    def __init__(self) -> None:
        """Raise ImportError where scipy does not export them."""
        from scipy.linalg import cython_blas, cython_lapack

        self._gemm, self._trsm = _routine(cython_blas, "dgemm"), _routine(cython_blas, "dtrsm")
        self._getrf, self._laswp = _routine(cython_lapack, "dgetrf"), _routine(cython_lapack, "dlaswp")

    def subtract_product(self, c: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
        """C -= A B."""
        if c.size:
            m, n, k = (_integer(count) for count in (*c.shape, a.shape[1]))
            parts = (_ONE, c.ctypes.data, _distance(c))
            self._gemm(_NO, _NO, m, n, k, _MINUS_ONE, a.ctypes.data, _distance(a), b.ctypes.data, _distance(b), *parts)

    def solve_lower(self, a: np.ndarray, b: np.ndarray) -> None:
        """B = A^-1 B, A being the lower triangle with ones on its diagonal."""
        self._solve(_LOWER, _UNIT, a, b)

    def solve_upper(self, a: np.ndarray, b: np.ndarray) -> None:
        """B = A^-1 B, A being the upper triangle."""
        self._solve(_UPPER, _NO, a, b)

    def _solve(self, triangle: Any, diagonal: Any, a: np.ndarray, b: np.ndarray) -> None:
        if b.size:
            m, n = (_integer(count) for count in b.shape)
            parts = (a.ctypes.data, _distance(a), b.ctypes.data, _distance(b))
            self._trsm(_LEFT, triangle, _NO, diagonal, m, n, _ONE, *parts)

    def factor(self, a: np.ndarray) -> np.ndarray:
        """A = P L U in place, with partial pivoting; return for each column the row, from 0, that it was swapped with.

        Raises ZeroDivisionError when A is singular.
        """
        pivots, info = np.empty(min(a.shape), np.int32), ctypes.c_int(0)
        m, n = (_integer(count) for count in a.shape)
        self._getrf(m, n, a.ctypes.data, _distance(a), pivots.ctypes.data, ctypes.byref(info))
        if info.value:
            raise ZeroDivisionError(f"column {info.value} of a panel has no pivot")
        return pivots - 1

    def swap_rows(self, a: np.ndarray, pivots: np.ndarray) -> None:
        """Swap row i with row pivots[i], one after the other; `pivots` count from 0."""
        if a.size:
            from_one = pivots.astype(np.int32) + 1
            limits = (_integer(1), _integer(len(pivots)))
            self._laswp(_integer(a.shape[1]), a.ctypes.data, _distance(a), *limits, from_one.ctypes.data, _integer(1))


def _distance(a: np.ndarray) -> Any:
    if a.strides[0] != a.itemsize:
        raise ValueError(f"rows are {a.strides[0]} bytes apart, expected {a.itemsize}")
    return _integer(max(a.strides[1] // a.itemsize, a.shape[0], 1))
