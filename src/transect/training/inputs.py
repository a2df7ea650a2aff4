"""Where a rank's batches come from: the data stage's arrays, image files, or random numbers."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from transect.training.datasets import Reader
from transect.training.frameworks import Trainer
from transect.training.images import Images
from transect.training.layout import Layout, Share
from transect.training.models import Model

# How many different batches the synthetic twin goes round.
SYNTHETIC_BATCHES = 4

Batch = tuple[object, object]


class Batches(ABC):
    """Iterating yields epochs, each an iterator over this rank's batches on the device."""

    steps_per_epoch: int
    epochs: int
    # What accuracy is measured on: indexing with numbers gives normalised samples.
    x_test: Any
    y_test: np.ndarray

    def __iter__(self) -> Iterator[Iterator[Batch]]:
        for epoch in range(self.epochs):
            yield self.steps(epoch * self.steps_per_epoch, self.steps_per_epoch)

    @abstractmethod
    def steps(self, first: int, count: int) -> Iterator[Batch]:
        """Yield the batches of `count` steps from step `first` on, across the ends of epochs."""

    def close(self) -> None:
        """End threads that read ahead."""


def load_arrays(folder: Path, dtype: Any = np.float64) -> dict[str, Any]:
    """Return `x_train`, `y_train`, `x_test`, `y_test` of the data stage; real samples are of `dtype`.

    `x_device` and `y_device` too, where the dataset keeps samples for retraining. They are rounded here, once. Images stay on disk as bytes: indexing them gives normalised arrays.
    """
    with np.load(folder / "data.npz") as file:
        data: dict[str, Any] = {name: file[name] for name in file.files}
    if "mean" in data:
        mean, deviation = data.pop("mean"), data.pop("deviation")
        for part in ("x_train", "x_test"):
            stored = np.load(folder / f"{part}.npy", mmap_mode="r")
            data[part] = Images(stored, mean, deviation, dtype)
        return data
    for name in data:
        if name.startswith("x_"):
            data[name] = _rounded(data[name], dtype)
    return data


def _rounded(x: np.ndarray, dtype: Any) -> np.ndarray:
    """Bring numbers to `dtype`; integers are what they are, such as tokens."""
    return x.astype(dtype, copy=False) if x.dtype.kind == "f" else x


def load_weights(folder: Path, repeat: int) -> dict[str, np.ndarray]:
    """Return the repeat's initial weights."""
    with np.load(folder / f"start-{repeat}.npz") as file:
        return {name: file[name] for name in file.files if name != "order"}


def load_data(folder: Path, repeat: int, dtype: Any = np.float64) -> dict[str, Any]:
    """Return `load_arrays` with the repeat's batch order as `order`."""
    with np.load(folder / f"start-{repeat}.npz") as file:
        return load_arrays(folder, dtype) | {"order": file["order"]}


def drawn_for(samples: np.ndarray) -> int:
    """Return the seed of what a step draws: it follows from the numbers of a rank's samples, in their order.

    So it is another one in each epoch, repeat and rank, and the same one in the reference, and after a restart.
    """
    return zlib.crc32(samples.tobytes())


class StoredBatches(Batches):
    """Batches of the data stage's arrays, cut out and brought to the device in each step.

    `order` is (epochs, n). The global batch is cut in `share.count` equal parts in their order, so that their union is
    the single-rank batch; the last partial batch of an epoch is left out.
    """

    def __init__(self, trainer: Trainer, data: dict[str, Any], batch: int, share: Share) -> None:
        self._trainer, self._batch = trainer, batch
        self._local = batch // share.count
        self._offset = share.number * self._local
        self._x, self._y, self._order = data["x_train"], data["y_train"], data["order"]
        self.epochs = len(self._order)
        self.steps_per_epoch = self._order.shape[1] // batch
        self.x_test, self.y_test = data["x_test"], data["y_test"]

    def indices(self, number: int) -> np.ndarray:
        """Return this rank's sample numbers of a step."""
        epoch, step = divmod(number, self.steps_per_epoch)
        start = step * self._batch + self._offset
        found: np.ndarray = self._order[epoch, start : start + self._local]
        return found

    def steps(self, first: int, count: int) -> Iterator[Batch]:
        for i in map(self.indices, range(first, first + count)):
            self._trainer.seed(drawn_for(i))
            yield self._trainer.batch(self._x[i], self._y[i])


