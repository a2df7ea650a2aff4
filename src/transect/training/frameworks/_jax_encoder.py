"""The transformer encoder of `training.text_encoder` in JAX: a pure function of the weights."""

from __future__ import annotations

from typing import Any

from transect.training.text_encoder import HIDDEN, NORM_EPSILON, EncoderConfig, position_table


class EncoderNetwork:
    """Word numbers (n, length), 0 padding, to logits (n, classes).

    Matrix products are in the dtype `arithmetic`; sums, norms and softmax in that of the weights.
    """

    def __init__(self, config: EncoderConfig, arithmetic: str) -> None:
        self._config, self._arithmetic = config, arithmetic

    def __call__(self, weights: dict[str, Any], x: Any, training: bool) -> tuple[Any, dict[str, Any]]:
        """Return the logits, and that nothing besides trained weights changes; no training differs from prediction."""
        from jax import numpy

        config, table = self._config, weights["embedding.weight"]
        # The row of padding stays as it is.
        looked_up = numpy.where((x == 0)[..., None], _constant(table[0]), table[x])
        if config.positions:
            looked_up = looked_up + position_table(config.length, config.width)[: x.shape[1]].astype(table.dtype)
        hidden = x == 0 if config.mask else None
        for layer in range(config.layers):
            looked_up = self._layer(weights, f"layers.{layer}.", looked_up, hidden)
        words = (x != 0)[..., None].astype(table.dtype) if config.mask else None
        kept = looked_up if words is None else looked_up * words
        if config.pooling == "flatten":
            pooled = kept.reshape(len(x), -1)
        else:
            # A text without words is a vector of zeros.
            count = x.shape[1] if words is None else numpy.maximum(words.sum(1), 1)
            pooled = kept.sum(1) / count
        return self._linear(weights, "head.", pooled), {}

    def _product(self, a: Any, b: Any) -> Any:
        return (a.astype(self._arithmetic) @ b.astype(self._arithmetic)).astype(a.dtype)

    def _linear(self, weights: dict[str, Any], name: str, x: Any) -> Any:
        """Return x W^T + b; `name` is what stands before `weight` and `bias`."""
        return self._product(x, weights[f"{name}weight"].T) + weights[f"{name}bias"]

    def _layer(self, weights: dict[str, Any], name: str, x: Any, hidden: Any) -> Any:
        import jax

        x = _norm(weights, f"{name}norm1.", x + self._attention(weights, f"{name}self_attn.", x, hidden))
        inner = jax.nn.relu(self._linear(weights, f"{name}linear1.", x))
        return _norm(weights, f"{name}norm2.", x + self._linear(weights, f"{name}linear2.", inner))

    def _attention(self, weights: dict[str, Any], name: str, x: Any, hidden: Any) -> Any:
        """Multi-head self-attention; nobody attends to the places that `hidden` (n, length) names."""
        import jax

        config = self._config
        heads, size = config.heads, config.width // config.heads
        projected = self._linear(weights, f"{name}in_proj_", x).reshape(*x.shape[:2], 3, heads, size)
        query, key, value = projected.transpose(2, 0, 3, 1, 4)
        scores = self._product(query, key.swapaxes(-1, -2)) * size**-0.5
        if hidden is not None:
            scores = jax.numpy.where(hidden[:, None, None, :], HIDDEN, scores)
        # (n, heads, length, size)
        attended = self._product(jax.nn.softmax(scores, -1), value)
        turned = attended if config.reshape == "published" else attended.swapaxes(1, 2)
        return self._linear(weights, f"{name}out_proj.", turned.reshape(x.shape))


def _constant(row: Any) -> Any:
    from jax import lax

    return lax.stop_gradient(row)


def _norm(weights: dict[str, Any], name: str, x: Any) -> Any:
    """Normalise each vector by its own mean and population variance."""
    from jax import lax

    centred = x - x.mean(-1, keepdims=True)
    variance = (centred**2).mean(-1, keepdims=True)
    return centred * lax.rsqrt(variance + NORM_EPSILON) * weights[f"{name}weight"] + weights[f"{name}bias"]
