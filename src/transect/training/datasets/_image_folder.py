"""From `FOLDER/CLASS/FILE` to arrays of bytes on disk: each file is read, hashed and decoded once."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from transect.domain.errors import BadInput
from transect.domain.files import digest, write_atomic
from transect.measure.provenance import available_cores
from transect.training.datasets import Division, Stored
from transect.training.decoding import RESIZING, Unusable, decode, decoder, read_ahead, read_bytes
from transect.training.images import FILE_LIST

SUFFIXES = (".jpg", ".jpeg", ".png")
# The rest of what was left out stands in the list of files only.
LISTED_IN_RECORD = 20


@dataclass(frozen=True, slots=True)
class _Entry:
    """One used file; `file` is CLASS/NAME."""

    file: str
    label: int
    bytes: int
    sha256: str


@dataclass(kw_only=True, slots=True)
class Found:
    """What a folder holds: candidates by class, both sorted by the bytes of their names."""

    folder: Path
    candidates: dict[str, list[str]]
    left_out: list[dict[str, str]] = field(default_factory=list)
    hidden: int = 0


def printable(name: str) -> str:
    """Return a file name as text that can be stored: what is not UTF-8 becomes `\\xNN`."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _entries(folder: Path, found: Found) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as scanned:
            entries = sorted(scanned, key=lambda entry: os.fsencode(entry.name))
    except OSError as error:
        raise BadInput(f"{printable(str(folder))}: {error.strerror}") from None
    found.hidden += sum(entry.name.startswith(".") for entry in entries)
    return [entry for entry in entries if not entry.name.startswith(".")]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        # A link that leads nowhere, or to itself.
        return False


def scan(folder: Path) -> Found:
    """List the folder's classes and files. Raises BadInput when there are fewer than two classes.

    Links are followed, but no folders inside a class are: they cannot lead round in circles.
    """
    scanned = Found(folder=folder, candidates={})
    for entry in _entries(folder, scanned):
        if not _is_folder(entry):
            reason = "beside the class folders"
            scanned.left_out.append({"file": printable(entry.name), "reason": reason})
            continue
        names: list[str] = []
        for file in _entries(folder / entry.name, scanned):
            # A folder by the name of an image is left to the reader, which says what it is.
            if file.name.lower().endswith(SUFFIXES):
                names.append(file.name)
                continue
            inner = "a folder inside a class folder"
            reason = inner if _is_folder(file) else f"not named {', '.join(SUFFIXES)}"
            name = printable(f"{entry.name}/{file.name}")
            scanned.left_out.append({"file": name, "reason": reason})
        scanned.candidates[entry.name] = names
    if len(scanned.candidates) < 2:
        raise BadInput(
            f"{printable(str(folder))}: {len(scanned.candidates)} class folders, at least 2 are "
            "needed: expected FOLDER/CLASS/*.jpg, a folder for each class"
        )
    return scanned


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


def _decode_all(scanned: Found, size: int, limit: int | None, raw: BinaryIO) -> list[_Entry]:
    """Write the pixels of all usable files to `raw`, in order; complete the list of the others."""
    used: list[_Entry] = []
    threads = available_cores()
    with ThreadPoolExecutor(threads) as pool, warnings.catch_warnings():
        # Ours to judge: too many pixels are a reason to leave a file out.
        warnings.simplefilter("ignore")
        for label, (name, files) in enumerate(scanned.candidates.items()):
            before = len(used)
            make = partial(_read, scanned.folder, size)
            paths = [f"{name}/{file}" for file in files]
            with closing(read_ahead(pool, make, paths, 4 * threads)) as outcomes:
                for outcome in outcomes:
                    file = outcome.file
                    if outcome.pixels is None:
                        refused = {"file": printable(file), "reason": outcome.reason}
                        scanned.left_out.append(refused)
                        continue
                    raw.write(outcome.pixels.data)
                    used.append(_Entry(file, label, outcome.bytes, outcome.sha256))
                    if len(used) - before == limit:
                        break
            if len(used) - before < 2:
                raise _too_few(scanned, printable(name), len(used) - before)
    return used


def _too_few(scanned: Found, name: str, usable: int) -> BadInput:
    mine = [refused for refused in scanned.left_out if refused["file"].startswith(f"{name}/")]
    reasons = "".join(f"; {refused['file']}: {refused['reason']}" for refused in mine[:3])
    return BadInput(
        f"{printable(str(scanned.folder))}: class '{name}' has {usable} usable images, at least 2 are needed{reasons}"
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

    `limit`: usable files per class, in the order of their names. `named`: the folder as the list
    of files names it, relative to `out` or absolute. Raises BadInput when a class has fewer than
    two usable files, or when the training part has no contrast.
    """
    shape = (3, size, size)
    classes = tuple(printable(name) for name in scanned.candidates)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=out) as raw:
        used = _decode_all(scanned, size, limit, raw)
        y = np.array([entry.label for entry in used], np.int64)
        train, test = divide(shape, y, classes)
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
            "hidden_count": scanned.hidden,
            "file_list": FILE_LIST,
            "resizing": RESIZING,
            "decoder": decoder(),
        }
        | (details or {}),
    )
