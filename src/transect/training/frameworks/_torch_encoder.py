"""The transformer encoder of `training.text_encoder` in torch, from its matrix products up.

Its classes stand in functions, as torch is imported there alone.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from transect.training.text_encoder import HIDDEN, NORM_EPSILON, EncoderConfig, initial_weights, position_table

if TYPE_CHECKING:
    import numpy as np
    import torch


def build_encoder(config: EncoderConfig, vectors: np.ndarray | None = None, seed: int = 0) -> torch.nn.Module:
    """Make the encoder in float32: word numbers (n, length) to logits (n, classes).

    The weights are those of `initial_weights(config, seed)`; `vectors` (vocabulary, width) take the
    place of the table. A frozen table does not require a gradient. In training mode dropout draws
    from torch's generator. Texts may be shorter than `config.length` where they are pooled by their mean.
    """
    import torch

    weights = initial_weights(config, seed)
    if vectors is not None:
        weights["embedding.weight"] = vectors
    module = make_encoder(config)
    module.load_state_dict({name: torch.tensor(array, dtype=torch.float32) for name, array in weights.items()})
    return module


def make_encoder(config: EncoderConfig) -> torch.nn.Module:
    """Make the module, whose weights are to be loaded. Its `encode` gives the last layer's vectors."""
    module: torch.nn.Module = _encoder_class()(config)
    return module


@cache
def _attention_class() -> Any:
    from torch import Tensor, empty, nn
    from torch.nn import functional

    class Attention(nn.Module):
        """Multi-head self-attention; nobody attends to the places that `hidden` (n, length) names."""

        def __init__(self, config: EncoderConfig) -> None:
            super().__init__()
            self.in_proj_weight = nn.Parameter(empty(3 * config.width, config.width))
            self.in_proj_bias = nn.Parameter(empty(3 * config.width))
            self.out_proj = nn.Linear(config.width, config.width)
            self.dropout = nn.Dropout(config.dropout)
            self._heads, self._size = config.heads, config.width // config.heads
            self._published = config.reshape == "published"

        def forward(self, x: Tensor, hidden: Tensor | None) -> Tensor:
            projected = functional.linear(x, self.in_proj_weight, self.in_proj_bias)
            query, key, value = (
                part.reshape(x.shape[0], x.shape[1], self._heads, self._size).transpose(1, 2)
                for part in projected.split(self._heads * self._size, dim=-1)
            )
            scores = query @ key.transpose(-2, -1) * self._size**-0.5
            if hidden is not None:
                scores = scores.masked_fill(hidden[:, None, None, :], HIDDEN)
            # (n, heads, length, size)
            attended = self.dropout(scores.softmax(dim=-1)) @ value
            turned = attended if self._published else attended.transpose(1, 2)
            result: Tensor = self.out_proj(turned.reshape(x.shape))
            return result

    return Attention


@cache
def _layer_class() -> Any:
    from torch import Tensor, nn
    from torch.nn import functional

    class Layer(nn.Module):
        """Attention, then two linear maps; each added to what it took, and the sum normalised."""

        def __init__(self, config: EncoderConfig) -> None:
            super().__init__()
            self.self_attn = _attention_class()(config)
            self.linear1 = nn.Linear(config.width, config.ffn)
            self.linear2 = nn.Linear(config.ffn, config.width)
            self.norm1 = nn.LayerNorm(config.width, NORM_EPSILON)
            self.norm2 = nn.LayerNorm(config.width, NORM_EPSILON)
            self.dropout = nn.Dropout(config.dropout)

        def forward(self, x: Tensor, hidden: Tensor | None) -> Tensor:
            x = self.norm1(x + self.dropout(self.self_attn(x, hidden)))
            inner = self.dropout(functional.relu(self.linear1(x)))
            result: Tensor = self.norm2(x + self.dropout(self.linear2(inner)))
            return result

    return Layer


@cache
def _encoder_class() -> Any:
    from torch import Tensor, from_numpy, nn

    class Encoder(nn.Module):
        """Word numbers (n, length), 0 padding, to logits (n, classes)."""

        def __init__(self, config: EncoderConfig) -> None:
            super().__init__()
            self.embedding = nn.Embedding(config.vocabulary, config.width, padding_idx=0)
            self.embedding.weight.requires_grad_(config.embedding == "tuned")
            self.layers = nn.ModuleList(_layer_class()(config) for _ in range(config.layers))
            self.head = nn.Linear(config.pooled, config.classes)
            self.dropout = nn.Dropout(config.dropout)
            self._mask, self._flatten = config.mask, config.pooling == "flatten"
            table = position_table(config.length, config.width) if config.positions else None
            # Not among the weights: everybody can compute it.
            positions = None if table is None else from_numpy(table)
            self.register_buffer("positions", positions, persistent=False)

        def encode(self, x: Tensor) -> Tensor:
            vectors = self.embedding(x)
            if self.positions is not None:
                vectors = vectors + self.positions[: x.shape[1]]
            vectors = self.dropout(vectors)
            hidden = x == 0 if self._mask else None
            for layer in self.layers:
                vectors = layer(vectors, hidden)
            return vectors

        def forward(self, x: Tensor) -> Tensor:
            vectors = self.encode(x)
            words = (x != 0).unsqueeze(-1).to(vectors.dtype) if self._mask else None
            if words is not None:
                vectors = vectors * words
            if self._flatten:
                pooled = vectors.flatten(1)
            elif words is None:
                pooled = vectors.mean(dim=1)
            else:
                # A text without words is a vector of zeros.
                pooled = vectors.sum(dim=1) / words.sum(dim=1).clamp(min=1)
            logits: Tensor = self.head(pooled)
            return logits

    return Encoder
