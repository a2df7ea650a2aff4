"""What MXNet's trainer is made of: Gluon blocks of the neutral layers, the loss, the update rule."""

from __future__ import annotations

from typing import Any

from transect.training.layers import (
    BatchNorm2d,
    Branches,
    Conv2d,
    Flatten,
    GlobalAveragePool,
    Layer,
    Linear,
    MaxPool2d,
    ReLU,
    Residual,
    Sigmoid,
    weight_shapes,
)
from transect.training.workloads import Parameters

# What Gluon calls the arrays of a batch norm.
_NORM_PARTS = {"weight": "gamma", "bias": "beta"}


def build_net(layers: tuple[Layer, ...]) -> tuple[Any, dict[str, Any]]:
    """Return the net, not yet initialised, and Gluon's parameters by the neutral names.

    The layouts are the neutral ones. A batch norm forgets: its running arrays hold the statistics
    of the last batch. Raises TypeError for an unknown layer.
    """
    from mxnet.gluon import nn

    parameters: dict[str, Any] = {}

    class Sum(nn.HybridBlock):
        """A residual layer."""

        def __init__(self, body: Any, shortcut: Any) -> None:
            super().__init__()
            self.body, self.shortcut = body, shortcut

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return self.body(x) + (x if self.shortcut is None else self.shortcut(x))

    class Join(nn.HybridBlock):
        """Branches from one input, joined along channels; None is the input."""

        def __init__(self, branches: list[Any]) -> None:
            super().__init__()
            self.branches = branches
            for branch in branches:
                if branch is not None:
                    self.register_child(branch)

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return F.concat(*(x if branch is None else branch(x) for branch in self.branches), dim=1)

    def keep(block: Any, layer: Layer, name: str) -> Any:
        for weight in weight_shapes((layer,)):
            part = weight.name.rpartition(".")[2]
            attribute = _NORM_PARTS.get(part, part) if isinstance(layer, BatchNorm2d) else part
            parameters[f"{name}.{part}"] = getattr(block, attribute)
        return block

    def build(layer: Layer, name: str) -> Any:
        match layer:
            case Linear(inputs, outputs):
                return keep(nn.Dense(outputs, flatten=False, in_units=inputs), layer, name)
            case Conv2d(inputs, outputs, kernel, padding, stride, bias, groups):
                block = nn.Conv2D(outputs, kernel, stride, padding, groups=groups, in_channels=inputs, use_bias=bias)
                return keep(block, layer, name)
            case BatchNorm2d(channels, _, epsilon):
                block = nn.BatchNorm(momentum=0.0, epsilon=epsilon, in_channels=channels)
                return keep(block, layer, name)
            case MaxPool2d(size, _, padding):
                return nn.MaxPool2D(size, layer.step, padding)
            case GlobalAveragePool():
                pool = nn.HybridSequential()
                pool.add(nn.GlobalAvgPool2D(), nn.Flatten())
                return pool
            case ReLU():
                return nn.Activation("relu")
            case Sigmoid():
                return nn.Activation("sigmoid")
            case Flatten():
                return nn.Flatten()
            case Residual(body, shortcut):
                second = chain(shortcut, f"{name}.shortcut.") if shortcut else None
                return Sum(chain(body, f"{name}.body."), second)
            case Branches(branches):
                return Join(
                    [chain(branch, f"{name}.{number}.") if branch else None for number, branch in enumerate(branches)]
                )
        raise TypeError(f"no Gluon block for layer {layer!r}: add it to {__name__}")

    def chain(parts: tuple[Layer, ...], prefix: str) -> Any:
        sequence = nn.HybridSequential()
        for index, layer in enumerate(parts):
            sequence.add(build(layer, f"{prefix}{index}"))
        return sequence

    return chain(layers, ""), parameters


LOSSES = ("cross-entropy", "mse", "huber", "binary-cross-entropy")


def with_loss(net: Any, rule: Parameters, classes: int, dtype: str) -> Any:
    """Return a block of inputs and int labels that gives the mean loss, of shape (1,).

    Hybridized as a whole, so that a step's forward and backward pass are one call each. Raises KeyError for an
    unknown loss.
    """
    from mxnet import gluon

    def cross_entropy(F: Any, outputs: Any, y: Any) -> Any:
        # Gluon's loss takes oneDNN's log_softmax: seen off by 3e-6, also near 0. Moved by the largest, so that
        # no exponential overflows.
        moved = F.broadcast_sub(outputs, F.BlockGrad(F.max(outputs, axis=1, keepdims=True)))
        logarithms, own = F.log(F.sum(F.exp(moved), axis=1)), F.pick(moved, y, axis=1)
        if rule.label_smoothing:
            own = (1 - rule.label_smoothing) * own + rule.label_smoothing * F.mean(moved, axis=1)
        return F.mean(logarithms - own)

    # Gluon's L2Loss is half the squares' mean over classes; the published loss is their sum.
    squares = gluon.loss.L2Loss(weight=classes)

    def huber(F: Any, outputs: Any, wanted: Any) -> Any:
        distance = outputs - wanted
        # Not F.clip, whose limits are float32.
        size = F.abs(distance)
        near = size <= rule.delta
        return F.mean(F.where(near, 0.5 * distance * distance, rule.delta * (size - 0.5 * rule.delta)))

    def binary_cross_entropy(F: Any, outputs: Any, wanted: Any) -> Any:
        return F.mean(F.relu(outputs) - outputs * wanted + F.log1p(F.exp(-F.abs(outputs))))

    of_numbers = {
        "mse": lambda F, outputs, wanted: F.mean(squares(outputs, wanted)),
        "huber": huber,
        "binary-cross-entropy": binary_cross_entropy,
    }

    class WithLoss(gluon.HybridBlock):
        """The net and its loss."""

        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def hybrid_forward(self, F: Any, x: Any, y: Any) -> Any:
            if rule.loss == "cross-entropy":
                return cross_entropy(F, self.net(x), y)
            return of_numbers[rule.loss](F, self.net(x), F.one_hot(y, classes, dtype=dtype))

    block = WithLoss()
    block.hybridize(static_alloc=True, static_shape=True)
    return block
