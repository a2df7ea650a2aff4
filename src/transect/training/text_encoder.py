"""Transformer encoders that tell the class of a text (A. Vaswani et al., "Attention is all you need", 2017).

Words are looked up in a table; positions are added; each layer attends, adds, normalises, goes through
two linear maps with a rectifier between, adds and normalises (the norm after the sum, as in the paper
and torch's own layer); what is left of the places becomes logits.

Word number 0 is padding: its row of the table is 0 and stays so.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

import numpy as np

from transect.domain.errors import BadInput
from transect.training.layers import Weight

NORM_EPSILON = 1e-5

# The score of a place that is not attended to. Finite, so that a text without words has a softmax,
# and small enough that its exponential is 0 beside any score of a word; float16 has it too.
HIDDEN = -30000.0


@dataclass(frozen=True, kw_only=True, slots=True)
class EncoderConfig:
    """An encoder's sizes and choices.

    `vocabulary` counts padding (0) and unknown (1); `length` is the most words of a text.
    `dropout` is of training alone. `mask`: padding is neither attended to nor pooled; without it, it
    is a word like any other. `pooling`: the mean over words, or all places side by side, which fixes
    the length. `reshape`: "published" puts heads together without moving their axis back behind
    that of the places, which mixes places when there is more than one head. `embedding`:
    "frozen" leaves the table as it is given.
    """

    vocabulary: int
    width: int
    heads: int
    layers: int
    ffn: int
    length: int
    classes: int
    dropout: float = 0.0
    positions: bool = True
    mask: bool = True
    pooling: Literal["mean", "flatten"] = "mean"
    reshape: Literal["right", "published"] = "right"
    embedding: Literal["tuned", "frozen"] = "tuned"

    def __post_init__(self) -> None:
        """Raise BadInput for sizes that make no encoder."""
        if min(self.vocabulary, self.heads, self.layers, self.ffn, self.length, self.classes) < 1 or (
            self.width % self.heads or not 0 <= self.dropout < 1
        ):
            raise BadInput(f"no encoder: sizes are at least 1, heads share the width, dropout lies in [0, 1): {self}")

    @classmethod
    def published(cls, *, vocabulary: int, heads: int = 1, layers: int = 2) -> EncoderConfig:
        """Return the published ticket distributor's (Göttingen, 2024), in its published reshape."""
        return cls(
            vocabulary=vocabulary,
            width=512,
            heads=heads,
            layers=layers,
            ffn=2048,
            length=280,
            classes=144,
            dropout=0.1,
            pooling="flatten",
            reshape="published",
        )

    @property
    def pooled(self) -> int:
        """Numbers that the last linear map takes."""
        return self.width * (self.length if self.pooling == "flatten" else 1)


def layer_weights(config: EncoderConfig) -> list[tuple[str, tuple[int, ...]]]:
    """Return names and shapes within one layer, which are those of `torch.nn.TransformerEncoderLayer`.

    Query, key and value stand one below the other in `in_proj`.
    """
    width, inner = config.width, config.ffn
    return [
        ("self_attn.in_proj_weight", (3 * width, width)),
        ("self_attn.in_proj_bias", (3 * width,)),
        ("self_attn.out_proj.weight", (width, width)),
        ("self_attn.out_proj.bias", (width,)),
        ("linear1.weight", (inner, width)),
        ("linear1.bias", (inner,)),
        ("linear2.weight", (width, inner)),
        ("linear2.bias", (width,)),
        ("norm1.weight", (width,)),
        ("norm1.bias", (width,)),
        ("norm2.weight", (width,)),
        ("norm2.bias", (width,)),
    ]


def encoder_weights(config: EncoderConfig) -> list[Weight]:
    """Return all arrays in the order in which the encoder computes."""
    tuned = config.embedding == "tuned"
    return [
        Weight("embedding.weight", (config.vocabulary, config.width), trained=tuned),
        *(
            Weight(f"layers.{layer}.{name}", shape)
            for layer in range(config.layers)
            for name, shape in layer_weights(config)
        ),
        Weight("head.weight", (config.classes, config.pooled)),
        Weight("head.bias", (config.classes,)),
    ]


def initial_weights(config: EncoderConfig, seed: int) -> dict[str, np.ndarray]:
    """Draw float64 weights as torch does its own encoder's.

    Table: standard normal. `in_proj`: uniform in +-sqrt(6 / (inputs + outputs)) (Glorot), bias 0, as
    that of `out_proj`. Other weights and biases: uniform in +-1/sqrt(inputs). Norms: 1 and 0.
    """
    generator = np.random.default_rng(seed)
    drawn: dict[str, np.ndarray] = {}
    limit = 0.0
    for weight in encoder_weights(config):
        place, _, part = weight.name.rpartition(".")
        if place == "embedding":
            array = generator.standard_normal(weight.shape)
            array[0] = 0
        elif place.endswith(("norm1", "norm2")):
            array = np.full(weight.shape, 1.0 if part == "weight" else 0.0)
        elif "self_attn" in place and part.endswith("bias"):
            array = np.zeros(weight.shape)
        else:
            if part == "in_proj_weight":
                limit = (6 / sum(weight.shape)) ** 0.5
            elif part == "weight":
                limit = prod(weight.shape[1:]) ** -0.5
            array = generator.uniform(-limit, limit, weight.shape)
        drawn[weight.name] = array
    return drawn


def position_table(length: int, width: int) -> np.ndarray:
    """Return sines and cosines of the places (length, width), rounded to float32 in any precision.

    Column 2 i is sin(place / 10000^(2 i / width)), the one after it the cosine (section 3.5 of the
    paper). The same numbers everywhere: what is computed in float64 differs in nothing but its sums.
    """
    place = np.arange(length)[:, None]
    even = np.arange(0, width, 2)
    angles = place / 10000 ** (even / width)
    table = np.empty((length, width), np.float32)
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles)[:, : width // 2]
    return table
