"""The stages tokens, vectors and encode: what they leave, and what the training part may know."""

import numpy as np
import pytest
from word_cells import Pipeline

from transect.text.tokeniser import FIRST, PADDING, numbers, words

ENGLISH = "The printer on the second floor does not work, and it has been broken since yesterday."
GERMAN = "Der Drucker im zweiten Stock funktioniert nicht, und er ist seit gestern kaputt."
# What only tickets of the test part say.
SECRET = "Zugangskarte quarterly zugangskarte quarterly zugangskarte forecast forecast"
HOSTILE = ["", "...", "\ud800\udc00 \udfff", "\x00\u202e" + "a" * 41 + " <script>", "x" * 300 + " x"]
TEXTS = [ENGLISH, GERMAN] * 20 + [SECRET, SECRET] + HOSTILE
PARTS = {
    "train": list(range(0, 30)),
    "validation": [30, 31],
    "test": [32, 40, 41],
    "inference": [],
    "on_device": list(range(33, 40)) + list(range(42, 47)),
    "client-0": [33, 34],
}
# The same training part, and other tests.
OTHER = TEXTS[:32] + ["Completely different words, several new words, new words"] * 15


@pytest.fixture(scope="module")
def done(tmp_path_factory, text_python):
    """Cells of two corpora that differ in what does not train."""
    pair = {}
    for name, texts in (("one", TEXTS), ("other", OTHER)):
        pair[name] = pipeline = Pipeline(tmp_path_factory.mktemp(name) / "cells", texts, PARTS)
        pipeline.tokens()
        pipeline.embeddings("train")
        pipeline.embeddings("all", fit_on="all")
        pipeline.encode("rows", "train")
        if name == "one":
            pipeline.tokens("stay", stop_words=True)
            pipeline.embeddings("again")
            pipeline.embeddings("seed", seed=6)
            pipeline.embeddings("random", method="random", most=3)
            pipeline.encode("short", "random", rule="fixed", words=2)
            pipeline.encode("stay-rows", "train", tokens="stay", rule="gaussian")
        assert pipeline.run(text_python) == [0] * (4 if name == "other" else 10)
    return pair


def texts_of(pipeline, name="tokens"):
    """Return the words of each text that a tokens cell left."""
    listed = pipeline.read(name, "words.json")["words"]
    tokens, offsets = pipeline.read(name, "tokens.npy"), pipeline.read(name, "offsets.npy")
    assert tokens.dtype == np.int32 and offsets.dtype == np.int64
    return [[listed[n] for n in part] for part in np.split(tokens, offsets[1:-1])]


def test_stop_words_of_both_languages_are_left_out(done):
    facts = done["one"].read("tokens", "words.json")
    assert facts["languages"] == ["de", "en"]
    assert {"the", "and", "der", "und"} <= set(facts["stop_words"])
    left_out = set(facts["stop_words"])
    expected = [["" if len(word) > 40 else word for word in words(text) if word not in left_out] for text in TEXTS]
    assert texts_of(done["one"]) == expected
    counts = dict(zip(facts["words"], facts["counts"], strict=True))
    assert counts["drucker"] == 20 and counts[""] == 2
    details = done["one"].result("tokens")["details"]
    assert details["too_long"] == 2 and details["lengths"]["tickets"] == len(TEXTS)
    assert details["stop_words_left_out"] == sum(word in left_out for text in TEXTS for word in words(text))


def test_training_vectors_know_nothing_of_other_tickets(done):
    for name in ("vectors.npy", "vocabulary.json"):
        trained, changed = (done[key].folder / "train" / name for key in ("one", "other"))
        assert trained.read_bytes() == changed.read_bytes()
    known = set(done["one"].read("train", "vocabulary.json")["words"])
    assert known and not known & set(words(SECRET))
    details = done["one"].result("train")["details"]
    assert details["tickets"] == 30 and details["words_not_in_training"] == 0
    assert details["covered"]["train"] == 1 and details["covered"]["test"] < 1


