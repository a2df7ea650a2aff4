"""Texts become words, and words numbers: the same here as in the graph that predicts.

A code point below `LETTERS_END` that `str.isalpha` is a letter, and stands for its lower case; every
other one parts words. Texts are taken as they are: who reads them has brought them to NFC.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

# Above are scripts that do not part words by spaces.
LETTERS_END = 0x3000
# Letters of the longest word; a longer one is unknown, whatever the vocabulary holds.
MAX_LETTERS = 40
# Numbers of: no word, a word that the vocabulary lacks, the vocabulary's first word.
PADDING, UNKNOWN, FIRST = 0, 1, 2

_SPACE = ord(" ")


class Cut(NamedTuple):
    """The words of several texts, one after another, and how many each has: (texts,) int64."""

    words: list[str]
    counts: np.ndarray


@cache
def letter_table() -> np.ndarray:
    """Return the letter that each code point stands for, or 0: (`LETTERS_END`,) int32.

    Which ones are letters depends on Python's version of Unicode (`unicodedata.unidata_version`).
    """
    return np.array([_letter(chr(code)) for code in range(LETTERS_END)], np.int32)


def _letter(character: str) -> int:
    if not character.isalpha():
        return 0
    lower = character.lower()
    return ord(lower if len(lower) == 1 and ord(lower) < LETTERS_END else character)


@cache
def _spaced() -> np.ndarray:
    table = np.append(letter_table(), 0).astype("<u4")
    return np.where(table == 0, np.uint32(_SPACE), table)


@cache
def _spaced_bytes() -> bytes:
    """Return the part of the table for ASCII, as `bytes.translate` takes it."""
    return _spaced()[:256].astype(np.uint8).tobytes()


def _letters_and_spaces(text: str) -> tuple[str, np.ndarray]:
    if text.isascii():
        # Most texts are: a byte for each code point is a fourth of the memory to go through.
        raw = text.encode("ascii").translate(_spaced_bytes())
        return raw.decode("ascii"), np.frombuffer(raw, np.uint8) != _SPACE
    # Half a surrogate pair is no letter, and no error either.
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    letters = np.take(_spaced(), codes, mode="clip")
    return letters.tobytes().decode("utf-32-le"), letters != _SPACE


def cut(texts: Sequence[str]) -> Cut:
    """Cut texts into words; all at once, since what a call costs would count for short ones."""
    # Behind each text stands a space, so that no word goes over its end.
    spaced, found = _letters_and_spaces("".join([f"{text} " for text in texts]))
    # A word ends where a space follows a letter.
    ends = np.flatnonzero(found[:-1] & ~found[1:]) + 1
    bounds = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)) + 1)
    return Cut(spaced.split(), np.diff(np.searchsorted(ends, bounds), prepend=0))


def words(text: str) -> list[str]:
    """Return the words of one text, too long ones too."""
    return cut([text]).words


def numbers(text: str, vocabulary: Mapping[str, int], stop_words: Collection[str], length: int) -> list[int]:
    """Return the first `length` words of a text as numbers, stop words left out, padded.

    `vocabulary` gives each word's number, from `FIRST` on.
    """
    kept = [word for word in words(text) if word not in stop_words][:length]
    found = [vocabulary.get(word, UNKNOWN) if len(word) <= MAX_LETTERS else UNKNOWN for word in kept]
    return found + [PADDING] * (length - len(found))
