"""The transformer encoder of `training.text_encoder` in numpy, forwards and backwards.

Each part returns its result and a function that takes the result's gradient, writes those of its
weights into their arrays, and returns that of its input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from transect.training.losses import LOSSES
from transect.training.text_encoder import HIDDEN, NORM_EPSILON, EncoderConfig, position_table
from transect.training.workloads import Parameters

Array = np.ndarray
Arrays = Mapping[str, Array]
Back = Callable[[Array], Array]


def _linear(x: Array, name: str, joint: str, weights: Arrays, gradients: Arrays) -> tuple[Array, Back]:
    """x W^T + b over the last axis; `joint` stands between the name and `weight` or `bias`."""
    weight, bias = (f"{name}{joint}{part}" for part in ("weight", "bias"))

    def back(g: Array) -> Array:
        rows = g.reshape(-1, g.shape[-1])
        gradients[weight][...] = rows.T @ x.reshape(-1, x.shape[-1])
        gradients[bias][...] = rows.sum(axis=0)
        passed: Array = g @ weights[weight]
        return passed

    return x @ weights[weight].T + weights[bias], back


def _norm(x: Array, name: str, weights: Arrays, gradients: Arrays) -> tuple[Array, Back]:
    """Normalise each vector by its own mean and population variance (J. L. Ba et al., 2016)."""
    weight, bias = f"{name}.weight", f"{name}.bias"
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = np.square(centred).mean(axis=-1, keepdims=True)
    scale = 1 / np.sqrt(variance + x.dtype.type(NORM_EPSILON))
    normal = centred * scale

    def back(g: Array) -> Array:
        places = tuple(range(g.ndim - 1))
        gradients[weight][...] = (g * normal).sum(axis=places)
        gradients[bias][...] = g.sum(axis=places)
        inner = g * weights[weight]
        along = normal * (inner * normal).mean(axis=-1, keepdims=True)
        passed: Array = scale * (inner - inner.mean(axis=-1, keepdims=True) - along)
        return passed

    return normal * weights[weight] + weights[bias], back


def _softmax(scores: Array) -> Array:
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares: Array = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return shares


def _attention(
    x: Array, hidden: Array | None, config: EncoderConfig, name: str, weights: Arrays, gradients: Arrays
) -> tuple[Array, Back]:
    """Multi-head self-attention on (n, length, width)."""
    n, length, width = x.shape
    heads, size = config.heads, width // config.heads
    factor = size**-0.5
    projected, back_in = _linear(x, f"{name}.in_proj", "_", weights, gradients)
    query, key, value = projected.reshape(n, length, 3, heads, size).transpose(2, 0, 3, 1, 4)
    scores = query @ key.swapaxes(-1, -2) * factor
    unseen = None if hidden is None else hidden[:, None, None, :]
    if unseen is not None:
        np.copyto(scores, HIDDEN, where=unseen)
    shares = _softmax(scores)
    attended = shares @ value
    published = config.reshape == "published"
    joined = (attended if published else attended.swapaxes(1, 2)).reshape(x.shape)
    result, back_out = _linear(joined, f"{name}.out_proj", ".", weights, gradients)

    def back(g: Array) -> Array:
        g = back_out(g)
        shape = attended.shape
        g = g.reshape(shape) if published else g.reshape(n, length, heads, size).swapaxes(1, 2)
        of_shares = g @ value.swapaxes(-1, -2)
        of_scores = shares * (of_shares - (of_shares * shares).sum(axis=-1, keepdims=True))
        if unseen is not None:
            np.copyto(of_scores, 0, where=unseen)
        of_scores *= factor
        parts = np.stack([of_scores @ key, of_scores.swapaxes(-1, -2) @ query, shares.swapaxes(-1, -2) @ g])
        return back_in(parts.transpose(1, 3, 0, 2, 4).reshape(n, length, 3 * width))

    return result, back


def _feed_forward(x: Array, name: str, weights: Arrays, gradients: Arrays) -> tuple[Array, Back]:
    inner, back_inner = _linear(x, f"{name}linear1", ".", weights, gradients)
    kept = np.maximum(inner, 0)
    result, back_outer = _linear(kept, f"{name}linear2", ".", weights, gradients)
    return result, lambda g: back_inner(back_outer(g) * (inner > 0))


def _layer(
    x: Array, hidden: Array | None, config: EncoderConfig, name: str, weights: Arrays, gradients: Arrays
) -> tuple[Array, Back]:
    attended, back_attention = _attention(x, hidden, config, f"{name}self_attn", weights, gradients)
    y, back_first = _norm(x + attended, f"{name}norm1", weights, gradients)
    changed, back_forward = _feed_forward(y, name, weights, gradients)
    z, back_second = _norm(y + changed, f"{name}norm2", weights, gradients)

    def back(g: Array) -> Array:
        g = back_second(g)
        g = back_first(g + back_forward(g))
        return g + back_attention(g)

    return z, back


def _pool(vectors: Array, words: Array | None, flatten: bool) -> tuple[Array, Back]:
    """Side by side or their mean; `words` (n, length, 1) are 1 where there is a word."""
    shape = vectors.shape
    kept = vectors if words is None else vectors * words
    if flatten:
        pooled = kept.reshape(len(kept), -1)

        def spread(g: Array) -> Array:
            return g.reshape(shape)
    else:
        count = shape[1] if words is None else np.maximum(words.sum(axis=1), 1)
        pooled = kept.sum(axis=1) / count

        def spread(g: Array) -> Array:
            return np.broadcast_to((g / count)[:, None, :], shape)

    return pooled, (spread if words is None else lambda g: spread(g) * words)


class EncoderComputation:
    """An encoder bound to arrays of weights and gradients, by their names."""

    def __init__(self, config: EncoderConfig, rule: Parameters, weights: Arrays, gradients: Arrays) -> None:
        self._config, self._rule, self._loss = config, rule, LOSSES.get(rule.loss)
        self._weights, self._gradients = weights, gradients
        table = position_table(config.length, config.width) if config.positions else None
        self._positions = None if table is None else table.astype(weights["head.weight"].dtype)

    def loss(self, x: Array, y: Array) -> float:
        """Return the mean loss; gradients land in their arrays."""
        outputs, back = self._forward(x)
        loss, gradient = self._loss.value_and_gradient(self._rule, outputs, y)
        back(gradient)
        return loss

    def outputs(self, x: Array) -> Array:
        """Return the logits (n, classes)."""
        return self._forward(x)[0]

    def _forward(self, x: Array) -> tuple[Array, Callable[[Array], None]]:
        config, weights, gradients = self._config, self._weights, self._gradients
        vectors = weights["embedding.weight"][x]
        if self._positions is not None:
            vectors = vectors + self._positions[: x.shape[1]]
        hidden = x == 0 if config.mask else None
        backs = []
        for layer in range(config.layers):
            vectors, back = _layer(vectors, hidden, config, f"layers.{layer}.", weights, gradients)
            backs.append(back)
        words = (x != 0)[..., None].astype(vectors.dtype) if config.mask else None
        pooled, back_pool = _pool(vectors, words, config.pooling == "flatten")
        logits, back_head = _linear(pooled, "head", ".", weights, gradients)

        def backward(g: Array) -> None:
            g = back_pool(back_head(g))
            for back in reversed(backs):
                g = back(g)
            if "embedding.weight" in gradients:
                _add_rows(gradients["embedding.weight"], x, g)

        return logits, backward


def _add_rows(table: Array, x: Array, g: Array) -> None:
    """Fill the table's gradient: the sum over the places of each word, and none for padding."""
    numbers = x.ravel()
    order = np.argsort(numbers, kind="stable")
    words, starts = np.unique(numbers[order], return_index=True)
    table[...] = 0
    table[words] = np.add.reduceat(g.reshape(-1, g.shape[-1])[order], starts, axis=0)
    table[0] = 0
