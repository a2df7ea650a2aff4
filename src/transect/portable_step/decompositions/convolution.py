"""The gradients of a convolution, as convolutions of their own.

With y = conv(x, w) of stride s, padding p and dilation d, the gradient to x is the transposed
convolution of y's with w, and that to w the convolution of x with y's gradient, in which batch and
channels change places and stride and dilation too (Dumoulin and Visin, arXiv:1603.07285, chapter 4).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from transect.portable_step.decompositions import decomposes

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["convolution", "convolution_backward"]

Sizes = list[int]


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
        _per_axis(one, spatial) for one in (stride, padding, dilation, output_padding)
    )
    if not transposed or all(o < s for o, s in zip(output_padding, stride, strict=True)):
        return NotImplemented
    # All that the windows reach; padding at the begin cuts off, output padding keeps or adds zeros.
    none = [0] * spatial
    full = torch.ops.aten.convolution.default(
        x, weight, None, stride, none, dilation, True, none, groups
    )
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
    stride, padding, dilation = (
        _per_axis(one, spatial) for one in (stride, padding, dilation)
    )  # fmt: skip
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


def _convolve(
    x: Tensor, weight: Tensor, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> Tensor:
    import torch

    none = [0] * len(stride)
    return torch.ops.aten.convolution.default(
        x, weight, None, stride, padding, dilation, False, none, groups
    )


def _cut(x: Tensor, sizes: Any) -> Tensor:
    """Keep the first `sizes` elements of the axes from the third on."""
    for axis, size in enumerate(sizes, start=2):
        if x.shape[axis] != size:
            x = x.narrow(axis, 0, size)
    return x


def _input_gradient(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Tensor:
    import torch

    kernel = weight.shape[2:]
    flipped = [d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding, strict=True)]
    if all(s == 1 for s in stride) and min(flipped) >= 0:
        # Without a stride it is the convolution with the turned kernel.
        turned = weight.flip(list(range(2, weight.dim()))) if math.prod(kernel) > 1 else weight
        turned = turned.unflatten(0, (groups, -1)).transpose(1, 2).flatten(0, 1)
        return _convolve(grad, turned, stride, flipped, dilation, groups)
    # What no window reached at the end.
    rest = [
        size - ((out - 1) * s - 2 * p + d * (k - 1) + 1)
        for size, out, s, p, d, k in zip(
            x.shape[2:], grad.shape[2:], stride, padding, dilation, kernel, strict=True
        )
    ]
    return torch.ops.aten.convolution.default(
        grad, weight, None, stride, padding, dilation, True, rest, groups
    )


def _weight_gradient(
    small: Tensor,
    large: Tensor,
    weight: Tensor,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Tensor:
    """Return the gradient to `weight` (A, B / groups, *kernel).

    `small` (N, A, …) is on the side of the convolution's output, `large` (N, B, …) on that of its
    input; for a transposed convolution these are its input and the gradient to its output.
    """
    # The batch is summed over as channels are, so it takes their place, group by group.
    image = large.unflatten(1, (groups, -1)).transpose(0, 2).flatten(1, 2)
    kernel = small.transpose(0, 1)
    found = _cut(_convolve(image, kernel, dilation, padding, stride, groups), weight.shape[2:])
    return found.transpose(0, 1)
