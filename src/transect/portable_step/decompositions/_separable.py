"""Linear maps that treat each axis alone, as products with constant matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

# Rows of numbers: plain, for a tensor made while a step is traced has no values yet.
Matrix = list[list[float]]


def window_matrix(windows: list[tuple[int, int, float]], size: int) -> Matrix:
    """Return the (windows, size) matrix whose rows are `weight` from `start` up to `end`, else 0.

    A window is (start, end, weight); what lies beyond the axis is cut off.
    """
    return [[weight if start <= column < end else 0.0 for column in range(size)] for start, end, weight in windows]


def transposed(matrix: Matrix) -> Matrix:
    """Return the matrix with rows as columns."""
    return [list(column) for column in zip(*matrix, strict=True)]


def apply_matrices(x: Tensor, matrices: list[Matrix]) -> Tensor:
    """Multiply the last axes by a matrix each: (…, H, W) and (A, H), (B, W) give (…, A, B)."""
    import torch

    for place, rows in enumerate(matrices):
        if all(row == [float(i == j) for j in range(len(rows))] for i, row in enumerate(rows)):
            continue
        matrix = torch.tensor(rows, dtype=x.dtype)
        axis = x.dim() - len(matrices) + place
        if axis == x.dim() - 1:
            x = x.matmul(matrix.t())
        else:
            # One product, over all axes behind at once.
            behind = list(x.shape[axis + 1 :])
            x = matrix.matmul(x.flatten(axis + 1)).unflatten(-1, behind)
    return x