def test_the_leak_is_one(done):
    known = set(done["one"].read("all", "vocabulary.json")["words"])
    assert {"zugangskarte", "quarterly"} <= known
    details = done["one"].result("all")["details"]
    assert details["tickets"] == len(TEXTS)
    assert details["words_not_in_training"] == len(known & set(words(SECRET))) > 0
    # Vectors of words that train are others too.
    trained = done["one"].read("train", "vocabulary.json")["words"]
    both = [
        {
            word: vector.tobytes()
            for word, vector in zip(
                done["one"].read(name, "vocabulary.json")["words"],
                done["one"].read(name, "vectors.npy")[FIRST:],
                strict=True,
            )
        }
        for name in ("train", "all")
    ]
    assert any(both[0][word] != both[1][word] for word in trained)


def test_vectors_come_again_with_the_seed_and_only_with_it(done):
    train, again, other_seed = (done["one"].read(n, "vectors.npy") for n in ("train", "again", "seed"))
    assert train.dtype == np.float32 and train.tobytes() == again.tobytes()
    assert train.shape == other_seed.shape and (train != other_seed).any()
    assert (train[0] == 0).all()
    np.testing.assert_allclose(train[1], train[2:].mean(axis=0), rtol=1e-6, atol=1e-9)


def test_the_vocabulary_is_by_frequency_and_then_by_alphabet(done):
    trained = [word for n in PARTS["train"] for word in texts_of(done["one"])[n]]
    counts = {word: trained.count(word) for word in set(trained)}
    expected = sorted(counts, key=lambda word: (-counts[word], word))
    assert done["one"].read("train", "vocabulary.json")["words"] == expected
    assert done["one"].read("random", "vocabulary.json")["words"] == expected[:3]


@pytest.mark.parametrize(("cell", "tokens"), [("rows", "tokens"), ("short", "tokens"), ("stay-rows", "stay")])
def test_rows_are_what_the_tokeniser_makes_of_texts(done, cell, tokens):
    pipeline = done["one"]
    vocabulary = pipeline.read(cell, "vocabulary.json")
    known = {word: number for number, word in enumerate(vocabulary["words"], FIRST)}
    stop_words = pipeline.read(tokens, "words.json")["stop_words"]
    details = pipeline.result(cell)["details"]
    for part, rows in PARTS.items():
        if not rows:
            assert not (pipeline.folder / cell / f"x_{part}.npy").exists()
            continue
        x, y = pipeline.read(cell, f"x_{part}.npy"), pipeline.read(cell, f"y_{part}.npy")
        expected = [numbers(TEXTS[n], known, stop_words, details["length"]) for n in rows]
        assert x.dtype == np.int32 and x.tolist() == expected
        assert y.dtype == np.int64 and y.tolist() == [n % 3 for n in rows]
        assert pipeline.read(cell, f"rows_{part}.npy").tolist() == rows
        assert details["sizes"][part] == len(rows)
        assert details["parts"][part]["empty"] == np.mean([row[0] == PADDING for row in expected])


def test_the_record_of_rows_says_what_classifiers_have_to_know(done):
    details = done["one"].result("rows")["details"]
    assert details["classes"] == ["a", "b", "c"] and details["synthetic"] is True
    # Of its view and its names.
    assert details["bayes_accuracy"] == 0.25
    short = done["one"].result("short")["details"]
    assert short["length"] == 2 and short["parts"]["train"]["cut"] == 1
    assert short["parts"]["train"]["unknown"] > 0


def test_a_training_part_without_words_is_bad_input(tmp_path, text_python):
    pipeline = Pipeline(tmp_path / "cells", ["Drucker kaputt", ""], {"train": [1], "test": [0]})
    pipeline.tokens()
    pipeline.embeddings("train")
    assert pipeline.run(text_python) == [0, 1]
    result = pipeline.result("train")
    assert (result["status"], result["cause"]) == ("failed", "bad-input")
    assert "occurs 2 times" in result["message"] and "`minimum`" in result["message"]
    assert not (tmp_path / "cells/train/vectors.npy").exists()
