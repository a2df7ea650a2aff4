"""The update as ONNX nodes: mean over micro-batches, proximal term, clipping, SGD and AdamW.

Scalars are computed in float64 and converted once. The rules are those of torch.optim.
"""

from __future__ import annotations

from collections.abc import Mapping

from transect.onnx_models.graph_writer import GraphWriter
from transect.portable_step.optimisers import Group

# Added to the norm that a gradient is divided by, as torch.nn.utils.clip_grad_norm_ does.
NORM_EPSILON = 1e-6


def mean_gradient(writer: GraphWriter, gradient: str, accumulated: str, count: str, dtype: str) -> str:
    """(accumulated + gradient) / (count + 1); `count`: the micro-batches before this one."""
    number = writer.node("Add", count, writer.constant(1, "int64"))
    total = writer.node("Add", accumulated, gradient)
    return writer.node("Div", total, writer.cast(number, dtype))


def proximal(writer: GraphWriter, gradient: str, weight: str, anchor: str, mu: str, dtype: str) -> str:
    """Gradient of the loss and of mu/2 |w - anchor|^2 (Li et al., FedProx, arXiv:1812.06127)."""
    pull = writer.node("Mul", writer.cast(mu, dtype), writer.node("Sub", weight, anchor))
    return writer.node("Add", gradient, pull)


def clip_by_value(
    writer: GraphWriter, gradients: Mapping[str, str], bound: str, dtypes: Mapping[str, str]
) -> dict[str, str]:
    """Each number between -bound and bound."""
    clipped = {}
    for name, gradient in gradients.items():
        high = writer.cast(bound, dtypes[name])
        clipped[name] = writer.node("Clip", gradient, writer.node("Neg", high), high)
    return clipped


def clip_by_norm(
    writer: GraphWriter, gradients: Mapping[str, str], bound: str, dtypes: Mapping[str, str]
) -> dict[str, str]:
    """All gradients times min(1, bound / (norm + 1e-6)), the norm that of all numbers together.

    Squares of float16 overflow from 256 on: they are taken in float32.
    """
    squares = []
    for name, gradient in gradients.items():
        wide = writer.cast(gradient, "float32") if dtypes[name] == "float16" else gradient
        squares.append(writer.cast(writer.node("ReduceSumSquare", wide, keepdims=0), "float64"))
    norm = writer.node("Sqrt", writer.node("Sum", *squares))
    shifted = writer.node("Add", norm, writer.constant(NORM_EPSILON, "float64"))
    ratio = writer.node("Div", bound, shifted)
    factor = writer.node("Min", ratio, writer.constant(1.0, "float64"))
    return {
        name: writer.node("Mul", gradient, writer.cast(factor, dtypes[name])) for name, gradient in gradients.items()
    }


def sgd(
    writer: GraphWriter, group: Group, weight: str, gradient: str, states: Mapping[str, str], dtype: str
) -> tuple[str, dict[str, str]]:
    """Return the next weight, and the next momentum where the group has one.

    g += weight_decay w; v = momentum v + g; w -= lr v, or with Nesterov's lr (g + momentum v).
    """
    hyper = {name: writer.cast(value, dtype) for name, value in group.hyper.items()}
    if "weight_decay" in hyper:
        gradient = writer.node("Add", gradient, writer.node("Mul", weight, hyper["weight_decay"]))
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
) -> tuple[str, dict[str, str]]:
    """Return the next weight and averages; `updates`: the number of this update, from 1.

    w *= 1 - lr weight_decay; m += (1 - beta1) (g - m); v = beta2 v + (1 - beta2) g^2;
    w -= lr sqrt(c2) / c1 m / (sqrt(v) + eps sqrt(c2)), c = 1 - beta^updates.
    """
    scalar = {name: writer.cast(value, dtype) for name, value in _adamw_scalars(writer, group, updates).items()}
    apart = writer.node("Mul", writer.node("Sub", gradient, states["exp_avg"]), scalar["beta1_rest"])
    mean = writer.node("Add", states["exp_avg"], apart)
    kept = writer.node("Mul", states["exp_avg_sq"], scalar["beta2"])
    square = writer.node("Mul", writer.node("Mul", gradient, gradient), scalar["beta2_rest"])
    variance = writer.node("Add", kept, square)
    root = writer.node("Add", writer.node("Sqrt", variance), scalar["epsilon"])
    change = writer.node("Mul", writer.node("Div", mean, root), scalar["rate"])
    if "decay" in scalar:
        weight = writer.node("Mul", weight, scalar["decay"])
    return writer.node("Sub", weight, change), {"exp_avg": mean, "exp_avg_sq": variance}


def _adamw_scalars(writer: GraphWriter, group: Group, updates: str) -> dict[str, str]:
    """Return what an update needs of the hyper-parameters, in float64."""
    one, hyper = writer.constant(1.0, "float64"), group.hyper
    number = writer.cast(updates, "float64")

    def rest(value: str) -> str:
        return writer.node("Sub", one, value)

    first = rest(writer.node("Pow", hyper["beta1"], number))
    second = writer.node("Sqrt", rest(writer.node("Pow", hyper["beta2"], number)))
    scalars = {
        "beta1_rest": rest(hyper["beta1"]),
        "beta2": hyper["beta2"],
        "beta2_rest": rest(hyper["beta2"]),
        "epsilon": writer.node("Mul", hyper["eps"], second),
        "rate": writer.node("Div", writer.node("Mul", hyper["lr"], second), first),
    }
    if "weight_decay" in hyper:
        scalars["decay"] = rest(writer.node("Mul", hyper["lr"], hyper["weight_decay"]))
    return scalars
