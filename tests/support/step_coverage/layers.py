"""Cases: linear layers, convolution, normalisation, pooling."""

from __future__ import annotations

from typing import Any

from step_coverage.case import CLASSES, case, nn, normal


def _net(*layers: Any) -> Any:
    """Return the layers, then a linear classifier of whatever they give."""
    return nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(CLASSES))


@case("Linear", normal(6))
def mlp() -> Any:
    """Linear layers with and without bias."""
    return _net(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 7, bias=False), nn.ReLU())


@case("Linear", normal(4, 6))
def linear_of_sequences() -> Any:
    """Linear over the last of several axes, bilinear."""

    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(6, 3), nn.Linear(6, 4)
            self.both = nn.Bilinear(3, 4, 5)

        def forward(self, x: Any) -> Any:
            return self.both(self.first(x), self.second(x))

    return _net(Both())


@case("Convolution", normal(4, 17))
def conv1d() -> Any:
    """Conv1d: stride, dilation, groups, padding, 'same'."""
    return _net(
        nn.Conv1d(4, 6, 3, padding=1),
        nn.Tanh(),
        nn.Conv1d(6, 6, 3, stride=2, groups=3),
        nn.Tanh(),
        nn.Conv1d(6, 4, 3, dilation=2, padding="same"),
        nn.Conv1d(4, 4, 1),
    )


@case("Convolution", normal(3, 11, 8))
def conv2d() -> Any:
    """Conv2d: stride, padding, kernels that are not square, without bias."""
    return _net(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.Tanh(),
        nn.Conv2d(4, 5, (3, 2), stride=(2, 1)),
        nn.Tanh(),
        nn.Conv2d(5, 4, (1, 3), stride=2, padding=(0, 2), bias=False),
    )


@case("Convolution", normal(2, 12, 9))
def conv2d_dilated() -> Any:
    """Conv2d: dilation, with stride and groups, 'same', 'valid'."""
    return _net(
        nn.Conv2d(2, 4, 3, dilation=(2, 1), padding="same"),
        nn.Tanh(),
        nn.Conv2d(4, 4, (2, 3), dilation=2, stride=2, padding=1, groups=2),
        nn.Tanh(),
        nn.Conv2d(4, 3, 2, padding="valid"),
    )


@case("Convolution", normal(4, 8, 8))
def conv2d_depthwise() -> Any:
    """Conv2d: depthwise with and without a multiplier, pointwise with and without a stride."""
    return _net(
        nn.Conv2d(4, 4, 3, padding=1, groups=4),
        nn.Tanh(),
        nn.Conv2d(4, 6, 1),
        nn.Tanh(),
        nn.Conv2d(6, 12, 3, stride=2, padding=1, groups=6),
        nn.Conv2d(12, 3, 1, stride=2),
    )


@case("Convolution", normal(2, 7, 6))
def conv2d_padding_modes() -> Any:
    """Conv2d: padding by reflection, by repetition, around; constant padding."""
    return _net(
        nn.Conv2d(2, 3, 3, padding=(2, 1), padding_mode="reflect"),
        nn.Tanh(),
        nn.Conv2d(3, 3, 3, padding=(1, 2), padding_mode="replicate"),
        nn.Tanh(),
        nn.Conv2d(3, 3, 3, padding=2, padding_mode="circular"),
        nn.Tanh(),
        nn.ConstantPad2d((1, 0, 2, 1), 0.5),
        nn.Conv2d(3, 2, 3),
    )


@case("Convolution", normal(4, 7))
def conv_transpose1d() -> Any:
    """ConvTranspose1d: stride, padding, output padding, groups."""
    return _net(
        nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1),
        nn.Tanh(),
        nn.ConvTranspose1d(6, 4, 4, stride=3, groups=2),
    )


