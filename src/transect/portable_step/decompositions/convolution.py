"""The gradients of a convolution, as convolutions of their own.

With y = conv(x, w) of stride s, padding p and dilation d, the gradient to x is the transposed
convolution of y's with w, and that to w the product of y's gradient with what each place of the
kernel saw (Dumoulin and Visin, arXiv:1603.07285, chapter 4; Chellapilla and others, IWFHR 2006).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from transect.portable_step.decompositions import decomposes

if TYPE_CHECKING:
    from torch import Tensor

Sizes = list[int]

# Measured with ONNX Runtime 1.29 on the CPU, one thread, shapes of digits-cnn and ResNet-20. A
# product for each place of the kernel beats one convolution whose kernel is the gradient: 1.2 to 5
# times as fast. With few channels a product for each sample takes 0.4 to 1.05 times as long, and with huge
# planes copies that are moved take 0.8 times. Turning the kernel pays where the planes are large.
MAX_PRODUCTS = 64
FEW_CHANNELS = 16
LARGE_PLANE = 256
HUGE_PLANE = 512


@decomposes("aten.convolution.default")
def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: int,
) -> Tensor:
    """Return the convolution; left as it is unless its output padding is too long for ONNX."""
    import torch

    spatial = weight.dim() - 2
    stride, padding, dilation, output_padding = (
        _per_axis(sizes, spatial) for sizes in (stride, padding, dilation, output_padding)
    )
    if not transposed or all(o < s for o, s in zip(output_padding, stride, strict=True)):
        return NotImplemented
    # All that the windows reach; padding at the begin cuts off, output padding keeps or adds zeros.
    none = [0] * spatial
    full = torch.ops.aten.convolution.default(x, weight, None, stride, none, dilation, True, none, groups)
    ends = []
    for p, more in zip(reversed(padding), reversed(output_padding), strict=True):
        ends += [-p, more - p]
    full = torch.ops.aten.constant_pad_nd.default(full, ends, 0)
    return full if bias is None else full + bias.reshape([-1, *[1] * spatial])


@decomposes("aten.convolution_backward.default")
def convolution_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_sizes: Sizes | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: int,
    output_mask: list[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Return the gradients to input, weight and bias, None for those not asked for.

    Shapes: `grad` (N, F, *out), `x` (N, C, *in), `weight` (F, C / groups, *kernel), or
    (C, F / groups, *kernel) of a transposed convolution. Only N may be symbolic.
    """
    spatial = weight.dim() - 2
    stride, padding, dilation = (_per_axis(sizes, spatial) for sizes in (stride, padding, dilation))
    to_x = to_weight = to_bias = None
    if transposed:
        if output_mask[0]:
            # Output padding as long as a stride gives it more windows than x has elements.
            to_x = _cut(_convolve(grad, weight, stride, padding, dilation, groups), x.shape[2:])
        if output_mask[1]:
            to_weight = _weight_gradient(x, grad, weight, stride, padding, dilation, groups)
    else:
        if output_mask[0]:
            to_x = _input_gradient(grad, x, weight, stride, padding, dilation, groups)
        if output_mask[1]:
            to_weight = _weight_gradient(grad, x, weight, stride, padding, dilation, groups)
    if output_mask[2]:
        to_bias = grad.sum([0, *range(2, grad.dim())])
    return to_x, to_weight, to_bias


def _per_axis(values: Sizes, spatial: int) -> Sizes:
    return list(values) * spatial if len(values) == 1 else list(values)


