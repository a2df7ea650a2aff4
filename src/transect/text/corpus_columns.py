"""Numbers of each ticket of a corpus, a few bytes a ticket, and what they add up to."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from datetime import datetime
from typing import Any

import numpy as np

from transect.text.redaction import Counts

__all__ = ["Columns", "Names"]


class Names:
    """Numbers for names, in the order in which they are first seen."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        """Return the number of a name; -1 for none."""
        return self._numbers.setdefault(name, len(self._numbers)) if name else -1

    def all(self) -> list[str]:
        """Return the names by number."""
        return list(self._numbers)


class Columns:
    """An entry for each ticket that was taken."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._labels, self._owners, self._languages = Names(), Names(), Names()
        self._label_column, self._owner_column = array("i"), array("i")
        self._language_column = array("i")
        self._times = array("d")
        self._numbers = array("I")
        self._ids, self._texts = array("Q"), array("q")
        self._names, self._emails, self._phones, self._ips = (array("I") for _ in range(4))
        self._truth: dict[str, array[float]] = {}

    def add(self, line: dict[str, Any], label: str, counts: Counts, number: int) -> None:
        """Take the numbers of a line of `tickets.jsonl`, made of the source's ticket `number`."""
        self._numbers.append(number)
        self._label_column.append(self._labels.number(label))
        self._owner_column.append(self._owners.number(line.get("owner", "")))
        self._language_column.append(self._languages.number(line.get("language", "")))
        messages = line["messages"]
        time = messages[0].get("time")
        self._times.append(datetime.fromisoformat(time).timestamp() if time else math.nan)
        self._ids.append(int(line["id"], 16))
        # Python's own hash: it only counts what is alike.
        self._texts.append(hash(tuple([message["text"] for message in messages])))
        self._names.append(counts.names)
        self._emails.append(counts.emails)
        self._phones.append(counts.phones)
        self._ips.append(counts.ips)
        if "truth" in line:
            for view, by_names in line["truth"].get(self._label, {}).items():
                for names, value in by_names.items():
                    self._truth.setdefault(f"{view}-{names}", array("d")).append(value)

    def __len__(self) -> int:
        return len(self._ids)

    def place(self, row: int) -> str:
        """Name the ticket of a row by its number in the source, from 1."""
        return f"ticket {self._numbers[row]}"

    def first_of_each_id(self) -> np.ndarray:
        """Return for each ticket the first one with its id: its own number unless it is a duplicate."""
        ids = np.frombuffer(self._ids, np.uint64) if self._ids else np.zeros(0, np.uint64)
        _, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
        return np.asarray(first[inverse], np.int64)

    def arrays(self, rows: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return what is written beside the tickets of `rows`, and the record's details of them.

        Classes are sorted by name; owners, whose hashes depend on the salt, are numbered as they come.
        """
        labels, classes = _renumbered(
            self._label_column, self._labels, rows, self._label == "queue"
        )
        owners, _ = _renumbered(self._owner_column, self._owners, rows, False)
        languages = Counter(np.asarray(self._language_column, np.int64)[rows].tolist())
        names = self._languages.all()
        found = {
            "names": self._names, "emails": self._emails, "phones": self._phones, "ips": self._ips,
        }  # fmt: skip
        texts = np.asarray(self._texts, np.int64)[rows]
        details = {
            "tickets": len(rows),
            "classes": classes,
            "class_counts": np.bincount(labels, minlength=len(classes)).tolist(),
            "languages": {
                names[one] if one >= 0 else "unknown": many for one, many in languages.most_common()
            },
            "with_time": int(np.isfinite(np.asarray(self._times)[rows]).sum()),
            "owners": int(owners.max(initial=-1)) + 1,
            "same_text": len(texts) - len(np.unique(texts)),
            "found": {
                name: int(np.asarray(column, np.int64)[rows].sum())
                for name, column in found.items()
            },
        }
        arrays = {
            "labels": labels,
            "times": np.asarray(self._times, np.float64)[rows],
            "owners": owners,
        }
        truth = {name: np.asarray(column, np.float64) for name, column in self._truth.items()}
        return arrays | {
            name: column[rows] for name, column in truth.items() if len(column) == len(self)
        }, details


def _renumbered(
    column: array[int], names: Names, rows: np.ndarray, by_name: bool
) -> tuple[np.ndarray, list[str]]:
    """Return numbers (rows,) int32 without gaps, -1 for none, and the names that they stand for."""
    numbers = np.asarray(column, np.int64)[rows]
    used, first = np.unique(numbers[numbers >= 0], return_index=True)
    every = names.all()
    order = sorted(used, key=lambda number: every[number]) if by_name else used[np.argsort(first)]
    table = np.full(len(every) + 1, -1, np.int32)
    for new, old in enumerate(order):
        table[old] = new
    return table[numbers], [every[old] for old in order]