class FileBatches(StoredBatches):
    """The same samples, but read again ahead of the step: `train_rows` are their numbers where they were divided.

    `drawn`: reading draws, as augmentation does, so restarts read them too. Image files have the pixels of the data
    stage's arrays, which `steps` takes.
    """

    def __init__(
        self, trainer: Trainer, data: dict[str, Any], batch: int, share: Share, reader: Reader, *, drawn: bool
    ) -> None:
        super().__init__(trainer, data, batch, share)
        self._reader, self._drawn, self._rows = reader, drawn, data.get("train_rows")

    def __iter__(self) -> Iterator[Iterator[Batch]]:
        for epoch in range(self.epochs):
            yield self._read(epoch * self.steps_per_epoch, self.steps_per_epoch)

    def _read(self, first: int, count: int) -> Iterator[Batch]:
        numbers = range(first, first + count)
        chosen = [self.indices(number) for number in numbers]
        rows = chosen if self._rows is None else [self._rows[i] for i in chosen]
        epochs = [number // self.steps_per_epoch for number in numbers]
        read = self._reader.read(list(zip(epochs, rows, strict=True)))
        for x, i in zip(read, chosen, strict=True):
            self._trainer.seed(drawn_for(i))
            yield self._trainer.batch(x, self._y[i])

    def steps(self, first: int, count: int) -> Iterator[Batch]:
        return self._read(first, count) if self._drawn else super().steps(first, count)

    def close(self) -> None:
        self._reader.close()


class NoBatches(Batches):
    """The batches of a rank that computes none: as many steps, each (None, None)."""

    def __init__(self, data: dict[str, Any], batch: int, model: Model, *, tested: bool) -> None:
        self.epochs = len(data["order"])
        self.steps_per_epoch = data["order"].shape[1] // batch
        self.x_test, self.y_test = data["x_test"], data["y_test"]
        if not tested:
            self.x_test, self.y_test = np.empty((0, *model.sample)), np.empty(0, np.int64)

    def steps(self, first: int, count: int) -> Iterator[Batch]:
        return ((None, None) for _ in range(count))


class DealtBatches(Batches):
    """Batches where ranks come and go (`Layout.workers`): a step's are (parts, None).

    Of a server, `parts` is how many workers are there; of a worker an iterator over (part, x, y), each made when it
    is asked for. `of_part` holds a rank's batches for each part of the whole one.

    Raises BadInput when the training has fewer steps than spans.
    """

    def __init__(self, layout: Layout, rank: int, of_part: Sequence[Batches]) -> None:
        self._layout, self._rank, self._of_part = layout, rank, of_part
        self.epochs, self.steps_per_epoch = of_part[0].epochs, of_part[0].steps_per_epoch
        self.x_test, self.y_test = of_part[0].x_test, of_part[0].y_test
        self._steps = self.epochs * self.steps_per_epoch
        layout.check_steps(self._steps)

    def steps(self, first: int, count: int) -> Iterator[Batch]:
        for number in range(first, first + count):
            if self._rank < self._layout.servers:
                yield self._layout.there(number, self._steps), None
            else:
                yield self._dealt(number), None

    def _dealt(self, number: int) -> Iterator[tuple[int, object, object]]:
        for part in self._layout.parts(self._rank, number, self._steps):
            for x, y in self._of_part[part].steps(number, 1):
                yield part, x, y

    def close(self) -> None:
        for batches in self._of_part:
            batches.close()


def draw_batch(model: Model, seed: int, number: int, which: range, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples `which` of the synthetic twin's batch `number`; real ones are of `dtype`."""
    drawn = [model.draw(np.random.default_rng([seed, number, i])) for i in which]
    x, y = (np.stack(arrays) for arrays in zip(*drawn, strict=True))
    return _rounded(x, dtype), y


class SyntheticBatches(Batches):
    """A twin of the data with the same shapes: random batches that lie on the device already.

    What a step costs without any input. The numbers depend on `seed` alone, whatever the ranks.
    There is nothing to learn and no test part.
    """

    def __init__(
        self,
        trainer: Trainer,
        model: Model,
        share: Share,
        *,
        batch: int,
        epochs: int,
        steps: int,
        seed: int,
        dtype: Any = np.float64,
    ) -> None:
        self.epochs, self.steps_per_epoch = epochs, steps
        self.x_test, self.y_test = np.empty((0, *model.sample)), np.empty(0, np.int64)
        local = batch // share.count
        mine = range(share.number * local, (share.number + 1) * local)
        self._trainer, self._mine, self._batches = trainer, np.arange(mine.start, mine.stop), []
        for number in range(min(steps, SYNTHETIC_BATCHES)):
            self._batches.append(trainer.batch(*draw_batch(model, seed, number, mine, dtype)))

    def steps(self, first: int, count: int) -> Iterator[Batch]:
        for number in range(first, first + count):
            self._trainer.seed(drawn_for(self._mine + number * self._mine.size))
            yield self._batches[number % len(self._batches)]
