"""Vectors of words: Word2Vec with skip-gram (Mikolov et al., 2013), or drawn numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from transect.text.arrays import Lists
from transect.text.tokeniser import FIRST, UNKNOWN

# gensim cuts sentences that are longer, without a word.
MAX_SENTENCE = 10_000
MAX_SEED = 1 << 32


class Sentences:
    """The texts that are marked, as lists of the vocabulary's words; read anew at each pass."""

    def __init__(self, tokens: Lists, of: np.ndarray, numbers: np.ndarray, words: list[str]) -> None:
        """`of` (texts,) bool; `numbers` (corpus' words,) as `vocabulary.numbering` returns them."""
        self.tokens, self.of, self.numbers = tokens, of, numbers
        self._words = np.array(words, object)

    def __iter__(self) -> Iterator[list[str]]:
        """Yield each text's words without those that the vocabulary lacks."""
        for piece in self.tokens.pieces():
            numbers = self.numbers[piece.values]
            marked = self.of[piece.first : piece.first + len(piece.starts) - 1]
            stays = (numbers != UNKNOWN) & np.repeat(marked, piece.lengths)
            ends = np.concatenate([[0], np.cumsum(stays)])[piece.starts]
            words = self._words[numbers[stays] - FIRST].tolist()
            for text in np.flatnonzero(np.diff(ends)).tolist():
                for begin in range(int(ends[text]), int(ends[text + 1]), MAX_SENTENCE):
                    yield words[begin : min(begin + MAX_SENTENCE, int(ends[text + 1]))]


def skip_gram(
    sentences: Sentences, words: list[str], counts: np.ndarray, rule: dict[str, Any], seed: int
) -> np.ndarray:
    """Fit Word2Vec: (words, width) float32. `counts` (words,) as the sentences have them.

    gensim's own settings but for those of the rule: 5 negative samples, rate from 0.025 down,
    frequent words left out with the probability of sample 1e-3. One thread, so that the same
    sentences and seed give the same vectors.
    """
    from gensim.models import Word2Vec

    model = Word2Vec(
        vector_size=rule["width"], window=rule["window"], sg=1, workers=1, min_count=1, seed=seed % MAX_SEED
    )
    model.build_vocab_from_freq(dict(zip(words, counts.tolist(), strict=True)))
    # The rate falls with the words that are read: texts may be empty, sentences parts of them.
    model.train(sentences, total_words=int(counts.sum()), epochs=rule["epochs"])
    return np.asarray(model.wv[words], np.float32)


def drawn(sentences: Sentences, words: list[str], counts: np.ndarray, rule: dict[str, Any], seed: int) -> np.ndarray:
    """Draw Gaussian numbers so that a vector is of length 1 on average: (words, width) float32."""
    generator = np.random.default_rng(seed)
    shape = (len(words), rule["width"])
    return generator.standard_normal(shape, np.float32) / np.float32(np.sqrt(rule["width"]))


METHODS = {"skip-gram": skip_gram, "drawn": drawn}


def with_special(vectors: np.ndarray) -> np.ndarray:
    """Put the rows of no word (zeros) and of an unknown one (the mean) before those of the words."""
    mean = vectors.mean(axis=0, dtype=np.float64).astype(vectors.dtype)
    return np.concatenate([np.zeros((1, vectors.shape[1]), vectors.dtype), mean[None], vectors])