@case("Convolution", normal(3, 4, 5))
def conv_transpose2d() -> Any:
    """ConvTranspose2d: stride, dilation, padding, output padding, groups."""
    return _net(
        nn.ConvTranspose2d(3, 4, 3, padding=1),
        nn.Tanh(),
        nn.ConvTranspose2d(4, 4, (3, 2), stride=(2, 3), padding=(1, 0), output_padding=(1, 2)),
        nn.Tanh(),
        nn.ConvTranspose2d(4, 6, 2, dilation=2, groups=2, output_padding=1, bias=False),
    )


@case("Convolution", normal(2, 5, 6, 4))
def conv3d() -> Any:
    """Conv3d and ConvTranspose3d."""
    return _net(
        nn.Conv3d(2, 4, (3, 2, 1), padding=(1, 0, 0)),
        nn.Tanh(),
        nn.Conv3d(4, 4, 2, stride=2, groups=2),
        nn.Tanh(),
        nn.ConvTranspose3d(4, 2, 2, stride=2),
    )


@case("Normalisation", normal(6), batch=4, least_batch=2)
def batch_norm1d() -> Any:
    """BatchNorm1d of features and of sequences."""
    return _net(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Unflatten(1, (2, 4)), nn.BatchNorm1d(2))


@case("Normalisation", normal(3, 6, 5))
def batch_norm2d() -> Any:
    """BatchNorm2d with its buffers; other momentum, without weights, without buffers."""
    return _net(
        nn.Conv2d(3, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Conv2d(4, 4, 1),
        nn.BatchNorm2d(4, momentum=0.3, eps=1e-3),
        nn.Conv2d(4, 4, 1),
        nn.BatchNorm2d(4, affine=False),
        nn.Conv2d(4, 4, 1),
        nn.BatchNorm2d(4, track_running_stats=False),
    )


@case("Normalisation", normal(4, 6))
def layer_norm() -> Any:
    """LayerNorm over one and two axes, without bias, without weights."""
    return _net(
        nn.LayerNorm(6),
        nn.Linear(6, 8),
        nn.LayerNorm((4, 8)),
        nn.Linear(8, 8),
        nn.LayerNorm(8, bias=False),
        nn.Linear(8, 6),
        nn.LayerNorm(6, elementwise_affine=False),
    )


@case("Normalisation", normal(3, 5, 4))
def group_norm() -> Any:
    """GroupNorm of one, some and all groups."""
    return _net(
        nn.Conv2d(3, 6, 3),
        nn.GroupNorm(3, 6),
        nn.Tanh(),
        nn.Conv2d(6, 4, 1),
        nn.GroupNorm(1, 4),
        nn.Tanh(),
        nn.Conv2d(4, 4, 1),
        nn.GroupNorm(4, 4, affine=False),
    )


@case("Normalisation", normal(3, 5, 4))
def instance_norm() -> Any:
    """InstanceNorm1d and 2d, with weights and with buffers."""
    return _net(
        nn.Conv2d(3, 4, 3),
        nn.InstanceNorm2d(4),
        nn.Tanh(),
        nn.Conv2d(4, 4, 1),
        nn.InstanceNorm2d(4, affine=True),
        nn.Flatten(2),
        nn.InstanceNorm1d(4, affine=True, track_running_stats=True),
    )


@case("Normalisation", normal(4, 6))
def rms_norm() -> Any:
    """RMSNorm, with and without weights."""
    return _net(
        nn.RMSNorm(6),
        nn.Linear(6, 8),
        nn.RMSNorm((4, 8), eps=1e-5),
        nn.Linear(8, 6),
        nn.RMSNorm(6, elementwise_affine=False),
    )


@case("Normalisation", normal(4, 6, 5))
def local_response_norm() -> Any:
    """LocalResponseNorm; a convolution with weight norm."""
    from torch.nn.utils.parametrizations import weight_norm

    return _net(nn.LocalResponseNorm(3), weight_norm(nn.Conv2d(4, 3, 3)), nn.Tanh())


@case("Pooling", normal(2, 13))
def max_pool1d() -> Any:
    """MaxPool1d: overlapping, padded, dilated, ceil mode."""
    return _net(
        nn.Conv1d(2, 4, 3, padding=1),
        nn.MaxPool1d(3, stride=2, padding=1),
        nn.Conv1d(4, 4, 1),
        nn.MaxPool1d(2, dilation=2, stride=1),
        nn.MaxPool1d(2, ceil_mode=True),
    )


@case("Pooling", normal(2, 9, 8))
def max_pool2d() -> Any:
    """MaxPool2d: overlapping, padded, windows that are not square, equal maxima."""
    return _net(
        nn.Conv2d(2, 3, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),
        nn.Conv2d(3, 3, 1),
        nn.MaxPool2d((2, 1)),
    )


@case("Pooling", normal(2, 10, 9))
def max_pool2d_ceil() -> Any:
    """MaxPool2d: ceil mode, dilation."""
    return _net(
        nn.Conv2d(2, 3, 3, padding=1),
        nn.MaxPool2d(2, dilation=(2, 1), stride=1),
        nn.Conv2d(3, 3, 1),
        nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True),
        nn.Conv2d(3, 3, 1),
        nn.MaxPool2d(2, ceil_mode=True),
    )


