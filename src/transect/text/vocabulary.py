"""The words that have numbers, and how they are chosen from a corpus."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.errors import BadInput
from transect.domain.files import write_atomic
from transect.text.arrays import Lists
from transect.text.token_files import TOO_LONG
from transect.text.tokeniser import FIRST, UNKNOWN

VOCABULARY = "vocabulary.json"


def occurrences(tokens: Lists, of: np.ndarray, words: int) -> np.ndarray:
    """Count each word in the texts that `of` (texts,) bool marks: (words,) int64."""
    counts = np.zeros(words, np.int64)
    for piece in tokens.pieces():
        marked = of[piece.first : piece.first + len(piece.starts) - 1]
        found = piece.values if marked.all() else piece.values[np.repeat(marked, piece.lengths)]
        counts += np.bincount(found, minlength=words)
    return counts


def chosen(words: Sequence[str], counts: np.ndarray, minimum: int, most: int) -> list[str]:
    """Return the `most` frequent words that occur `minimum` times or more, in that order.

    Of equally frequent ones the first by alphabet: the order in which words came to be listed knows of
    texts that are not counted. Raises BadInput where no word occurs often enough.
    """
    often = [number for number in np.flatnonzero(counts >= minimum).tolist() if words[number] != TOO_LONG]
    often.sort(key=lambda number: (-counts[number], words[number]))
    if not often:
        raise BadInput(
            f"no word occurs {minimum} times in the {int(counts.sum())} of the tickets that vectors are "
            f"fitted to: expected at least one (tickets.embeddings, `minimum`)"
        )
    return [words[number] for number in often[:most]]


def numbering(words: Sequence[str], vocabulary: Sequence[str]) -> np.ndarray:
    """Return the number in the vocabulary of each of a corpus' words: (words,) int32."""
    known = {word: number for number, word in enumerate(vocabulary, FIRST)}
    return np.array([known.get(word, UNKNOWN) for word in words], np.int32)


def write_vocabulary(out: Path, words: list[str], stop_words: list[str]) -> None:
    """Write what a tokeniser in any language has to know of the vocabulary.

    `letters` is the version of Unicode that says what a letter is.
    """
    facts = {"words": words, "stop_words": stop_words, "letters": unicodedata.unidata_version}
    write_atomic(out / VOCABULARY, json.dumps(facts, ensure_ascii=False, indent=0) + "\n")


def read_vocabulary(folder: Path) -> dict[str, Any]:
    """Return `words` (from number `FIRST` on), `stop_words` and `letters`."""
    facts: dict[str, Any] = json.loads((folder / VOCABULARY).read_text(encoding="utf-8"))
    return facts
