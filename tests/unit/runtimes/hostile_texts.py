"""Texts that a tokeniser may stumble over, as bytes that need not be UTF-8, and a bundle for them."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np

from transect.text.tokeniser import FIRST, numbers
from warm import warm

# What no text can be cut into stays unfound: a word of 41 letters, one with a sign, a capital.
WORDS = [
    "hello",
    "wörld",
    "straße",
    "привет",
    "ab",
    "a" * 40,
    "a" * 41,
    "don't",
    "Upper",
    "é",
    "x",
    "אבג",
    "नमस",
    "ⱥ",
    "emailaddress",
]
STOP_WORDS = ["the", "und", "won't"]
LENGTH = 7
CLASSES = ["Hardware", "Zugänge", "ネット"]
# A row of logits for each number: padding, which counts for nothing, unknown, and the words.
TABLE = np.random.default_rng(5).normal(0, 0.3, (FIRST + len(WORDS), len(CLASSES))).astype(np.float32)
TABLE[0] = 0

TEXTS = [
    b"",
    b"\0",
    b" ",
    b"\n\t.,;:!?\r\n-",
    b"hello",
    b"HELLO the W\xc3\x96RLD x",
    # 40, 41 and 39 letters.
    b"a" * 40 + b" " + b"A" * 41 + b" " + b"a" * 39,
    "é".encode() * 40 + b" " + "é".encode() * 41,
    b"the " * 100 + b"x",
    b"und",
    b"x " * 100,
    b"x\0x",
    "Straße STRASSE ẞ ǅ İstanbul".encode(),
    # Scripts of one, two, three and four bytes; those beyond the letters part words.
    "Привет мир",
    "שלום אבג\u200f\u202e x",
    "日本hello語x",
    "x🙂x𝐱x𐐀x",
    # What is decomposed stays so: a combining mark is no letter.
    "e\u0301 é",
    "\ufeffhello\u2028x\u0085x\u00a0x\u00adx",
    "<script>x</script>",
    # No UTF-8: alone, cut short, too long a form, half a surrogate pair, beyond the last character.
    b"\x80x\xbf",
    b"\xff\xfe hello\xc3",
    b"ab\x80ab ab\xc1\xa1",
    b"\xc3\xa9\xa9x",
    b"x\xe2\xb1",
    b"\xe0\x81\xa1bx x",
    b"\xed\xa0\x80x",
    b"\xf0\x9f\x98x",
    b"\xf4\x90\x80\x80x",
    b"\xe3\x80x",
]
TEXTS = [text.encode() if isinstance(text, str) else text for text in TEXTS]

_PIECES = [
    b"hello",
    b"the",
    b"a",
    b"X",
    b" ",
    b".",
    b"\0",
    "ö".encode(),
    "Ⱥ".encode(),
    "🙂".encode(),
    b"\xc3",
    b"\x80",
    b"\xed\xa0\x80",
]


def _drawn(seed: int) -> bytes:
    chance = random.Random(seed)
    return b"".join(
        chance.choice(_PIECES) if chance.random() < 0.8 else bytes([chance.randrange(256)])
        for _ in range(chance.randrange(60))
    )


def batches() -> dict[str, list[bytes]]:
    """Return batches of texts by a name: one text, none that is not empty, many, and long ones."""
    million = 1_000_000
    return {
        "one": [b"Hello, w\xc3\xb6rld"],
        "nothing": [b""],
        "all": TEXTS,
        "drawn": [_drawn(seed) for seed in range(2000)],
        "long": [b"x. " * (million // 3) + b"hello"],
        "broken": [b"\xe2" * million],
    }


def padded(texts: list[bytes]) -> np.ndarray:
    """Return (texts, bytes) uint8, filled up with zeros."""
    array = np.zeros((len(texts), max(map(len, texts))), np.uint8)
    for row, text in zip(array, texts, strict=True):
        row[: len(text)] = np.frombuffer(text, np.uint8)
    return array


def expected_numbers(texts: list[bytes]) -> np.ndarray:
    """Return the numbers by Python's tokeniser, of bytes of which some are no UTF-8."""
    vocabulary = {word: number for number, word in enumerate(WORDS, FIRST)}
    rows = [numbers(text.decode("utf-8", "replace"), vocabulary, STOP_WORDS, LENGTH) for text in texts]
    return np.array(rows, np.int64)


def probabilities(texts: list[bytes]) -> np.ndarray:
    """Return what the bundle's classifier makes of these numbers, in float64."""
    logits = TABLE.astype(np.float64)[expected_numbers(texts)].sum(axis=1)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def make_bundle(torch_python: str, folder: Path) -> Path:
    """Write what predict_models.py writes; return the folder."""
    made = {"words": WORDS, "stop_words": STOP_WORDS, "length": LENGTH, "classes": CLASSES}
    (folder / "made.json").write_text(json.dumps(made))
    np.save(folder / "table.npy", TABLE)
    helper = Path(__file__).with_name("predict_models.py")
    warm(torch_python).check(helper, folder)
    return folder
