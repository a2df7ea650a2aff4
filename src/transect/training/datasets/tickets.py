"""Tickets of the study: rows of word numbers, as a cell of the encode stage leaves them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from transect.domain.axes.text import EncodeCell
from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.domain.record import read_record
from transect.training.datasets import DATASETS, DerivedDataset, Samples

_UNKNOWN = 1
# A part for devices there need not be.
_PARTS, _DEVICE = ("train", "test"), "on_device"


class Options(BaseModel):
    """The encoded tickets to train on, by the names of the study's `tickets`, and how they are cut.

    Rows are cut or padded to `length` words; a word's number of `vocabulary` or more is a rare
    word's, as the most frequent come first, and becomes the unknown one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    corpus: str
    split: str
    embeddings: str
    words: str = "quantile"
    view: str = "conversation"
    names: str = "pseudonyms"
    stop_words: bool = False
    length: int = Field(ge=1)
    vocabulary: int = Field(ge=3)


@DATASETS.register("tickets")
class Tickets(DerivedDataset):
    """Encoded tickets of the study: the parts `train` and `test` of a split.

    Where the split has a part `on_device`, retraining is on that, and federated learning of its `clients`.
    """

    stages = ("encode",)
    details = ("classes", "synthetic")
    option_names = tuple(Options.model_fields)

    def cells(self, options: dict[str, Any]) -> dict[str, Cell]:
        """Return the encoded tickets. Raises BadInput for options that name none."""
        given = _options(options).model_dump(exclude={"length", "vocabulary"})
        try:
            return {"encode": EncodeCell(**given)}
        except ValidationError as error:
            raise BadInput(f"no encoded tickets have the options {given}: {error}") from None

    def load_from(self, options: dict[str, Any], folders: Mapping[str, Path]) -> Samples:
        """Read the parts. Raises BadInput where the one that trains or tests is empty."""
        settings, folder = _options(options), folders["encode"]
        details = read_record(folder / "record.json").details
        rows: list[np.ndarray] = []
        labels, places = [], {}
        for part in (*_PARTS, _DEVICE):
            file = folder / f"x_{part}.npy"
            if part in _PARTS and not file.is_file():
                raise BadInput(f"split '{settings.split}' has no tickets in its part `{part}`")
            if file.is_file():
                first = sum(len(taken) for taken in rows)
                rows.append(_fitted(np.load(file), settings))
                labels.append(np.load(folder / f"y_{part}.npy"))
                places[part] = np.arange(first, first + len(rows[-1]))
        made_up = ", synthetic" if details["synthetic"] else ""
        return Samples(
            x=np.concatenate(rows),
            y=np.concatenate(labels),
            classes=tuple(details["classes"]),
            source=f"tickets of '{settings.corpus}', encoded{made_up}",
            file=folder / "x_train.npy",
            test=places["test"],
            device=places.get(_DEVICE),
            clients=_clients(folder),
        )

    def normalise(self, train: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return train, other


def _clients(folder: Path) -> np.ndarray | None:
    """Return of each ticket for devices its client, int64; None where the split has none."""
    parts = sorted(folder.glob("rows_client-*.npy"), key=lambda file: int(file.stem.rpartition("-")[2]))
    if not parts:
        return None
    rows = np.load(folder / f"rows_{_DEVICE}.npy")
    found = np.empty(len(rows), np.int64)
    for client, file in enumerate(parts):
        found[np.searchsorted(rows, np.load(file))] = client
    return found


def _options(options: dict[str, Any]) -> Options:
    try:
        return Options.model_validate(options)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise BadInput(f"option '{name}' of dataset tickets: {first['msg']}") from None


def _fitted(x: np.ndarray, settings: Options) -> np.ndarray:
    """Return int64 (n, length)."""
    fitted = np.zeros((len(x), settings.length), np.int64)
    kept = x[:, : settings.length]
    fitted[:, : kept.shape[1]] = np.where(kept < settings.vocabulary, kept, _UNKNOWN)
    return fitted
