"""Encoded tickets.

Leaves for each part of the split that has tickets `x_PART.npy` (int32, (tickets, length)),
`y_PART.npy` and `rows_PART.npy` (int64), and `vocabulary.json` and `result.json`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.axes.text import EncodeCell
from transect.domain.files import write_atomic
from transect.domain.record import read_record
from transect.onnx_models.results import result, versions
from transect.text.arrays import Lists, Piece, growing
from transect.text.lengths import Lengths
from transect.text.token_files import OFFSETS, read_tokens
from transect.text.tokeniser import PADDING, UNKNOWN
from transect.text.vocabulary import VOCABULARY, numbering, read_vocabulary


def length_of(lengths: Lengths, rule: dict[str, Any]) -> int:
    """Return how many words of a ticket are read: at least 1, at most the rule's `most`."""
    if rule["rule"] == "fixed":
        bound: float = rule["words"]
    elif rule["rule"] == "gaussian":
        bound = lengths.gaussian(rule["share"])
    else:
        bound = lengths.quantile(rule["share"])
    return int(max(1, min(rule["most"], math.ceil(bound) if math.isfinite(bound) else rule["most"])))


def rows_of(piece: Piece, numbers: np.ndarray, length: int) -> np.ndarray:
    """Return the texts of a piece as (texts, length) int32."""
    rows = np.full((len(piece.starts) - 1, length), PADDING, np.int32)
    # What is kept of each text lies before what is padded, as it does in the piece.
    kept = np.minimum(piece.lengths, length)
    places = np.arange(length)
    place = np.arange(len(piece.values)) - np.repeat(piece.starts[:-1], piece.lengths)
    rows[places < kept[:, None]] = numbers[piece.values[place < length]]
    return rows


def write_rows(
    tokens: Lists, numbers: np.ndarray, parts: Mapping[str, np.ndarray], labels: np.ndarray, length: int, out: Path
) -> dict[str, dict[str, float]]:
    """Write `x_PART.npy`, `y_PART.npy` and `rows_PART.npy` of every part that has tickets.

    `numbers` (corpus' words,) int32, `parts` sorted rows, `labels` (tickets,). Returns by part:
    `tickets`, the shares of tickets `cut` and without any word (`empty`), and the share of the words
    in its rows that are `unknown`. All in one pass over the tokens.
    """
    filled = {part: rows for part, rows in parts.items() if len(rows)}
    sums = {part: np.zeros(4, np.int64) for part in filled}
    with ExitStack() as stack:
        files = {part: stack.enter_context(growing(out / f"x_{part}.npy", "<i4", (length,))) for part in filled}
        for piece in tokens.pieces():
            rows = rows_of(piece, numbers, length)
            last = piece.first + len(rows)
            for part, chosen in filled.items():
                begin, end = np.searchsorted(chosen, [piece.first, last])
                local = chosen[begin:end] - piece.first
                if len(local):
                    files[part].append(rows[local])
                    sums[part] += _sums(rows[local], piece.lengths[local], length)
    for part, chosen in filled.items():
        for name, values in (("y", labels[chosen]), ("rows", chosen)):
            with growing(out / f"{name}_{part}.npy", "<i8") as file:
                file.append(values)
    return {part: _facts(len(filled[part]), *sums[part].tolist()) for part in filled}


def _sums(rows: np.ndarray, lengths: np.ndarray, length: int) -> np.ndarray:
    return np.array(
        [
            np.count_nonzero(lengths > length),
            np.count_nonzero(lengths == 0),
            np.count_nonzero(rows == UNKNOWN),
            np.count_nonzero(rows != PADDING),
        ]
    )


def _facts(tickets: int, cut: int, empty: int, unknown: int, words: int) -> dict[str, float]:
    return {
        "tickets": tickets,
        "cut": cut / tickets,
        "empty": empty / tickets,
        "unknown": unknown / words if words else 0.0,
    }


def encode(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Write the rows of one cell; return its result."""
    cell = EncodeCell.of(**spec["cell"])
    corpus = read_record(folders["corpus"] / "record.json").details
    tokens, facts = read_tokens(folders["tokens"])
    vocabulary = read_vocabulary(folders["embeddings"])
    with np.load(folders["split"] / "parts.npz") as file:
        parts = {part: file[part] for part in file.files}
    offsets = np.load(folders["tokens"] / OFFSETS, mmap_mode="r")
    lengths = Lengths.of((offsets[1:] - offsets[:-1])[parts["train"]])
    length = length_of(lengths, spec["rule"])
    rows = write_rows(
        tokens,
        numbering(facts["words"], vocabulary["words"]),
        parts,
        np.load(folders["corpus"] / "labels.npy", mmap_mode="r"),
        length,
        out,
    )
    write_atomic(out / VOCABULARY, (folders["embeddings"] / VOCABULARY).read_bytes())
    share = spec["rule"]["share"]
    details = {
        "length": length,
        "rule": spec["rule"],
        "gaussian": lengths.gaussian(share) if share < 1 else None,
        "quantile": lengths.quantile(share),
        "training_lengths": lengths.facts(),
        "normality": lengths.normality(),
        "vocabulary": len(vocabulary["words"]),
        "parts": rows,
        "sizes": {part: int(facts["tickets"]) for part, facts in rows.items()},
        "classes": corpus["classes"],
        "synthetic": corpus["synthetic"],
        "bayes_accuracy": bayes_accuracy(corpus.get("bayes_accuracy"), cell),
    }
    return result(details=details, libraries=versions("numpy"))


def bayes_accuracy(known: dict[str, dict[str, Any]] | None, cell: EncodeCell) -> Any:
    """Return what the corpus knows of the best accuracy that this view with these names allows."""
    return None if known is None else known[cell.view][cell.names]