@case("Pooling", normal(2, 5, 6, 4))
def pool3d() -> Any:
    """MaxPool3d, AvgPool3d, AdaptiveAvgPool3d."""
    return _net(
        nn.Conv3d(2, 3, 1),
        nn.MaxPool3d((2, 3, 2), stride=1),
        nn.Conv3d(3, 3, 1),
        nn.AvgPool3d(2, stride=1),
        nn.Conv3d(3, 3, 1),
        nn.AdaptiveAvgPool3d((2, 2, 1)),
    )


@case("Pooling", normal(2, 13))
def avg_pool1d() -> Any:
    """AvgPool1d: overlapping, padded, ceil mode, count_include_pad."""
    return _net(
        nn.Conv1d(2, 4, 3, padding=1),
        nn.AvgPool1d(3, stride=2, padding=1),
        nn.Conv1d(4, 4, 1),
        nn.AvgPool1d(3, stride=1, padding=1, count_include_pad=False),
        nn.AvgPool1d(2, ceil_mode=True),
    )


@case("Pooling", normal(2, 10, 9))
def avg_pool2d() -> Any:
    """AvgPool2d: overlapping, padded, ceil mode, count_include_pad, divisor_override."""
    return _net(
        nn.Conv2d(2, 3, 3, padding=1),
        nn.AvgPool2d(3, stride=2, padding=1, ceil_mode=True),
        nn.Conv2d(3, 3, 1),
        nn.AvgPool2d(3, stride=(1, 2), padding=1, ceil_mode=True, count_include_pad=False),
        nn.Conv2d(3, 3, 1),
        nn.AvgPool2d((2, 1), stride=1, divisor_override=3),
        nn.AvgPool2d((2, 1)),
    )


@case("Pooling", normal(2, 7, 8))
def adaptive_avg_pool() -> Any:
    """AdaptiveAvgPool2d and 1d, to sizes that do not divide the input's."""
    return _net(
        nn.Conv2d(2, 4, 1),
        nn.AdaptiveAvgPool2d((5, 4)),
        nn.Conv2d(4, 4, 1),
        nn.AdaptiveAvgPool2d((3, None)),
        nn.Conv2d(4, 4, 1),
        nn.Flatten(2),
        nn.AdaptiveAvgPool1d(5),
        nn.Conv1d(4, 4, 1),
        nn.AdaptiveAvgPool1d(1),
    )


@case("Pooling", normal(2, 7, 8))
def adaptive_max_pool() -> Any:
    """AdaptiveMaxPool2d and 1d, to sizes that do not divide the input's."""
    return _net(
        nn.Conv2d(2, 4, 1),
        nn.AdaptiveMaxPool2d((5, 4)),
        nn.Conv2d(4, 4, 1),
        nn.Flatten(2),
        nn.AdaptiveMaxPool1d(7),
        nn.Conv1d(4, 4, 1),
        nn.AdaptiveMaxPool1d(1),
    )
