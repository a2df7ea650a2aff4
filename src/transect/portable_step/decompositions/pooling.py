"""Pooling whose gradient, or whose windows, ONNX has no operator for."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

from transect.portable_step.decompositions import decomposes
from transect.portable_step.diagnosis import OperatorError

if TYPE_CHECKING:
    from torch import Tensor

Sizes = list[int]


@decomposes("aten.max_pool2d_with_indices.default", "aten.max_pool3d_with_indices.default")
def max_pool(
    x: Tensor, kernel: Sizes, stride: Sizes | None = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    """Refuse windows that see nothing but padding; else left as it is (NotImplemented).

    Such a window has the maximum -inf at a place outside of the plane, where PyTorch's own
    backward pass writes into memory that is not its own.
    """
    spatial = len(kernel)
    stride, padding, dilation = (_per_axis(sizes, spatial) for sizes in (stride or kernel, padding, dilation))
    axes = zip(x.shape[-spatial:], kernel, stride, padding, dilation, strict=True)
    for size, k, s, p, d in axes:
        # PyTorch keeps the padding to half a window, so that only steps longer than the axis miss it.
        if size < d and _misses(int(size), k, s, p, d, ceil_mode):
            raise OperatorError(
                f"max_pool{spatial}d: a window of it sees nothing but padding, on an axis of "
                f"{int(size)} with kernel {k}, stride {s}, padding {p} and dilation {d}; "
                "expected an element in each window"
            )
    return NotImplemented


def _misses(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> bool:
    """Tell whether a window of an axis has no element."""
    reach = dilation * (kernel - 1) + 1
    starts = [start for start, _, _ in _windows(size, reach, stride, padding, ceil_mode, True)]
    return any(not any(0 <= start + i * dilation < size for i in range(kernel)) for start in starts)


@decomposes("aten.max_pool2d_with_indices_backward.default", "aten.max_pool3d_with_indices_backward.default")
def max_pool_backward(
    grad: Tensor,
    x: Tensor,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    """Add each window's gradient where its maximum was; windows may overlap.

    `indices` are places in the plane of a sample and channel, the first of equal maxima.
    """
    return _scatter(grad, x, indices, len(kernel))


@decomposes("aten.adaptive_max_pool2d_backward.default", "aten.adaptive_max_pool3d_backward.default")
def adaptive_max_pool_backward(grad: Tensor, x: Tensor, indices: Tensor) -> Tensor:
    """Add each window's gradient where its maximum was."""
    return _scatter(grad, x, indices, 2 if x.dim() < 5 else 3)


def _scatter(grad: Tensor, x: Tensor, indices: Tensor, spatial: int) -> Tensor:
    """Return zeros like x, and in the planes of the last `spatial` axes the sums of gradients."""
    planes = grad.flatten(-spatial)
    zeros = planes.new_zeros([*x.shape[:-spatial], math.prod(x.shape[-spatial:])])
    return zeros.scatter_add(-1, indices.flatten(-spatial), planes).reshape(x.shape)


