"""Numbers of each ticket of a corpus, a few bytes a ticket, and what they add up to."""

from __future__ import annotations

import math
import struct
from array import array
from collections import Counter
from datetime import datetime
from typing import Any

import numpy as np

from transect.text.redaction import Counts

# One entry a ticket, packed: an array for each of them takes twice the time.
_ROW = np.dtype(
    [
        ("number", "<u4"),
        ("label", "<i4"),
        ("owner", "<i4"),
        ("language", "<i4"),
        ("time", "<f8"),
        ("id", "<u8"),
        ("text", "<i8"),
        ("names", "<u4"),
        ("emails", "<u4"),
        ("phones", "<u4"),
        ("ips", "<u4"),
    ]
)
_pack = struct.Struct("<IiiidQqIIII").pack
_REDACTED = ("names", "emails", "phones", "ips")


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
        self._rows = bytearray()
        self._truth: dict[str, array[float]] = {}

    def add(self, line: dict[str, Any], label: str, counts: Counts, number: int) -> None:
        """Take the numbers of a line of `tickets.jsonl`, made of the source's ticket `number`."""
        messages = line["messages"]
        time = messages[0].get("time")
        self._rows += _pack(
            number,
            self._labels.number(label),
            self._owners.number(line.get("owner", "")),
            self._languages.number(line.get("language", "")),
            datetime.fromisoformat(time).timestamp() if time else math.nan,
            int(line["id"], 16),
            # Python's own hash: it only counts what is alike.
            hash(tuple([message["text"] for message in messages])),
            counts.names,
            counts.emails,
            counts.phones,
            counts.ips,
        )
        if "truth" in line:
            for view, by_names in line["truth"].get(self._label, {}).items():
                for names, value in by_names.items():
                    self._truth.setdefault(f"{view}-{names}", array("d")).append(value)

    def _table(self) -> np.ndarray:
        # Not a copy: as long as it is looked at, nothing can be added.
        return np.frombuffer(self._rows, _ROW)

    def __len__(self) -> int:
        return len(self._rows) // _ROW.itemsize

    def place(self, row: int) -> str:
        """Name the ticket of a row by its number in the source, from 1."""
        return f"ticket {self._table()['number'][row]}"

    def first_of_each_id(self) -> np.ndarray:
        """Return for each ticket the first one with its id: its own number unless it is a duplicate."""
        _, first, inverse = np.unique(self._table()["id"], return_index=True, return_inverse=True)
        return np.asarray(first[inverse], np.int64)

    def arrays(self, rows: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return what is written beside the tickets of `rows`, and the record's details of them.

        Classes are sorted by name; owners, whose hashes depend on the salt, are numbered as they come.
        """
        table = self._table()
        labels, classes = _renumbered(table["label"][rows], self._labels, self._label == "queue")
        owners, _ = _renumbered(table["owner"][rows], self._owners, False)
        languages = Counter(table["language"][rows].tolist())
        names = self._languages.all()
        details = {
            "tickets": len(rows),
            "classes": classes,
            "class_counts": np.bincount(labels, minlength=len(classes)).tolist(),
            "languages": {names[n] if n >= 0 else "unknown": tickets for n, tickets in languages.most_common()},
            "with_time": int(np.isfinite(table["time"][rows]).sum()),
            "owners": int(owners.max(initial=-1)) + 1,
            "same_text": len(rows) - len(np.unique(table["text"][rows])),
            "found": {name: int(table[name][rows].sum()) for name in _REDACTED},
        }
        arrays = {"labels": labels, "times": table["time"][rows], "owners": owners}
        truth = {name: np.asarray(column, np.float64) for name, column in self._truth.items()}
        return arrays | {name: column[rows] for name, column in truth.items() if len(column) == len(self)}, details


def _renumbered(numbers: np.ndarray, names: Names, by_name: bool) -> tuple[np.ndarray, list[str]]:
    """Return numbers (rows,) int32 without gaps, -1 for none, and the names that they stand for."""
    used, first = np.unique(numbers[numbers >= 0], return_index=True)
    every = names.all()
    order = sorted(used, key=lambda number: every[number]) if by_name else used[np.argsort(first)]
    table = np.full(len(every) + 1, -1, np.int32)
    for new, old in enumerate(order):
        table[old] = new
    return table[numbers], [every[old] for old in order]
