"""From the files of an image folder to arrays of bytes on disk: each file is read, hashed and decoded once."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from transect.domain.errors import BadInput
from transect.domain.files import digest, write_atomic
from transect.measure.provenance import available_cores
from transect.training.datasets import Division, Stored
from transect.training.datasets._scan import Found, printable
from transect.training.decoding import RESIZING, Unusable, decode, decoder, read_ahead, read_bytes
from transect.training.images import FILE_LIST

# The rest of what was left out stands in the list of files only.
LISTED_IN_RECORD = 20


@dataclass(frozen=True, slots=True)
class _Entry:
    """One used file; `file` is its path below the folder, such as CLASS/NAME."""

    file: str
    label: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What became of one candidate: pixels uint8 (3, size, size), or the reason without them."""

    file: str
    pixels: np.ndarray | None = None
    bytes: int = 0
    sha256: str = ""
    reason: str = ""


def _read(folder: Path, size: int, file: str) -> _Outcome:
    try:
        data = read_bytes(folder / file)
        return _Outcome(file, decode(data, size), len(data), hashlib.sha256(data).hexdigest())
    except Unusable as error:
        return _Outcome(file, reason=str(error))


def _decode_all(scanned: Found, size: int, limit: int | None, raw: BinaryIO) -> tuple[list[_Entry], int]:
    """Write the pixels of all usable files to `raw`, in order; complete the list of the others.

    Returns the used ones, and how many of them, the first, are not of the set's own test part.
    """
    used: list[_Entry] = []
    training = 0
    threads = available_cores()
    with ThreadPoolExecutor(threads) as pool, warnings.catch_warnings():
        # Ours to judge: too many pixels are a reason to leave a file out.
        warnings.simplefilter("ignore")
        make = partial(_read, scanned.folder, size)
        for in_test, label, name, files in _classes(scanned):
            before = len(used)
            with closing(read_ahead(pool, make, files, 4 * threads)) as outcomes:
                for outcome in outcomes:
                    if outcome.pixels is None:
                        scanned.leave_out(outcome.file, outcome.reason)
                        continue
                    raw.write(outcome.pixels.data)
                    used.append(_Entry(outcome.file, label, outcome.bytes, outcome.sha256))
                    if len(used) - before == limit:
                        break
            _check_count(scanned, name, files, len(used) - before, in_test)
            training = training if in_test else len(used)
    return used, training


def _classes(scanned: Found) -> Iterator[tuple[bool, int, str, list[str]]]:
    """Yield whether it is of the test part, number, name and files of each class, the training part first."""
    for part in (scanned.train, scanned.test or {}):
        for label, (name, files) in enumerate(part.items()):
            yield part is scanned.test, label, name, files


def _check_count(scanned: Found, name: str, files: list[str], usable: int, in_test: bool) -> None:
    """Raise BadInput for a class with too few usable files: two, of which one is drawn, or one of each part."""
    least = 2 if scanned.test is None else 1
    if usable >= least:
        return
    mine = {*map(printable, files)}
    refused = [row for row in scanned.left_out if row["file"] in mine or row["file"].startswith(f"{printable(name)}/")]
    reasons = "".join(f"; {row['file']}: {row['reason']}" for row in refused[:3])
    where = "" if scanned.test is None else f" in the {'test' if in_test else 'training'} part"
    needed = "at least 2 are needed" if least == 2 else "at least 1 is needed"
    raise BadInput(
        f"{printable(str(scanned.folder))}: class '{printable(name)}' has {usable} usable images{where}, {needed}{reasons}"
    )


