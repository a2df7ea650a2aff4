"""Update rules as nodes of ONNX: the next weights and the next states of the optimiser.

Each function takes the values' names: `states` by our names of `optimisers.STATES`, `updates` the number
of this update, from 1; and returns the next weight, and the next states by name. The equations are those of
torch.optim. Hyper-parameters of 0 that `optimisers.DROPPED` lists are not in the group.
"""

from __future__ import annotations

from collections.abc import Mapping

from transect.onnx_models.graph_writer import GraphWriter
from transect.portable_step.optimisers import Group

Updated = tuple[str, dict[str, str]]


def _decayed(writer: GraphWriter, group: Group, weight: str, gradient: str, dtype: str) -> str:
    """Return g + weight_decay w."""
    if "weight_decay" not in group.hyper:
        return gradient
    decay = writer.cast(group.hyper["weight_decay"], dtype)
    return writer.node("Add", gradient, writer.node("Mul", weight, decay))


def sgd(
    writer: GraphWriter, group: Group, weight: str, gradient: str, states: Mapping[str, str], dtype: str, updates: str
) -> Updated:
    """Stochastic gradient descent, with momentum where the group has one.

    g += weight_decay w; v = momentum v + g; w -= lr v, or with Nesterov's lr (g + momentum v).
    """
    hyper = {name: writer.cast(value, dtype) for name, value in group.hyper.items()}
    gradient = _decayed(writer, group, weight, gradient, dtype)
    direction, after = gradient, {}
    if "momentum" in hyper:
        kept = writer.node("Mul", states["momentum"], hyper["momentum"])
        velocity = direction = writer.node("Add", kept, gradient)
        after["momentum"] = velocity
        if group.nesterov:
            ahead = writer.node("Mul", velocity, hyper["momentum"])
            direction = writer.node("Add", gradient, ahead)
    return writer.node("Sub", weight, writer.node("Mul", direction, hyper["lr"])), after


def adamw(
    writer: GraphWriter, group: Group, weight: str, gradient: str, states: Mapping[str, str], dtype: str, updates: str
) -> Updated:
    """AdamW (Loshchilov and Hutter, arXiv:1711.05101): w *= 1 - lr weight_decay, then as Adam without a decay."""
    if "weight_decay" in group.hyper:
        one = writer.constant(1.0, "float64")
        kept = writer.node("Sub", one, writer.node("Mul", group.hyper["lr"], group.hyper["weight_decay"]))
        shrunk = writer.node("Mul", weight, writer.cast(kept, dtype))
    else:
        shrunk = weight
    return _descended(writer, group, shrunk, gradient, states, dtype, updates)


def adam(
    writer: GraphWriter, group: Group, weight: str, gradient: str, states: Mapping[str, str], dtype: str, updates: str
) -> Updated:
    """Adam (Kingma and Ba, arXiv:1412.6980, algorithm 1), with weight_decay w added to the gradient."""
    gradient = _decayed(writer, group, weight, gradient, dtype)
    return _descended(writer, group, weight, gradient, states, dtype, updates)


def _descended(
    writer: GraphWriter, group: Group, weight: str, gradient: str, states: Mapping[str, str], dtype: str, updates: str
) -> Updated:
    """w -= lr sqrt(c2) / c1 m / (sqrt(v) + eps sqrt(c2)), c = 1 - beta^updates, with the averages m and v."""
    mean, square = _averages(writer, group, gradient, states, dtype)
    first, second = _corrections(writer, group, updates)
    root = writer.node("Sqrt", second)
    epsilon = writer.cast(writer.node("Mul", group.hyper["eps"], root), dtype)
    rate = writer.cast(writer.node("Div", writer.node("Mul", group.hyper["lr"], root), first), dtype)
    divisor = writer.node("Add", writer.node("Sqrt", square), epsilon)
    change = writer.node("Mul", writer.node("Div", mean, divisor), rate)
    return writer.node("Sub", weight, change), {"exp_avg": mean, "exp_avg_sq": square}


def lamb(
    writer: GraphWriter, group: Group, weight: str, gradient: str, states: Mapping[str, str], dtype: str, updates: str
) -> Updated:
    """LAMB (You and others, arXiv:1904.00962, algorithm 2, with phi(z) = z), for one tensor.

    u = m / c1 / (sqrt(v / c2) + eps) + weight_decay w; w -= lr |w| / |u| u, without the ratio where a norm is 0.
    """
    mean, square = _averages(writer, group, gradient, states, dtype)
    first, second = (writer.cast(value, dtype) for value in _corrections(writer, group, updates))
    root = writer.node("Sqrt", writer.node("Div", square, second))
    divisor = writer.node("Add", root, writer.cast(group.hyper["eps"], dtype))
    along = writer.node("Div", writer.node("Div", mean, first), divisor)
    along = _decayed(writer, group, weight, along, dtype)
    size, length = (writer.node("Sqrt", writer.node("ReduceSumSquare", value, keepdims=0)) for value in (weight, along))
    zero, one = writer.constant(0.0, dtype), writer.constant(1.0, dtype)
    both = writer.node("And", writer.node("Greater", size, zero), writer.node("Greater", length, zero))
    ratio = writer.node("Where", both, writer.node("Div", size, length), one)
    change = writer.node("Mul", along, writer.node("Mul", ratio, writer.cast(group.hyper["lr"], dtype)))
    return writer.node("Sub", weight, change), {"exp_avg": mean, "exp_avg_sq": square}


