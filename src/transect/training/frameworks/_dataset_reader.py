"""Asks a user's dataset for each sample in each step, by torch's workers, with all that it draws seeded."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from transect.domain.errors import BadInput
from transect.training.frameworks._module_files import make_dataset
from transect.training.frameworks._torch_modules import draw_from


class DatasetReader:
    """Reads samples of the training part.

    What a sample's transform draws follows from repeat, epoch and sample: the same in all frameworks, ranks and the
    reference. Of a DataLoader its dataset and number of workers are taken; which samples come when is the study's.
    """

    def __init__(self, options: dict[str, Any], repeat: int, dtype: Any) -> None:
        where = f"{options['path']}:{options['name']}"
        given = make_dataset(options)
        part = given[0] if isinstance(given, tuple) else given
        self._workers = int(getattr(part, "num_workers", 0))
        self._dataset = getattr(part, "dataset", part) if hasattr(part, "num_workers") else part
        if not hasattr(self._dataset, "__getitem__") or hasattr(part, "shape") or isinstance(part, Mapping | tuple):
            raise BadInput(f"{where}: gives no dataset that could be asked in each step: input 'files' needs one")
        self._repeat, self._dtype = repeat, dtype

    def read(self, steps: list[tuple[int, np.ndarray]]) -> Iterator[np.ndarray]:
        """Yield the samples (n, ...) of each step, given its epoch and their rows."""
        from torch.utils.data import DataLoader

        batches = [[(epoch, int(row)) for row in rows] for epoch, rows in steps]
        yield from DataLoader(
            _Seeded(self._dataset, self._repeat, self._dtype),
            batch_sampler=batches,
            num_workers=self._workers,
            collate_fn=np.stack,
        )

    def close(self) -> None:
        """Workers end with their iterator."""


class _Seeded:
    def __init__(self, dataset: Any, repeat: int, dtype: Any) -> None:
        self._dataset, self._repeat, self._dtype = dataset, repeat, dtype

    def __getitem__(self, which: tuple[int, int]) -> np.ndarray:
        draw_from(zlib.crc32(np.array([self._repeat, *which]).tobytes()))
        x = np.asarray(self._dataset[which[1]][0])
        # As `samples_of` takes them.
        if x.dtype == np.uint8:
            return x.astype(self._dtype) / 255
        return x.astype(self._dtype if x.dtype.kind == "f" else np.int64)