@decomposes("aten.adaptive_max_pool2d.default", "aten.adaptive_max_pool3d.default")
def adaptive_max_pool(x: Tensor, output_size: Sizes) -> tuple[Tensor, Tensor]:
    """Return maxima and their places in the plane, the first of equal ones."""
    import torch

    spatial = len(output_size)
    sizes = [int(size) for size in x.shape[-spatial:]]
    if all(size % out == 0 for size, out in zip(sizes, output_size, strict=True)):
        kernel = [size // out for size, out in zip(sizes, output_size, strict=True)]
        pool = getattr(torch.ops.aten, f"max_pool{spatial}d_with_indices").default
        values, indices = pool(x, kernel, kernel)
        return values, indices
    places = _places(sizes, output_size)
    table = torch.tensor(places, dtype=torch.int64)
    found = x.flatten(-spatial).index_select(-1, table.flatten())
    values, first = found.unflatten(-1, list(table.shape)).max(dim=-1)
    indices = table.flatten().index_select(0, _flat_choice(first, len(places[0])).flatten())
    shape = [*x.shape[:-spatial], *output_size]
    return values.reshape(shape), indices.reshape(shape)


def _flat_choice(first: Tensor, width: int) -> Tensor:
    """Return places in a flat table of `width` columns; `first` (…, rows) has the column of each."""
    import torch

    return first + width * torch.arange(first.shape[-1])


def _places(sizes: Sizes, outputs: Sizes) -> list[list[int]]:
    """Return for each window the places in the flat plane, filled up with its last one."""
    axes = [
        [range(start, end) for start, end, _ in _adaptive_windows(size, out)]
        for size, out in zip(sizes, outputs, strict=True)
    ]
    windows = []
    for ranges in itertools.product(*axes):
        place = [0]
        for size, indices in zip(sizes, ranges, strict=True):
            place = [before * size + here for before in place for here in indices]
        windows.append(place)
    longest = max(map(len, windows))
    return [window + window[-1:] * (longest - len(window)) for window in windows]


def _adaptive_windows(size: int, outputs: int) -> list[tuple[int, int, float]]:
    bounds = [(i * size // outputs, -(-(i + 1) * size // outputs)) for i in range(outputs)]
    return [(start, end, 1 / (end - start)) for start, end in bounds]


@decomposes("aten._adaptive_avg_pool2d.default", "aten._adaptive_avg_pool3d.default")
def adaptive_avg_pool(x: Tensor, output_size: Sizes) -> Tensor:
    """Return means over windows that cover the plane."""
    return apply_matrices(x, _adaptive_matrices(x, output_size))


@decomposes("aten._adaptive_avg_pool2d_backward.default", "aten._adaptive_avg_pool3d_backward.default")
def adaptive_avg_pool_backward(grad: Tensor, x: Tensor) -> Tensor:
    """Share each mean's gradient among the elements of its window."""
    spatial = 2 if x.dim() < 5 else 3
    matrices = _adaptive_matrices(x, list(grad.shape[-spatial:]))
    return apply_matrices(grad, [transposed(matrix) for matrix in matrices])


def _adaptive_matrices(x: Tensor, outputs: Any) -> list[Matrix]:
    sizes = x.shape[-len(outputs) :]
    return [
        window_matrix(_adaptive_windows(int(size), int(out)), int(size))
        for size, out in zip(sizes, outputs, strict=True)
    ]


@decomposes("aten.avg_pool2d.default", "aten.avg_pool3d.default")
def avg_pool(
    x: Tensor,
    kernel: Sizes,
    stride: Sizes | None = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return means over windows; left as it is where ONNX's AveragePool means the same."""
    if not ceil_mode and divisor_override is None and x.dim() == len(kernel) + 2:
        return NotImplemented
    return _by_matrices(x, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override, False)


@decomposes("aten.avg_pool2d_backward.default", "aten.avg_pool3d_backward.default")
def avg_pool_backward(
    grad: Tensor,
    x: Tensor,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    """Share each mean's gradient among the elements of its window."""
    return _by_matrices(grad, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override, True)


def _by_matrices(
    given: Tensor,
    x: Tensor,
    kernel: Sizes,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
    backward: bool,
) -> Tensor:
    """Multiply each axis of `given` by the means that a pooling of x takes, or by their transposes."""
    spatial = x.dim() - 2 if x.dim() > 3 and len(kernel) != x.dim() - 1 else x.dim() - 1
    kernel = _per_axis(kernel, spatial)
    stride, padding = _per_axis(stride or kernel, spatial), _per_axis(padding, spatial)
    matrices = []
    for size, k, s, p in zip(x.shape[-spatial:], kernel, stride, padding, strict=True):
        windows = _windows(int(size), k, s, p, ceil_mode, count_include_pad)
        if divisor_override is not None:
            windows = [(start, end, 1.0) for start, end, _ in windows]
        matrices.append(window_matrix(windows, int(size)))
    if backward:
        matrices = [transposed(matrix) for matrix in matrices]
    found = apply_matrices(given, matrices)
    return found if divisor_override is None else found / divisor_override


def _per_axis(values: Any, spatial: int) -> Sizes:
    given: Sizes = [values] if isinstance(values, int) else list(values)
    return given * spatial if len(given) == 1 else given


def _windows(
    size: int, kernel: int, stride: int, padding: int, ceil_mode: bool, count_include_pad: bool
) -> list[tuple[int, int, float]]:
    """Return start, end and weight of an axis's windows.

    A window that would begin behind the axis and its padding is left out; the padding counts as
    far as `padding` reaches, and in ceil mode no further.
    """
    reach = size + 2 * padding - kernel
    count = (-(-reach // stride) if ceil_mode else reach // stride) + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    windows = []
    for start in range(-padding, -padding + count * stride, stride):
        end = min(start + kernel, size + padding)
        counted = end - start if count_include_pad else min(end, size) - max(start, 0)
        windows.append((start, end, 1 / counted))
    return windows


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
