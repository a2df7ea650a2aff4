"""A bundle applied to texts, with memory that does not grow with their number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from transect.domain.errors import BadInput
from transect.text.bundle import Pipeline, read_bundle

# Texts in a batch, and bytes in one of several; the graph needs about 60 bytes for each.
_ROWS, _BYTES = 64, 1 << 19


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What is told of a text: the likeliest classes with their probabilities, the likeliest first.

    `unsure`: the first one's is below what was asked for.
    """

    likeliest: list[tuple[str, float]]
    unsure: bool


class Predictor:
    """A model with its pipeline. Raises BadInput for what is no bundle."""

    def __init__(self, path: Path, *, threads: int = 1) -> None:
        from transect.onnx_models.running import open_session

        model, self.pipeline = read_bundle(path)
        self._session = open_session(model, threads=threads)

    def probabilities(self, texts: Iterable[str]) -> Iterator[np.ndarray]:
        """Yield (classes,) float32 for each text, in their order.

        Raises BadInput where the pipeline names another number of classes.
        """
        for batch in _batches(texts):
            (told,) = self._session.run(None, {"text": padded(batch)})
            if told.shape[1] != len(self.pipeline.classes):
                raise BadInput(
                    f"the model tells {told.shape[1]} classes: expected the "
                    f"{len(self.pipeline.classes)} of its pipeline.json"
                )
            yield from told

    def answers(self, texts: Iterable[str], top: int, unsure: float | None = None) -> Iterator[Answer]:
        """Yield what is told of each text; `unsure`: the least probability, None: the pipeline's."""
        least = self.pipeline.unsure if unsure is None else unsure
        if top < 1 or not 0 <= least <= 1:
            raise BadInput(f"top {top}, unsure {least:g}: expected one or more, and a probability")
        for told in self.probabilities(texts):
            yield _answer(self.pipeline, told, top, least)


def _answer(pipeline: Pipeline, told: np.ndarray, top: int, least: float) -> Answer:
    # Of equally likely ones the first in the order of classes, in every language.
    order = np.argsort(-told, kind="stable")[:top]
    likeliest = [(pipeline.classes[number], float(told[number])) for number in order]
    return Answer(likeliest=likeliest, unsure=not likeliest[0][1] >= least)


def _batches(texts: Iterable[str]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    longest = 0
    for text in texts:
        raw = text.encode("utf-8", "replace")
        longest = max(longest, len(raw))
        if batch and (len(batch) == _ROWS or longest * (len(batch) + 1) > _BYTES):
            yield batch
            batch, longest = [], len(raw)
        batch.append(raw)
    if batch:
        yield batch


def padded(texts: list[bytes]) -> np.ndarray:
    """Return (texts, bytes) uint8, filled up with zeros."""
    width = max(map(len, texts), default=0)
    joined = b"".join(text.ljust(width, b"\0") for text in texts)
    return np.frombuffer(joined, np.uint8).reshape(len(texts), width)