def rmsprop(
    writer: GraphWriter, group: Group, weight: str, gradient: str, states: Mapping[str, str], dtype: str, updates: str
) -> Updated:
    """RMSprop (Tieleman and Hinton, lecture 6.5, 2012), not centred.

    g += weight_decay w; a = alpha a + (1 - alpha) g^2; v = momentum v + g / (sqrt(a) + eps); w -= lr v.
    """
    gradient = _decayed(writer, group, weight, gradient, dtype)
    square = _average_square(writer, gradient, states["square_avg"], group.hyper["alpha"], dtype)
    divisor = writer.node("Add", writer.node("Sqrt", square), writer.cast(group.hyper["eps"], dtype))
    direction, after = writer.node("Div", gradient, divisor), {"square_avg": square}
    if "momentum" in group.hyper:
        kept = writer.node("Mul", states["momentum"], writer.cast(group.hyper["momentum"], dtype))
        direction = after["momentum"] = writer.node("Add", kept, direction)
    rate = writer.cast(group.hyper["lr"], dtype)
    return writer.node("Sub", weight, writer.node("Mul", direction, rate)), after


def adagrad(
    writer: GraphWriter, group: Group, weight: str, gradient: str, states: Mapping[str, str], dtype: str, updates: str
) -> Updated:
    """Adagrad (Duchi and others, JMLR 12, 2011): g += weight_decay w; s += g^2; w -= lr g / (sqrt(s) + eps).

    With `lr_decay` the rate is lr / (1 + (updates - 1) lr_decay).
    """
    gradient = _decayed(writer, group, weight, gradient, dtype)
    total = writer.node("Add", states["sum"], writer.node("Mul", gradient, gradient))
    rate = group.hyper["lr"]
    if "lr_decay" in group.hyper:
        one = writer.constant(1.0, "float64")
        before = writer.node("Sub", writer.cast(updates, "float64"), one)
        slower = writer.node("Add", one, writer.node("Mul", before, group.hyper["lr_decay"]))
        rate = writer.node("Div", rate, slower)
    divisor = writer.node("Add", writer.node("Sqrt", total), writer.cast(group.hyper["eps"], dtype))
    change = writer.node("Mul", writer.node("Div", gradient, divisor), writer.cast(rate, dtype))
    return writer.node("Sub", weight, change), {"sum": total}


def _averages(
    writer: GraphWriter, group: Group, gradient: str, states: Mapping[str, str], dtype: str
) -> tuple[str, str]:
    """Return Adam's averages of the gradient and of its square: m += (1 - beta1) (g - m), v = beta2 v + (1 - beta2) g^2."""
    one = writer.constant(1.0, "float64")
    share = writer.cast(writer.node("Sub", one, group.hyper["beta1"]), dtype)
    apart = writer.node("Mul", writer.node("Sub", gradient, states["exp_avg"]), share)
    mean = writer.node("Add", states["exp_avg"], apart)
    return mean, _average_square(writer, gradient, states["exp_avg_sq"], group.hyper["beta2"], dtype)


def _average_square(writer: GraphWriter, gradient: str, average: str, decay: str, dtype: str) -> str:
    """Return decay a + (1 - decay) g^2."""
    share = writer.cast(writer.node("Sub", writer.constant(1.0, "float64"), decay), dtype)
    kept = writer.node("Mul", average, writer.cast(decay, dtype))
    return writer.node("Add", kept, writer.node("Mul", writer.node("Mul", gradient, gradient), share))


def _corrections(writer: GraphWriter, group: Group, updates: str) -> tuple[str, str]:
    """Return 1 - beta1^updates and 1 - beta2^updates, in float64."""
    one, number = writer.constant(1.0, "float64"), writer.cast(updates, "float64")
    first, second = (
        writer.node("Sub", one, writer.node("Pow", group.hyper[beta], number)) for beta in ("beta1", "beta2")
    )
    return first, second


UPDATES = {"sgd": sgd, "adamw": adamw, "adam": adam, "lamb": lamb, "rmsprop": rmsprop, "adagrad": adagrad}
