"""The words of a corpus on disk: numbers one text after another, and the words that they stand for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.files import write_atomic
from transect.text.arrays import Lists, growing
from transect.text.lengths import Lengths
from transect.text.lines import read_batches
from transect.text.tokeniser import MAX_LETTERS, cut, words

# A language with less than this probability counts as unknown: three words may be anything.
SURE = 0.9
# Code points by which a language is found; more make no difference, but for the time.
_READ = 1000


@cache
def language_finder() -> Callable[[str], str]:
    """Return a function that gives the language of a text, as ISO 639-1, or "" where it is not sure.

    One call costs some 0.2 ms: a sample of the texts is enough for what concerns all of them.
    """
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)

    def language_of(text: str) -> str:
        # Half a surrogate pair has no form in UTF-8, which is what is looked at.
        whole = text[:_READ].encode("utf-8", "replace").decode()
        language, probability = identifier.classify(whole)
        return str(language) if probability >= SURE else ""

    return language_of


def languages_of(texts: Iterable[str]) -> dict[str, int]:
    """Count texts by language, the most frequent one first; "" are those without a sure answer."""
    find_language = language_finder()
    return dict(Counter(find_language(text) for text in texts).most_common())


def common(counts: dict[str, int], share: float = 0.01) -> list[str]:
    """Return the languages that at least `share` of the texts are in, sorted."""
    least = share * sum(counts.values())
    return sorted(language for language, count in counts.items() if language and count >= least)


def stop_words(languages: Collection[str]) -> tuple[list[str], list[str]]:
    """Return the stop words of all these languages, sorted, and the languages without a list.

    As the tokeniser cuts them: `don't` is `don` and `t`.
    """
    import stopwordsiso

    without = sorted(language for language in languages if not stopwordsiso.has_lang(language))
    listed = stopwordsiso.stopwords([language for language in languages if language not in without])
    return sorted({word for entry in listed for word in words(entry)}), without


TOKENS, OFFSETS, WORDS = "tokens.npy", "offsets.npy", "words.json"
# What stands in a list of words for all those that have too many letters.
TOO_LONG = ""
# Texts by which the languages of a corpus are found, evenly spaced over it.
_SAMPLE = 1000
_LEFT_OUT = -1


class _Words(dict[str, int]):
    """The number of each word, in the order in which they come; stop words have `_LEFT_OUT`."""

    def __init__(self, left_out: list[str]) -> None:
        super().__init__(dict.fromkeys(left_out, _LEFT_OUT))
        self.listed: list[str] = []
        self._too_long: int | None = None

    def __missing__(self, word: str) -> int:
        if len(word) > MAX_LETTERS:
            # Not one entry each: there may be as many as there is text.
            if self._too_long is None:
                self._too_long = self._listed(TOO_LONG)
            return self._too_long
        self[word] = number = self._listed(word)
        return number

    def _listed(self, word: str) -> int:
        self.listed.append(word)
        return len(self.listed) - 1


def write_tokens(texts: Path, out: Path, stop_words_stay: bool) -> dict[str, Any]:
    """Cut the texts of a file into words; return the details of a record.

    Memory grows with the number of different words, not with that of texts.
    """
    counted = languages_of(_sample(texts))
    languages = common(counted)
    listed, without = ([], []) if stop_words_stay else stop_words(languages)
    numbers, lengths, left_out = _Words(listed), Counter[int](), 0
    counts = np.zeros(0, np.int64)
    with growing(out / TOKENS, "<i4") as tokens, growing(out / OFFSETS, "<i8") as offsets:
        offsets.append(np.zeros(1, np.int64))
        for some in read_batches(texts):
            words, each = cut(some)
            found = np.fromiter(map(numbers.__getitem__, words), np.int32, len(words))
            if listed:
                stays = found != _LEFT_OUT
                each = _per_text(stays, each)
                found = found[stays]
                left_out += len(words) - len(found)
            counts = _added(counts, found, len(numbers.listed))
            lengths.update(each.tolist())
            offsets.append(tokens.length + np.cumsum(each))
            tokens.append(found)
    facts = {
        "words": numbers.listed,
        "counts": counts[: len(numbers.listed)].tolist(),
        "stop_words": listed,
        "languages": languages,
    }
    write_atomic(out / WORDS, json.dumps(facts, ensure_ascii=False))
    described = Lengths(lengths)
    return {
        "tickets": described.total,
        "tokens": int(counts.sum()),
        "words": len(numbers.listed),
        "too_long": _count_of(TOO_LONG, numbers.listed, counts),
        "stop_words": len(listed),
        "stop_words_left_out": left_out,
        "languages": {
            "common": languages,
            "told": {code or "none": count for code, count in counted.items()},
            "without_stop_words": without,
        },
        "lengths": described.facts(),
        "normality": described.normality(),
    }


def _sample(path: Path) -> Iterator[str]:
    """Yield some texts, evenly spaced; all of them where there are few."""
    with path.open("rb") as stream:
        lines = sum(piece.count(b"\n") for piece in iter(lambda: stream.read(1 << 20), b""))
    step = max(1, lines // _SAMPLE)
    with path.open("rb") as stream:
        for number, line in enumerate(stream):
            if number % step == 0:
                yield json.loads(line)


def _per_text(stays: np.ndarray, each: np.ndarray) -> np.ndarray:
    """Count what stays of each text, whose words are `each` many."""
    so_far = np.concatenate([[0], np.cumsum(stays)])
    return np.diff(so_far[np.cumsum(each)], prepend=0)


def _added(counts: np.ndarray, found: np.ndarray, words: int) -> np.ndarray:
    if words > len(counts):
        # Twice as much as is needed, so that it is seldom copied.
        counts = np.concatenate([counts, np.zeros(2 * words - len(counts), np.int64)])
    np.add.at(counts, found, 1)
    return counts


def _count_of(word: str, listed: list[str], counts: np.ndarray) -> int:
    return int(counts[listed.index(word)]) if word in listed else 0


def read_tokens(folder: Path) -> tuple[Lists, dict[str, Any]]:
    """Return the numbers that `write_tokens` left, and what stands in its `words.json`."""
    facts: dict[str, Any] = json.loads((folder / WORDS).read_text(encoding="utf-8"))
    return Lists(folder / TOKENS, folder / OFFSETS), facts
