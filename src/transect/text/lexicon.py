"""A vocabulary as tables of numbers, in which a graph without strings looks words up."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from transect.text.tokeniser import FIRST, MAX_LETTERS, PADDING, UNKNOWN, letter_table

# What a stop word's number is: that of no word.
LEFT_OUT = PADDING
# Letters are below 2^14 and words have up to 40 of them, so that no sum reaches 2^63.
_WEIGHTS_END = 2**43
# Lists are short, and half of the words that are in none are recognised at the first look-up.
_LISTS_PER_WORD = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Lexicon:
    """Words by their sums: that of letter times weight over the places of a word.

    `weights` (MAX_LETTERS + 1,) int64, random, the last one 0; no two words have one sum. Sums are sorted into
    lists by their remainder: `begins` (lists,) is where one begins in `sums` and `numbers`, and no
    list has more than `longest` entries. Behind the last stand `longest` that no word finds.
    """

    weights: np.ndarray
    begins: np.ndarray
    sums: np.ndarray
    numbers: np.ndarray
    longest: int

    @classmethod
    def of(cls, words: Sequence[str], stop_words: Collection[str]) -> Lexicon:
        """Make the tables of words, whose numbers go up from FIRST, and of those that are left out.

        A word that no text can have, such as a too long one, is in none.
        """
        numbers_of = {word: FIRST + place for place, word in enumerate(words)}
        numbers_of |= dict.fromkeys(stop_words, LEFT_OUT)
        found = {word: number for word, number in numbers_of.items() if _can_be(word)}
        numbers = np.fromiter(found.values(), np.int64, len(found))
        letters = _letters(list(found))
        for seed in range(100):
            weights = np.random.default_rng(seed).integers(1, _WEIGHTS_END, MAX_LETTERS)
            sums = letters @ weights
            if len(np.unique(sums)) == len(sums):
                return cls._lists(np.append(weights, 0), sums, numbers)
        raise AssertionError("100 random sums of the same words: two words must be one word")

    @classmethod
    def _lists(cls, weights: np.ndarray, sums: np.ndarray, numbers: np.ndarray) -> Lexicon:
        lists = max(1, _LISTS_PER_WORD * len(sums)) | 1
        order = np.argsort(sums % lists, kind="stable")
        remainders = (sums % lists)[order]
        longest = int(np.bincount(remainders, minlength=1).max())
        beyond = max(1, longest)
        return cls(
            weights=weights,
            begins=np.searchsorted(remainders, np.arange(lists)),
            sums=np.append(sums[order], np.full(beyond, -1)),
            numbers=np.append(numbers[order], np.full(beyond, UNKNOWN)),
            longest=beyond,
        )


def _can_be(word: str) -> bool:
    """Return whether a text's words can be this one: letters alone, lower ones, not too many."""
    table = letter_table()
    return 0 < len(word) <= MAX_LETTERS and all(
        ord(letter) < len(table) and table[ord(letter)] == ord(letter) for letter in word
    )


def _letters(words: Sequence[str]) -> np.ndarray:
    """Return (words, MAX_LETTERS) int64, 0 behind a word's end."""
    letters = np.zeros((len(words), MAX_LETTERS), np.int64)
    for row, word in zip(letters, words, strict=True):
        row[: len(word)] = [ord(letter) for letter in word]
    return letters