def _convolve(x: Tensor, weight: Tensor, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Tensor:
    import torch

    none = [0] * len(stride)
    return torch.ops.aten.convolution.default(x, weight, None, stride, padding, dilation, False, none, groups)


def _cut(x: Tensor, sizes: Any) -> Tensor:
    """Keep the first `sizes` elements of the axes from the third on."""
    for axis, size in enumerate(sizes, start=2):
        if x.shape[axis] != size:
            x = x.narrow(axis, 0, size)
    return x


def _input_gradient(
    grad: Tensor, x: Tensor, weight: Tensor, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> Tensor:
    import torch

    kernel = weight.shape[2:]
    flipped = [d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding, strict=True)]
    large = math.prod(int(size) for size in grad.shape[2:]) >= LARGE_PLANE
    wide = int(weight.shape[1]) >= FEW_CHANNELS
    if large and wide and all(s == 1 for s in stride) and min(flipped) >= 0:
        # Without a stride it is the convolution with the turned kernel.
        turned = weight.flip(list(range(2, weight.dim()))) if math.prod(kernel) > 1 else weight
        turned = turned.unflatten(0, (groups, -1)).transpose(1, 2).flatten(0, 1)
        return _convolve(grad, turned, stride, flipped, dilation, groups)
    # What no window reached at the end.
    unreached = [
        size - ((out - 1) * s - 2 * p + d * (k - 1) + 1)
        for size, out, s, p, d, k in zip(x.shape[2:], grad.shape[2:], stride, padding, dilation, kernel, strict=True)
    ]
    return torch.ops.aten.convolution.default(grad, weight, None, stride, padding, dilation, True, unreached, groups)


def _weight_gradient(
    small: Tensor, large: Tensor, weight: Tensor, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> Tensor:
    """Return the gradient to `weight` (A, B / groups, *kernel).

    `small` (N, A, …) is on the side of the convolution's output, `large` (N, B, …) on that of its
    input; for a transposed convolution these are its input and the gradient to its output.
    """
    kernel = [int(size) for size in weight.shape[2:]]
    if math.prod(kernel) > MAX_PRODUCTS:
        # The batch is summed over as channels are, so it takes their place, group by group.
        image = large.unflatten(1, (groups, -1)).transpose(0, 2).flatten(1, 2)
        found = _convolve(image, small.transpose(0, 1), dilation, padding, stride, groups)
        return _cut(found, kernel).transpose(0, 1)
    inner = int(weight.shape[1])
    if groups == 1 and math.prod(kernel) > 1:
        if inner < FEW_CHANNELS:
            return _from_columns(small, large, kernel, stride, padding, dilation)
        plane = math.prod(int(size) for size in small.shape[2:])
        if len(kernel) > 1 and all(s == 1 for s in stride) and plane >= HUGE_PLANE:
            return _from_shifts(small, large, kernel, padding, dilation)
    rows = small.transpose(0, 1).flatten(1)
    seen = _windows(_padded(large.transpose(0, 1), padding), small, rows, kernel, stride, dilation)
    if groups > 1:
        rows = rows.unflatten(0, (groups, -1))
        products = [rows.matmul(window.unflatten(0, (groups, -1)).transpose(1, 2)) for window in seen]
        products = [product.flatten(0, 1) for product in products]
    else:
        products = [rows.mm(window.t()) for window in seen]
    found = products[0] if len(products) == 1 else _joined(products, 1)
    return found.unflatten(1, (*kernel, inner)).movedim(-1, 1)


def _from_columns(
    small: Tensor, large: Tensor, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
) -> Tensor:
    """Return the gradient as a product for each sample with what a channel's windows hold.

    These are the results of a convolution whose kernels are one at one place each and zero elsewhere.
    """
    import torch

    places = math.prod(kernel)
    identity = [[float(i == j) for j in range(places)] for i in range(places)]
    each = torch.tensor(identity, dtype=large.dtype).reshape([places, 1, *kernel])
    channels = int(large.shape[1])
    planes = large.flatten(0, 1).unsqueeze(1)
    seen = _cut(_convolve(planes, each, stride, padding, dilation, 1), small.shape[2:])
    columns = seen.reshape([-1, channels * places, math.prod(int(n) for n in small.shape[2:])])
    products = small.flatten(2).bmm(columns.transpose(1, 2))
    return products.sum(0).unflatten(1, (channels, *kernel))


def _from_shifts(small: Tensor, large: Tensor, kernel: Sizes, padding: Sizes, dilation: Sizes) -> Tensor:
    """Return the gradient of a convolution without stride as one product for each sample.

    A window moved by some places along all axes is the input moved along the last one beside the
    output's gradient moved back along the others: copies of both, and all pairs of them.
    """
    sizes = [int(size) for size in large.shape[2:]]
    outs = [int(size) for size in small.shape[2:]]
    spatial = len(kernel)
    moved = [small]
    for axis in range(spatial - 1):
        moved = [
            _moved(tensor, axis, i * dilation[axis] - padding[axis], sizes[axis], spatial)
            for tensor in moved
            for i in range(kernel[axis])
        ]
    seen = [_moved(large, spatial - 1, padding[-1] - j * dilation[-1], outs[-1], spatial) for j in range(kernel[-1])]
    left, right = (_joined(parts, 1).flatten(2) for parts in (moved, seen))
    found = left.bmm(right.transpose(1, 2)).sum(0)
    shape = (math.prod(kernel[:-1]), int(small.shape[1]), kernel[-1], int(large.shape[1]))
    found = found.reshape(shape).permute(1, 3, 0, 2).flatten(2)
    return found.unflatten(2, kernel)


def _moved(x: Tensor, axis: int, before: int, size: int, spatial: int) -> Tensor:
    """Put `before` zeros before an axis, or cut so much off, and make it `size` long."""
    import torch

    after = size - before - int(x.shape[axis + 2])
    if before == after == 0:
        return x
    ends = [0, 0] * (spatial - 1 - axis) + [before, after]
    return torch.ops.aten.constant_pad_nd.default(x, ends, 0)


def _joined(parts: list[Tensor], axis: int) -> Tensor:
    import torch

    return torch.cat(parts, axis)


def _padded(x: Tensor, padding: Sizes) -> Tensor:
    import torch

    if not any(padding):
        return x
    ends = [end for p in reversed(padding) for end in (p, p)]
    return torch.ops.aten.constant_pad_nd.default(x, ends, 0)


def _windows(x: Tensor, small: Tensor, rows: Tensor, kernel: Sizes, stride: Sizes, dilation: Sizes) -> list[Tensor]:
    """Return what each place of the kernel sees, (channels, batch and places) each.

    One axis after the other, the last one first: what is copied for the others is long runs.
    """
    parts = [x]
    for axis in range(x.dim() - 1, 1, -1):
        k, s, d = kernel[axis - 2], stride[axis - 2], dilation[axis - 2]
        reach = (int(small.shape[axis]) - 1) * s + 1
        whole = reach == int(x.shape[axis]) and s == 1
        parts = [part if whole else _slice(part, axis, i * d, i * d + reach, s) for i in range(k) for part in parts]
    channels, places = x.shape[0], rows.shape[1]
    return [part.reshape([channels, places]) for part in parts]


def _slice(x: Tensor, axis: int, start: int, end: int, step: int) -> Tensor:
    import torch

    return torch.ops.aten.slice.Tensor(x, axis, start, end, step)
