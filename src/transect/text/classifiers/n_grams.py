"""A bag of words and pairs of neighbours, as fastText has it.

A. Joulin et al., "Bag of tricks for efficient text classification", arXiv:1607.01759: the mean of
embeddings of words and of hashed n-grams, all of them trained, and a softmax.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from transect.text.classifiers import CLASSIFIERS, MODEL, Fitted, Task
from transect.text.classifiers._graph import Pairs, write_table_graph
from transect.text.classifiers._options import TrainingOptions, WithTraining, options_of

if TYPE_CHECKING:
    import torch

# As fastText mixes a word's hash with the next one's.
_FACTOR = 116049371


class _Options(TrainingOptions):
    learning_rate: float = Field(default=1e-2, gt=0)
    width: int = Field(default=32, ge=1)
    # Rows for pairs of words, which share them by a hash; 0: words alone.
    buckets: int = Field(default=16384, ge=0)


@CLASSIFIERS.register("n-grams")
class NGrams(WithTraining):
    """A mean of trained embeddings of words and of pairs of neighbours, as fastText has it.

    Options besides those of a training: `width` of the embeddings, `buckets` for pairs of words.
    """

    environment = "torch"
    exports = True
    options = _Options

    def fit(self, task: Task) -> Fitted:
        """Train, predict, and write the graph."""
        from transect.text.classifiers._training import train

        options = options_of(_Options, task.options, task.hyperparameters)
        module = _module(len(task.vectors), options, len(task.classes), task.seed)
        fitted = train(lambda: module, task, options, cuts=True)
        state = {name: tensor.double().cpu().numpy() for name, tensor in module.state_dict().items()}
        # The mean of rows times a matrix is the mean of the rows of their product.
        write_table_graph(
            task.out / MODEL,
            state["table.weight"] @ state["head.weight"].T,
            state["head.bias"],
            pairs=Pairs(len(task.vectors), options.buckets, _FACTOR) if options.buckets else None,
        )
        return fitted


def _module(words: int, options: _Options, classes: int, seed: int) -> torch.nn.Module:
    """Make the module; a row of the table for each word, then one for each bucket."""
    import torch
    from torch import nn

    class Bag(nn.Module):
        """Word numbers (n, length), 0 padding, to logits (n, classes)."""

        def __init__(self) -> None:
            super().__init__()
            rows = words + options.buckets
            self.table = nn.EmbeddingBag(rows, options.width, mode="mean", padding_idx=0)
            self.head = nn.Linear(options.width, classes)
            generator = np.random.default_rng([seed, words])
            drawn = generator.uniform(-1, 1, (rows, options.width)) / options.width
            drawn[0] = 0
            with torch.no_grad():
                self.table.weight.copy_(torch.from_numpy(drawn))
                nn.init.zeros_(self.head.weight)
                nn.init.zeros_(self.head.bias)

        def forward(self, x: Any) -> Any:
            if options.buckets:
                pairs = (x[:, :-1] * _FACTOR + x[:, 1:]) % options.buckets + words
                x = torch.cat([x, pairs * (x[:, 1:] != 0)], dim=1)
            return self.head(self.table(x))

    return Bag()
