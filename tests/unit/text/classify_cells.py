"""Made-up cells that a classifier takes: tickets whose words tell their class."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unicodedata import unidata_version

import numpy as np

from factories import bare_record
from payload_calls import payload_arguments
from transect.domain.axes.text import EncodeCell
from transect.domain.record import write_record

WIDTH = 8
WORDS = 60
LENGTH = 12
CLASSES = ("hardware", "access", "billing")
TEXT = {"corpus": "made", "split": "random", "embeddings": "small", "words": "quantile"}
READ = {"view": "conversation", "names": "pseudonyms", "redact": True}
AXES = TEXT | {"stage": "classify"}


def rows(count: int, seed: int, classes: int = len(CLASSES)) -> tuple[np.ndarray, np.ndarray]:
    """Return word numbers and classes: half of a ticket's words are of its class's own."""
    generator = np.random.default_rng(seed)
    y = generator.integers(classes, size=count)
    x = generator.integers(1, WORDS, (count, LENGTH)).astype(np.int32)
    typical = 2 + y[:, None] * 10 + generator.integers(10, size=x.shape)
    x = np.where(generator.random(x.shape) < 0.5, typical, x).astype(np.int32)
    lengths = generator.integers(0, LENGTH + 1, count)
    x[np.arange(LENGTH) >= lengths[:, None]] = 0
    return x, y


def write_cells(folder: Path, sizes: dict[str, int] | None = None, seed: int = 1) -> dict[str, Path]:
    """Write encode and vectors cells; return their folders by role."""
    sizes = {"train": 96, "validation": 40, "test": 50} if sizes is None else sizes
    folders = {role: folder / role for role in ("encode", "embeddings")}
    for folder_of_role in folders.values():
        folder_of_role.mkdir(parents=True)
    for place, (part, count) in enumerate(sizes.items()):
        x, y = rows(count, seed + place)
        np.save(folders["encode"] / f"x_{part}.npy", x)
        np.save(folders["encode"] / f"y_{part}.npy", y)
        np.save(folders["encode"] / f"rows_{part}.npy", np.arange(count))
    vectors = np.random.default_rng(seed).standard_normal((WORDS, WIDTH)).astype(np.float32)
    vectors[0] = 0
    np.save(folders["embeddings"] / "vectors.npy", vectors)
    words = [f"word{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(WORDS - 2)]
    vocabulary = {"words": words, "stop_words": [], "letters": unidata_version}
    for role in ("embeddings", "encode"):
        (folders[role] / "vocabulary.json").write_text(json.dumps(vocabulary))
    facts = {"classes": list(CLASSES), "synthetic": True, "bayes_accuracy": 0.8}
    write_record(folders["encode"] / "record.json", bare_record(EncodeCell(**TEXT), details=facts))
    return folders


def spec_of(
    kind: str, hyperparameters: dict[str, Any] | None = None, options: dict[str, Any] | None = None, **axes: Any
) -> dict[str, Any]:
    """Return what a worker is told."""
    hyperparameters = hyperparameters or {}
    return {
        "cell": AXES | {"model": kind, "kind": kind} | hyperparameters | axes,
        "classifier": {"kind": kind, "options": options or {}},
        "hyperparameters": hyperparameters,
        "seed": 7,
        "inputs": {},
        "text": READ,
    }


def arguments(folders: dict[str, Path], spec: dict[str, Any], out: Path, **more: Any) -> list[str]:
    """Return the payload's arguments, with its spec written."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "spec.json").write_text(json.dumps(spec))
    return payload_arguments(spec["cell"]["stage"], out, **folders, **more)
