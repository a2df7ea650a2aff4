"""Texts become words by one rule, whatever stands in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.text.tokeniser import FIRST, MAX_LETTERS, PADDING, UNKNOWN, cut, numbers, words

# Half a surrogate pair is text too: JSON can hold one.
HOSTILE = st.text(st.characters(codec=None, categories=None), max_size=60)
ASCII = st.text(st.characters(codec="ascii"), max_size=60)


def plain(text: str) -> list[str]:
    """The rule as it is written, one code point after another."""
    found, word = [], ""
    for character in text:
        if ord(character) < 0x3000 and character.isalpha():
            lower = character.lower()
            word += lower if len(lower) == 1 and ord(lower) < 0x3000 else character
        elif word:
            found.append(word)
            word = ""
    return [*found, word] if word else found


@given(st.lists(HOSTILE, max_size=8) | st.lists(ASCII, max_size=8))
def test_words_are_those_of_the_rule(texts):
    found = cut(texts)
    assert found.words == [word for text in texts for word in plain(text)]
    assert found.counts.tolist() == [len(plain(text)) for text in texts]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("Drucker defekt!", ["drucker", "defekt"]),
        ("GRÖSSE Straße ẞ", ["grösse", "straße", "ß"]),
        # Lower case would be two code points: the letter stays.
        ("İzmir", ["İzmir"]),
        ("it's 10x faster_now", ["it", "s", "x", "faster", "now"]),
        ("a\x00b\u202ec\ufeffd", ["a", "b", "c", "d"]),
        ("<script>alert(1)</script>", ["script", "alert", "script"]),
        ("日本語 text 漢字", ["text"]),
        ("\ud800half\udfff", ["half"]),
        ("שלום עולם", ["שלום", "עולם"]),
        ("x\U0001f600y", ["x", "y"]),
    ],
)
def test_known_words(text, expected):
    assert words(text) == expected


def test_numbers_are_cut_and_padded_after_stop_words_are_left_out():
    vocabulary = {"printer": FIRST, "broken": FIRST + 1}
    found = numbers("The printer is BROKEN, really", vocabulary, {"the", "is"}, 4)
    assert found == [FIRST, FIRST + 1, UNKNOWN, PADDING]
    assert numbers("The printer is BROKEN", vocabulary, {"the", "is"}, 1) == [FIRST]
    assert numbers("", vocabulary, set(), 2) == [PADDING, PADDING]


def test_a_word_that_is_too_long_is_unknown():
    longest, longer = "a" * MAX_LETTERS, "a" * (MAX_LETTERS + 1)
    vocabulary = {longest: FIRST, longer: FIRST + 1}
    assert numbers(f"{longest} {longer}", vocabulary, set(), 2) == [FIRST, UNKNOWN]
