"""Images: stored as bytes, normalised when they are read, decoded from files by threads."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.errors import BadInput
from transect.training.decoding import Unusable, decode, decoder, read_bytes

# Which image files the data stage read, beside its arrays.
FILE_LIST = "files.json"


class Images:
    """An array of bytes (n, C, H, W), maybe mapped from disk, that reads as normalised floats.

    Indexing with an array of numbers gives (x / 255 - mean) / deviation, computed in `dtype`, with
    `mean` and `deviation` per channel.
    """

    def __init__(self, stored: np.ndarray, mean: np.ndarray, deviation: np.ndarray, dtype: Any) -> None:
        self._stored = stored
        self._scale = (1 / (255 * deviation)).astype(dtype).reshape(-1, 1, 1)
        self._shift = (mean / deviation).astype(dtype).reshape(-1, 1, 1)
        self._dtype = dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of images and the shape of each."""
        return self._stored.shape

    def __len__(self) -> int:
        return len(self._stored)

    def __getitem__(self, indices: Any) -> np.ndarray:
        values: np.ndarray = self._stored[indices].astype(self._dtype)
        values *= self._scale
        values -= self._shift
        return values


class FileReader:
    """Decodes and resizes the files of batches ahead of their use, in `threads` threads.

    `folder` is the data stage's: its list of files tells which file each row of `x_train` is. While
    a step is used, the files of the next one are decoded; no more than these two are in memory.
    Every file's checksum is compared, so a step's `input` time holds reading, SHA-256 and decoding.
    Raises BadInput when the dataset has no files, when one has gone or changed, or when the Pillow
    of this environment decodes otherwise than that of the data stage.
    """

    def __init__(self, folder: Path, dtype: Any, threads: int) -> None:
        try:
            table = json.loads((folder / FILE_LIST).read_text(encoding="ascii"))
        except FileNotFoundError:
            raise BadInput(f"input 'files' needs a dataset of image files: {folder} has no {FILE_LIST}") from None
        with np.load(folder / "data.npz") as file:
            self._scaling = file["mean"], file["deviation"], dtype
        self._files, self._size = table["train"], table["size"]
        # An absolute path stays as it is; generated files lie in the data stage's own folder.
        self._folder = folder / table["folder"]
        self._compare_decoders(np.load(folder / "x_train.npy", mmap_mode="r"), table["decoder"])
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="transect-decode")

    def _compare_decoders(self, stored: np.ndarray, then: dict[str, str]) -> None:
        row = np.empty_like(stored[0])
        self._decode(0, row)
        if not np.array_equal(row, stored[0]):
            raise BadInput(
                f"{self._folder / self._files[0]['file']}: {decoder()} decodes other pixels than "
                f"{then} did in the data stage: pin one version in all environments"
            )

    def _decode(self, number: int, row: np.ndarray) -> None:
        entry = self._files[number]
        path = self._folder / entry["file"]
        try:
            data = read_bytes(path)
            if hashlib.sha256(data).hexdigest() != entry["sha256"]:
                raise Unusable("its content is another")
            row[...] = decode(data, self._size)
        except Unusable as error:
            raise BadInput(f"{path}: {error}, since the data stage read it") from None

    def read(self, steps: list[tuple[int, np.ndarray]]) -> Iterator[np.ndarray]:
        """Yield the normalised pixels of each step's samples, dtype (n, 3, size, size); they are the same in each epoch."""
        waiting: deque[tuple[np.ndarray, list[Future[None]]]] = deque()
        try:
            for _, step in steps:
                rows = np.empty((len(step), 3, self._size, self._size), np.uint8)
                pairs = zip(step.tolist(), rows, strict=True)
                waiting.append((rows, [self._pool.submit(self._decode, *pair) for pair in pairs]))
                if len(waiting) > 1:
                    yield self._finished(*waiting.popleft())
            while waiting:
                yield self._finished(*waiting.popleft())
        finally:
            for _, futures in waiting:
                for future in futures:
                    future.cancel()

    def _finished(self, rows: np.ndarray, futures: list[Future[None]]) -> np.ndarray:
        for future in futures:
            future.result()
        return Images(rows, *self._scaling)[:]

    def close(self) -> None:
        """End the threads. May be called again."""
        self._pool.shutdown(wait=True, cancel_futures=True)
