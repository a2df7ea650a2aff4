"""Vectors of words.

Leaves `vectors.npy` (float32, a row for no word, one for an unknown word, then the vocabulary's),
`vocabulary.json` and `result.json`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.axes.text import EmbeddingsCell
from transect.onnx_models.results import result, versions
from transect.text.arrays import Lists
from transect.text.lines import write_array
from transect.text.token_files import read_tokens
from transect.text.tokeniser import FIRST, UNKNOWN
from transect.text.vocabulary import chosen, numbering, occurrences, write_vocabulary

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


METHODS = {"skip-gram": skip_gram, "random": drawn}


def with_special(vectors: np.ndarray) -> np.ndarray:
    """Put the rows of no word (zeros) and of an unknown one (the mean) before those of the words."""
    mean = vectors.mean(axis=0, dtype=np.float64).astype(vectors.dtype)
    return np.concatenate([np.zeros((1, vectors.shape[1]), vectors.dtype), mean[None], vectors])


def fit(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Fit the vectors of one cell; return its result.

    Raises BadInput where the tickets have no word that is frequent enough.
    """
    EmbeddingsCell.of(**spec["cell"])
    rule = spec["rule"]
    tokens, facts = read_tokens(folders["tokens"])
    with np.load(folders["split"] / "parts.npz") as file:
        parts = {part: file[part] for part in file.files}
    fitted = np.ones(len(tokens), bool) if rule["fit_on"] == "all" else _mask(parts["train"], tokens)
    counts = occurrences(tokens, fitted, len(facts["words"]))
    words = chosen(facts["words"], counts, rule["minimum"], rule["most"])
    numbers = numbering(facts["words"], words)
    place = {word: number for number, word in enumerate(facts["words"])}
    frequencies = counts[[place[word] for word in words]]
    begin = time.monotonic()
    vectors = METHODS[rule["method"]](Sentences(tokens, fitted, numbers, words), words, frequencies, rule, spec["seed"])
    seconds = time.monotonic() - begin
    write_array(out / "vectors.npy", with_special(vectors))
    write_vocabulary(out, words, facts["stop_words"])
    trained = occurrences(tokens, _mask(parts["train"], tokens), len(facts["words"]))
    details = {
        "fit_on": rule["fit_on"],
        "tickets": int(fitted.sum()),
        "tokens": int(counts.sum()),
        "words": len(words),
        "words_not_in_training": int(np.count_nonzero(trained[numbers != UNKNOWN] == 0)),
        "covered": _covered(tokens, parts, numbers, len(facts["words"])),
        "seconds": seconds,
    }
    return result(details=details, libraries=versions("gensim", "numpy"))


def _mask(rows: np.ndarray, tokens: Lists) -> np.ndarray:
    mask = np.zeros(len(tokens), bool)
    mask[rows] = True
    return mask


def _covered(tokens: Lists, parts: dict[str, np.ndarray], numbers: np.ndarray, words: int) -> dict[str, float | None]:
    """Return the share of the words of each part that the vocabulary has; None for a part without."""
    shares: dict[str, float | None] = {}
    for part, rows in parts.items():
        # A client's tickets are some of those for devices.
        if len(rows) and not part.startswith("client-"):
            counts = occurrences(tokens, _mask(rows, tokens), words)
            known, total = int(counts[numbers != UNKNOWN].sum()), int(counts.sum())
            shares[part] = known / total if total else None
    return shares
