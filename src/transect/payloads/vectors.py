"""Vectors of words.

Leaves `vectors.npy` (float32, a row for no word, one for an unknown word, then the vocabulary's),
`vocabulary.json` and `result.json`.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.axes.text import VectorsCell
from transect.onnx_models.results import result, versions
from transect.text.arrays import Lists
from transect.text.lines import write_array
from transect.text.token_files import read_tokens
from transect.text.tokeniser import UNKNOWN
from transect.text.vocabulary import chosen, numbering, occurrences, write_vocabulary
from transect.text.word_vectors import METHODS, Sentences, with_special


def fit(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Fit the vectors of one cell; return its result.

    Raises BadInput where the tickets have no word that is frequent enough.
    """
    VectorsCell.of(**spec["cell"])
    rule = spec["rule"]
    tokens, facts = read_tokens(folders["tokens"])
    with np.load(folders["partition"] / "parts.npz") as file:
        parts = {part: file[part] for part in file.files}
    fitted = np.ones(len(tokens), bool) if rule["fit"] == "all" else _mask(parts["train"], tokens)
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
        "fit": rule["fit"],
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
