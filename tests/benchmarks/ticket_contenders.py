"""One contender of bench_tickets, a process of its own: its memory is its own.

    python ticket_contenders.py CONTENDER TICKETS.csv FOLDER

Reads tickets, cuts them into words, leaves stop words out, chooses a vocabulary by the 40 % that train,
cuts and pads at the length that 95 % of those do not exceed, and leaves arrays of int32 in FOLDER.
Prints as JSON what it found, so that it can be seen that all did the same. As the libraries' own
tutorials do it; the words of `datasets` come from one regular expression, which is faster than gensim's
function.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import stopwordsiso

STOP_WORDS = {word for entry in stopwordsiso.stopwords("en") for word in re.findall(r"[^\W\d_]+", entry)}
TRAIN, SHARE, MINIMUM, MAX_COUNT, MAX_LETTERS = 0.4, 0.95, 2, 20_000, 40
FIRST, UNKNOWN = 2, 1


def with_pandas(file: Path, out: Path) -> dict[str, Any]:
    """pandas for the table, gensim for words and vocabulary; all in memory."""
    import pandas
    from gensim.corpora import Dictionary
    from gensim.utils import simple_preprocess

    table = pandas.read_csv(file)
    table["words"] = [
        [w for w in simple_preprocess(text, min_len=1, max_len=MAX_LETTERS) if w not in STOP_WORDS]
        for text in table.Document
    ]
    train = table.sample(frac=TRAIN, random_state=1)
    vocabulary = Dictionary(train.words)
    # gensim counts the tickets that a word is in, not how often it is there.
    vocabulary.filter_extremes(no_below=MINIMUM, no_above=1.0, keep_n=MAX_COUNT)
    length = int(np.quantile(train.words.map(len), SHARE, method="inverted_cdf"))
    x = np.zeros((len(table), length), np.int32)
    for row, words in enumerate(table.words):
        numbers = vocabulary.doc2idx(words[:length], unknown_word_index=UNKNOWN - FIRST)
        x[row, : len(numbers)] = np.array(numbers, np.int32) + FIRST
    np.save(out / "x_train.npy", x[np.sort(train.index)])
    np.save(out / "x_other.npy", np.delete(x, train.index, axis=0))
    np.save(out / "y.npy", table.Topic_group.astype("category").cat.codes.to_numpy(np.int64))
    return _facts(table.words.map(len).sum(), len(vocabulary), length, len(table))


def with_datasets(file: Path, out: Path) -> dict[str, Any]:
    """Hugging Face datasets: tables on disk, mapped in batches."""
    import datasets

    datasets.disable_progress_bars()
    table = datasets.load_dataset("csv", data_files=str(file), split="train", cache_dir=str(out / "cache"))
    letters = re.compile(r"[^\W\d_]+")

    def words_of(batch: dict[str, Any]) -> dict[str, Any]:
        found = (letters.findall(text.lower()) for text in batch["Document"])
        kept = [[word for word in words if word not in STOP_WORDS] for words in found]
        return {"words": kept, "count": [len(words) for words in kept]}

    table = table.map(words_of, batched=True, remove_columns=["Document"])
    parts = table.train_test_split(train_size=TRAIN, seed=1)
    counts: Counter[str] = Counter()
    for batch in parts["train"].select_columns("words").iter(1000):
        for words in batch["words"]:
            counts.update(words)
    chosen = [word for word, count in counts.most_common(MAX_COUNT) if count >= MINIMUM]
    numbers = {word: number for number, word in enumerate(chosen, FIRST)}
    lengths = np.asarray(parts["train"].with_format("numpy")["count"][:])
    length = int(np.quantile(lengths, SHARE, method="inverted_cdf"))

    def rows_of(batch: dict[str, Any]) -> dict[str, Any]:
        rows = np.zeros((len(batch["words"]), length), np.int32)
        for row, words in zip(rows, batch["words"], strict=True):
            row[: len(words)] = [numbers.get(word, UNKNOWN) for word in words[:length]]
        return {"x": rows}

    features = datasets.Features(
        {
            "Topic_group": datasets.Value("string"),
            "count": datasets.Value("int64"),
            "x": datasets.List(datasets.Value("int32"), length=length),
        }
    )
    rows = parts.map(rows_of, batched=True, remove_columns=["words"], features=features)
    rows.save_to_disk(str(out / "rows"))
    total = sum(int(np.sum(part.with_format("numpy")["count"][:])) for part in parts.values())
    return _facts(total, len(chosen), length, sum(parts.num_rows.values()))


def _facts(words: Any, vocabulary: int, length: int, tickets: int) -> dict[str, Any]:
    return {"tickets": tickets, "words": int(words), "vocabulary": vocabulary, "length": length}


def main() -> int:
    name, file, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    print(json.dumps({"pandas": with_pandas, "datasets": with_datasets}[name](file, out)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
