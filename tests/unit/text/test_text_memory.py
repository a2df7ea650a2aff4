"""Memory does not grow with the number of tickets."""

import json
import tracemalloc

import numpy as np

from transect.payloads.encode import write_rows
from transect.text import token_files
from transect.text.token_files import read_tokens, write_tokens

TEXT = "the printer on the second floor does not work " * 8
# A few already fill a piece.
FEW, MANY = 6_000, 24_000


def peak_of(work, *arguments):
    """Return the most bytes that Python and numpy held at once."""
    tracemalloc.start()
    try:
        work(*arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def encode(folder):
    tokens, facts = read_tokens(folder)
    rows = np.arange(len(tokens))
    parts = {"train": rows[::2], "test": rows[1::2]}
    labels = np.load(folder / "labels.npy", mmap_mode="r")
    write_rows(tokens, np.arange(len(facts["words"]), dtype=np.int32), parts, labels, 60, folder)


def test_words_and_rows_of_many_tickets_need_what_those_of_few_do(tmp_path, monkeypatch):
    # Languages are told from a sample, which is full before there are a few.
    monkeypatch.setattr(token_files, "languages_of", lambda texts: {"en": sum(1 for _ in texts)})
    monkeypatch.setattr(token_files, "stop_words", lambda languages: (["the"], []))
    peaks = {}
    for count in (FEW, MANY):
        folder = tmp_path / str(count)
        folder.mkdir()
        (folder / "texts.jsonl").write_text((json.dumps(TEXT) + "\n") * count)
        np.save(folder / "labels.npy", np.zeros(count, np.int32))
        peaks[count] = (peak_of(write_tokens, folder / "texts.jsonl", folder, False), peak_of(encode, folder))
    words, rows = zip(*peaks.values(), strict=True)
    assert words[1] < 1.2 * words[0]
    # A piece, and some numbers of 8 bytes for each ticket: which rows it is of, where it begins.
    assert rows[1] < 1.2 * rows[0] + 40 * MANY
