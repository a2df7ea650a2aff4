"""Which languages texts are in, and the words of each that say little."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import cache

from transect.text.tokeniser import words

# A language that is told with less than this probability is none: three words may be anything.
SURE = 0.9
# Code points from which a language is told; more make no difference, but for the time.
_READ = 1000


@cache
def teller() -> Callable[[str], str]:
    """Return a function that tells the language of a text, as ISO 639-1, or "" where it is not sure.

    One call costs some 0.2 ms: a sample of the texts is enough for what concerns all of them.
    """
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)

    def told(text: str) -> str:
        # Half a surrogate pair has no form in UTF-8, which is what is looked at.
        whole = text[:_READ].encode("utf-8", "replace").decode()
        language, probability = identifier.classify(whole)
        return str(language) if probability >= SURE else ""

    return told


def languages_of(texts: Iterable[str]) -> dict[str, int]:
    """Count texts by language, the most frequent one first; "" are those not told."""
    tell = teller()
    return dict(Counter(tell(text) for text in texts).most_common())


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
    listed = stopwordsiso.stopwords([one for one in languages if one not in without])
    return sorted({word for entry in listed for word in words(entry)}), without
