"""Encoded tickets.

Leaves for each part of the partition that has tickets `x_PART.npy` (int32, (tickets, length)),
`y_PART.npy` and `rows_PART.npy` (int64), and `vocabulary.json` and `result.json`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.axes.text import EncodeCell
from transect.domain.files import write_atomic
from transect.domain.record import read_record
from transect.onnx_models.results import result, versions
from transect.text.encoding import length_of, write_rows
from transect.text.lengths import Lengths
from transect.text.token_files import OFFSETS, read_tokens
from transect.text.vocabulary import VOCABULARY, numbering, read_vocabulary


def encode(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Write the rows of one cell; return its result."""
    cell = EncodeCell.of(**spec["cell"])
    corpus = read_record(folders["corpus"] / "record.json").details
    tokens, facts = read_tokens(folders["tokens"])
    vocabulary = read_vocabulary(folders["vectors"])
    with np.load(folders["partition"] / "parts.npz") as file:
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
    write_atomic(out / VOCABULARY, (folders["vectors"] / VOCABULARY).read_bytes())
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


def bayes_accuracy(told: dict[str, dict[str, Any]] | None, cell: EncodeCell) -> Any:
    """Return what the corpus knows of the best accuracy that this view with these names allows."""
    return None if told is None else told[cell.view][cell.names]