def _rows(raw: BinaryIO, numbers: np.ndarray, shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    """Read single images of `raw`: mapping it would count its pages as this process's memory."""
    row = np.empty(shape, np.uint8)
    for number in numbers:
        raw.seek(int(number) * row.nbytes)
        raw.readinto(row.data)  # type: ignore[attr-defined]
        yield row


def _write_part(raw: BinaryIO, numbers: np.ndarray, shape: tuple[int, ...], path: Path) -> None:
    with path.open("wb") as stream:
        header = {"descr": "|u1", "fortran_order": False, "shape": (len(numbers), *shape)}
        np.lib.format.write_array_header_1_0(stream, header)
        for row in _rows(raw, numbers, shape):
            stream.write(row.data)


def _moments(raw: BinaryIO, numbers: np.ndarray, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and deviation per channel of bytes scaled to 0..1.

    Sums of integers are exact in float64 up to 2^53 and go on as Python's own, so neither the order
    nor the number of images rounds anything before the last division.
    """
    totals, squares = [0] * shape[0], [0] * shape[0]
    for row in _rows(raw, numbers, shape):
        for channel, values in enumerate(row.reshape(shape[0], -1).astype(np.float64)):
            totals[channel] += int(values.sum())
            squares[channel] += int(values @ values)
    count = len(numbers) * shape[1] * shape[2]
    mean = [total / (255 * count) for total in totals]
    variance = [
        (count * square - total * total) / (255 * count) ** 2 for total, square in zip(totals, squares, strict=True)
    ]
    return np.array(mean), np.sqrt(np.array(variance))


def _lines(entries: list[dict[str, Any]]) -> str:
    return "[\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]"


def _write_list(path: Path, head: dict[str, Any], lists: dict[str, list[dict[str, Any]]]) -> None:
    """Write one JSON object with a line for each file; ASCII, as names may not be UTF-8."""
    parts = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    parts += [f"{json.dumps(key)}: {_lines(value)}" for key, value in lists.items()]
    write_atomic(path, "{\n" + ",\n".join(parts) + "\n}\n")


def store(
    scanned: Found,
    *,
    size: int,
    limit: int | None,
    divide: Division,
    out: Path,
    named: str,
    source: str,
    details: dict[str, Any] | None = None,
) -> Stored:
    """Decode all files into `out`; memory does not grow with their number.

    `limit`: usable files per class and part, in the order of their names. `named`: the folder as the list
    of files names it, relative to `out` or absolute. The set's own test part is the test part. Raises BadInput when
    a class has too few usable files, or when the training part has no contrast.
    """
    shape = (3, size, size)
    classes = tuple(printable(name) for name in scanned.train)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=out) as raw:
        used, training = _decode_all(scanned, size, limit, raw)
        y = np.array([entry.label for entry in used], np.int64)
        own = None if scanned.test is None else np.arange(training, len(used))
        train, test = divide(shape, y, classes, own)
        mean, deviation = _moments(raw, train, shape)
        if not deviation.all():
            raise BadInput(f"{printable(str(scanned.folder))}: all training images have the same value in a channel")
        _write_part(raw, train, shape, out / "x_train.npy")
        _write_part(raw, test, shape, out / "x_test.npy")
    head = {"folder": named, "size": size, "classes": classes, "decoder": decoder()}
    parts = {"train": train, "test": test}
    lists = {part: [asdict(used[i]) for i in numbers] for part, numbers in parts.items()}
    _write_list(out / FILE_LIST, head, lists | {"left_out": scanned.left_out})
    return Stored(
        y=y,
        train=train,
        test=test,
        shape=shape,
        classes=classes,
        mean=mean,
        deviation=deviation,
        source=source,
        source_sha256=digest(part for image in used for part in (os.fsencode(image.file), image.sha256)),
        files=("x_train.npy", "x_test.npy", FILE_LIST),
        details={
            "generated": False,
            "files_used": len(used),
            "bytes_used": sum(entry.bytes for entry in used),
            "left_out_count": len(scanned.left_out),
            "left_out": scanned.left_out[:LISTED_IN_RECORD],
            "hidden_count": len(scanned.hidden),
            "file_list": FILE_LIST,
            "layout": scanned.layout,
            "test_part": "drawn" if scanned.test is None else "the set's own",
            "other_classes": scanned.other_classes,
            "resizing": RESIZING,
            "decoder": decoder(),
        }
        | ({"label_rule": scanned.rule} if scanned.rule else {})
        | (details or {}),
    )
