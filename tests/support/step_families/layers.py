"""torch.nn: what people write around its layers."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

from step_families.case import Example, add, classified

# What the error says of forwards that are not exported.
REFUSED = {
    "float(x.shape[0])": "without `int` and `float` around it",
    "int(x.shape[0])": "without `int` and `float` around it",
}
Forward = Callable[[Any, Any], Any]


def _between(forward: Forward, *, make: Callable[[], Any] | None = None, rows: int = 3) -> Example:
    """Return a module that has `forward(part, x)` between two linear layers, x of shape (batch, 6)."""
    import torch
    from torch import nn

    class Between(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(4, 6), nn.Linear(6, 5)
            self.part = make() if make else nn.Identity()

        def forward(self, x: Any) -> Any:
            return self.last(forward(self.part, self.first(x)))

    return classified(Between(), torch.randn(rows, 4))


def _sequences(forward: Forward, make: Callable[[], Any], *, dynamic: bool = False) -> Example:
    """Return a module over (batch, time, 8) of which the loss takes a class at each time."""
    import torch
    from torch import nn

    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part, self.last = make(), nn.Linear(8, 5)

        def forward(self, x: Any) -> Any:
            return self.last(forward(self.part, x))

    def loss(outputs: Any, y: Any) -> Any:
        return nn.functional.cross_entropy(outputs.flatten(0, 1), y.flatten())

    axes = {"x": {0: "batch", 1: "time"}, "y": {0: "batch", 1: "time"}} if dynamic else None
    return Example(
        module=Tagger(), loss=loss, data=(torch.randn(3, 5, 8), torch.arange(15).reshape(3, 5) % 5), dynamic=axes
    )


def _square(x: Any) -> Any:
    from torch import nn

    return nn.Transformer.generate_square_subsequent_mask(x.shape[1])


def _encoder() -> Any:
    from torch import nn

    return nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), 2)


def _transformer() -> Any:
    from torch import nn

    return nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True)


def _positions(part: Any, x: Any) -> Any:
    import torch

    place = torch.arange(x.shape[1], dtype=x.dtype)[None, :, None]
    return part(x + torch.sin(place / x.shape[1] ** 0.5))


def _pooled(part: Any, x: Any) -> Any:
    y = part(x.transpose(1, 2))
    return x + (y * y.softmax(-1)).sum(-1)[:, None, :]


def _halves(part: Any, x: Any) -> Any:
    half = x.shape[1] // 2
    return part(x) + x[:, half:].mean(1, keepdim=True) - x[:, :half].mean(1, keepdim=True)


def _linear() -> Any:
    from torch import nn

    return nn.Linear(8, 8)


def _convolution() -> Any:
    from torch import nn

    return nn.Conv1d(8, 8, 3, padding=1)


def _bag(mode: str, weighted: bool = False) -> Example:
    import torch
    from torch import nn

    class Bag(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bag, self.last = nn.EmbeddingBag(20, 6, mode=mode), nn.Linear(6, 5)
            self.weights = nn.Parameter(torch.rand(4)) if weighted else None

        def forward(self, x: Any) -> Any:
            more = {} if self.weights is None else {"per_sample_weights": self.weights.expand(x.shape[0], 4)}
            return self.last(self.bag(x, **more))

    return classified(Bag(), torch.randint(0, 20, (3, 4)))


def _images(forward: Forward, make: Callable[[], Any] | None = None) -> Example:
    import torch
    from torch import nn

    class Images(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(4, 5)
            self.part = make() if make else nn.Linear(4, 6)

        def forward(self, x: Any) -> Any:
            return self.last(forward(self.part, self.first(x)).mean((2, 3)))

    return classified(Images(), torch.randn(3, 3, 8, 8))


def _spatial(part: Any, x: Any, **options: Any) -> Any:
    """Return what a spatial transformer makes (Jaderberg and others, arXiv:1506.02025)."""
    import torch
    from torch.nn import functional

    start = torch.tensor([1.0, 0.1, 0.05, -0.1, 0.9, 0.02])
    theta = (start + 0.1 * part(x.mean((2, 3))).tanh()).view(-1, 2, 3)
    grid = functional.affine_grid(theta, list(x.shape), align_corners=False)
    return functional.grid_sample(x, grid, align_corners=False, **options)


def _channels_last(part: Any, x: Any) -> Any:
    import torch

    normal = torch.nn.functional.layer_norm(x.permute(0, 2, 3, 1), (4,)).permute(0, 3, 1, 2)
    return torch.nn.functional.adaptive_avg_pool2d(normal, 1)


def _cached() -> Any:
    import torch
    from torch import nn

    class Cached(nn.Module):
        """Keeps places by length, as models of text do."""

        def __init__(self) -> None:
            super().__init__()
            self.kept: dict[str, Any] = {"places": OrderedDict()}

        def forward(self, x: Any) -> Any:
            places = self.kept["places"]
            if x.shape[1] not in places:
                places[x.shape[1]] = torch.arange(x.shape[1]).to(x.dtype)
            return x + places[x.shape[1]]

    return Cached()


def _masked(x: Any) -> Any:
    mask = x.new_zeros(6, 6)
    mask[1:3, :2] = 1
    mask[-2:] = x[0]
    return mask


def _identity() -> Any:
    from torch import nn

    return nn.Identity()


def _cumulative() -> Any:
    from torch import nn

    return nn.BatchNorm2d(4, momentum=None)


def _triplets() -> Example:
    import torch
    from torch import nn

    def loss(outputs: Any, y: Any) -> Any:
        far = torch.cdist(outputs, outputs)
        same = y[:, None] == y[None]
        return torch.where(same, far, (1 - far).relu()).mean()

    return Example(module=nn.Linear(4, 6), loss=loss, data=(torch.randn(4, 4), torch.tensor([0, 1, 0, 1])))


def _scaled_loss(scale: Callable[[Any], Any]) -> Example:
    import torch
    from torch import nn

    def loss(outputs: Any, y: Any) -> Any:
        return nn.functional.cross_entropy(outputs, y, reduction="sum") / scale(outputs)

    return Example(module=nn.Linear(4, 5), loss=loss, data=(torch.randn(3, 4), torch.arange(3)))


def _optimised(make: Callable[[Any, list[dict[str, Any]]], Any]) -> Example:
    """Return a module whose weights decay, but not its norm and its biases: two parameter groups."""
    import torch
    from torch import nn

    def optimiser(module: Any) -> Any:
        decayed = [p for p in module.parameters() if p.dim() > 1]
        others = [p for p in module.parameters() if p.dim() == 1]
        return make(torch.optim, [{"params": decayed, "weight_decay": 0.1}, {"params": others}])

    module = nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.Tanh(), nn.Linear(6, 5))
    example = classified(module, torch.randn(3, 4))
    return dataclasses.replace(example, optimiser=optimiser)


def _lamb(_: Any, groups: list[dict[str, Any]]) -> Any:
    from transect.portable_step.lamb import Lamb

    return Lamb(groups, lr=0.01)


OPTIMISERS: dict[str, Callable[[Any, list[dict[str, Any]]], Any]] = {
    "sgd": lambda optim, groups: optim.SGD(groups, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda optim, groups: optim.Adam(groups, lr=0.01),
    "adamw": lambda optim, groups: optim.AdamW(groups, lr=0.01, weight_decay=0.0),
    "rmsprop": lambda optim, groups: optim.RMSprop(groups, lr=0.01),
    "rmsprop, momentum": lambda optim, groups: optim.RMSprop(groups, lr=0.01, momentum=0.9),
    "adagrad": lambda optim, groups: optim.Adagrad(groups, lr=0.01),
    "adagrad, lr_decay": lambda optim, groups: optim.Adagrad(
        groups, lr=0.01, lr_decay=0.1, initial_accumulator_value=0.1
    ),
    "lamb": _lamb,
}


def _layers() -> None:
    import math

    def torch() -> Any:
        import torch

        return torch

    forwards: dict[str, Forward] = {
        "len(x)": lambda _, x: x / len(x),
        "float(x.shape[0])": lambda _, x: x / float(x.shape[0]),
        "int(x.shape[0])": lambda _, x: x / int(x.shape[0]),
        "math.sqrt(x.shape[0])": lambda _, x: x / math.sqrt(x.shape[0]),
        "x.shape[0] ** 0.5": lambda _, x: x / x.shape[0] ** 0.5,
        "x[0]": lambda _, x: x - x[0],
        "x[-1]": lambda _, x: x - x[-1],
        "x[1:]": lambda _, x: x - x[1:].mean(0),
        "x.size(0) in reshape": lambda _, x: x.reshape(x.size(0), 2, 3).flip(1).reshape(x.size(0), -1),
        "cdist": lambda _, x: x + torch().cdist(x, x).mean(1, keepdim=True),
        "cdist, p=1": lambda _, x: x + torch().cdist(x, x, p=1).mean(1, keepdim=True),
        "take_along_dim": lambda _, x: torch().take_along_dim(x, x.argsort(1), 1),
        "x[arange(n)[:, None], i]": lambda _, x: x[torch().arange(x.shape[0])[:, None], x.argsort(1)],
        "x[arange(len(x)), i]": lambda _, x: x + x[torch().arange(len(x)), x.argmax(1)][:, None],
        "cov": lambda _, x: x @ torch().cov(x.T),
        "corrcoef": lambda _, x: x @ torch().corrcoef(x.T),
        "topk, sort": lambda _, x: x + x.topk(2, 1)[0].sum(1, keepdim=True) + x.sort(1)[0],
        "cosine similarity of rows": lambda _, x: (
            torch().nn.functional.cosine_similarity(x[:, None], x[None], dim=-1) @ x
        ),
        "eye(len(x))": lambda _, x: x + torch().eye(len(x)) @ x,
        "enumerate(children)": lambda part, x: part(x),
        "cummax": lambda _, x: x.cummax(1)[0],
        "cummax from nothing": lambda _, x: x.gather(1, x.masked_fill(x < 0.2, -math.inf).cummax(1)[1]),
        "median": lambda _, x: x - x.median(1, keepdim=True)[0],
        "median of the batch": lambda _, x: x - x.median(0, keepdim=True)[0],
        "kthvalue": lambda _, x: x - x.kthvalue(2, 1, keepdim=True)[0],
        "lgamma": lambda _, x: torch().lgamma(x.exp() + 1),
        "lgamma, digamma below 0": lambda _, x: (x - 3.3).lgamma() + torch().digamma(x * 2) / 9,
        "cummin": lambda _, x: x.cummin(1)[0],
        "median of all": lambda _, x: x - x.median(),
        "quantile": lambda _, x: x - x.quantile(0.3, dim=1, keepdim=True),
        "diagonal": lambda _, x: x + (x.T @ x).diagonal(1).sum() + torch().diag(x.T @ x),
        "a number into a part": lambda _, x: x @ _masked(x),
        "atleast_2d": lambda _, x: torch().atleast_2d(x).tanh(),
        "fake_quantize": lambda _, x: torch().fake_quantize_per_tensor_affine(x, 0.1, 3, -8, 7),
        "fake_quantize by tensors": lambda _, x: torch().fake_quantize_per_tensor_affine(
            x, torch().tensor(0.1), torch().tensor(3, dtype=torch().int32), -8, 7
        ),
    }
    for name, forward in forwards.items():
        add("torch", name, partial(_between, forward), REFUSED.get(name, ""))
    add("torch", "loss / len(outputs)", partial(_scaled_loss, lambda o: len(o)))
    add("torch", "loss / outputs.size(0)", partial(_scaled_loss, lambda o: o.size(0)))
    add("torch", "loss by cdist", _triplets)
    add("torch", "TransformerEncoder, mask", partial(_sequences, lambda p, x: p(x, mask=_square(x)), _encoder))
    add(
        "torch",
        "TransformerEncoder, mask and is_causal",
        partial(_sequences, lambda p, x: p(x, mask=_square(x), is_causal=True), _encoder),
    )
    add(
        "torch",
        "TransformerEncoder, padding mask",
        partial(_sequences, lambda p, x: p(x, src_key_padding_mask=x[..., 0] > 1.5), _encoder),
    )
    add(
        "torch",
        "Transformer, both masks",
        partial(_sequences, lambda p, x: p(x, x, src_mask=_square(x), tgt_mask=_square(x)), _transformer),
    )
    add(
        "torch",
        "batch and time: causal encoder",
        partial(_sequences, lambda p, x: p(x, mask=_square(x)), _encoder, dynamic=True),
    )
    add("torch", "batch and time: positions", partial(_sequences, _positions, _encoder, dynamic=True))
    add(
        "torch",
        "batch and time: softmax pooling",
        partial(_sequences, _pooled, _convolution, dynamic=True),
        "Eq(time, 5)",
    )
    add("torch", "batch and time: halves", partial(_sequences, _halves, _linear, dynamic=True))
    add("torch", "a cache in a dictionary of dictionaries", partial(_between, lambda part, x: part(x), make=_cached))
    for mode in ("sum", "mean", "max"):
        add("torch", f"EmbeddingBag, {mode}", partial(_bag, mode))
    add("torch", "EmbeddingBag, weights", partial(_bag, "sum", True))
    add("torch", "BatchNorm2d, momentum=None", partial(_images, lambda p, x: p(x), _cumulative))
    for name, make in OPTIMISERS.items():
        add("torch", f"optimiser {name}", partial(_optimised, make))
    add("torch", "pooling of channels that lie last", partial(_images, _channels_last, _identity))
    add("torch", "grid_sample, affine_grid", partial(_images, _spatial))
    for more in ({"padding_mode": "border"}, {"padding_mode": "reflection"}):
        add("torch", f"grid_sample, {more}", partial(_images, partial(_spatial, **more)))


_layers()
