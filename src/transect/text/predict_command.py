"""`python -m transect.text.predict_command MODEL TICKETS`: what `transect predict` runs.

It needs onnxruntime, and what reads the format.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.errors import BadInput, say_fault
from transect.domain.terminal import say
from transect.text.bundle import Pipeline, read_bundle
from transect.text.corpus import Corpus, gather
from transect.text.dialogue import dialogue
from transect.text.formats import FORMATS
from transect.text.people import People
from transect.text.salt import Salt, read_salt, salt_file
from transect.text.tickets import Rejected, Ticket

# Texts in a batch, and bytes in one of several; the graph needs about 60 bytes for each.
_ROWS, _BYTES = 64, 1 << 19
# Texts, and bytes of texts, that are sorted by length together, so that little is filled up.
_WINDOW, _WINDOW_BYTES = 1024, 1 << 22


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The prediction for a text: the likeliest classes with their probabilities, the likeliest first.

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
        for window in _windows(texts):
            found: list[Any] = [None] * len(window)
            for rows in _batches(window):
                batch = padded([window[row] for row in rows])
                (probabilities,) = self._session.run(None, {"text": batch})
                if probabilities.shape[1] != len(self.pipeline.classes):
                    raise BadInput(
                        f"the model has {probabilities.shape[1]} classes: expected the "
                        f"{len(self.pipeline.classes)} of its pipeline.json"
                    )
                for row, values in zip(rows, probabilities, strict=True):
                    found[row] = values
            yield from found

    def answers(self, texts: Iterable[str], top: int, unsure: float | None = None) -> Iterator[Answer]:
        """Yield the prediction for each text; `unsure`: the least probability, None: the pipeline's."""
        least = self.pipeline.unsure if unsure is None else unsure
        if top < 1 or not 0 <= least <= 1:
            raise BadInput(f"top {top}, unsure {least:g}: expected one or more, and a probability")
        for probabilities in self.probabilities(texts):
            yield _answer(self.pipeline, probabilities, top, least)


def _answer(pipeline: Pipeline, probabilities: np.ndarray, top: int, least: float) -> Answer:
    # Of equally likely ones the first in the order of classes, in every language.
    order = np.argsort(-probabilities, kind="stable")[:top]
    likeliest = [(pipeline.classes[number], float(probabilities[number])) for number in order]
    return Answer(likeliest=likeliest, unsure=not likeliest[0][1] >= least)


def _windows(texts: Iterable[str]) -> Iterator[list[bytes]]:
    window: list[bytes] = []
    size = 0
    for text in texts:
        window.append(text.encode("utf-8", "replace"))
        size += len(window[-1])
        if len(window) == _WINDOW or size >= _WINDOW_BYTES:
            yield window
            window, size = [], 0
    if window:
        yield window


def _batches(texts: list[bytes]) -> Iterator[list[int]]:
    """Yield the numbers of texts that go together, short ones with short ones."""
    batch: list[int] = []
    for number in sorted(range(len(texts)), key=lambda index: len(texts[index])):
        if batch and (len(batch) == _ROWS or len(texts[number]) * (len(batch) + 1) > _BYTES):
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def padded(texts: list[bytes]) -> np.ndarray:
    """Return (texts, bytes) uint8, filled up with zeros."""
    width = max(map(len, texts), default=0)
    joined = b"".join(text.ljust(width, b"\0") for text in texts)
    return np.frombuffer(joined, np.uint8).reshape(len(texts), width)


_SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".mbox": "mbox"}
# A corpus takes no ticket without a label, and here there is none yet.
_NO_QUEUE = "queue"


def format_of(path: Path) -> str:
    """Return the format by the file's name. Raises BadInput for a name without one."""
    name = "email-threads" if path.is_dir() else _SUFFIXES.get(path.suffix.lower())
    if name is None:
        raise BadInput(
            f"{path}: no format is known for this name; expected {', '.join(_SUFFIXES)}, a folder, or "
            f"--format with one of {', '.join(sorted(FORMATS))}"
        )
    return name


def prepared(
    path: Path, kind: str, options: dict[str, Any], pipeline: Pipeline, reject: Callable[[Rejected], None]
) -> Iterator[tuple[str, str]]:
    """Yield id and text of each ticket, in their order; `reject` gets what could not be read.

    The file is read twice where names of people are looked for: everybody has to be known first.
    Raises BadInput for options, files and salts that cannot be used.
    """
    reader = FORMATS.get(kind, "--format")
    if not reader.reads:
        raise BadInput(f"--format {kind}: makes its own tickets and reads none")
    given = {"replies": pipeline.replies, "signatures": pipeline.signatures} | options
    reader.check(given, "--option")

    def tickets() -> Iterator[Ticket | Rejected]:
        return reader.tickets(path, given, 0)

    if pipeline.redact or pipeline.names != "kept":
        salt = read_salt(salt_file())
        people = gather(tickets(), salt)
    else:
        # Nobody is looked for; what is hashed is dropped below.
        salt = Salt(b"")
        people = People(salt)
    corpus = Corpus(label="queue", redacts=pipeline.redact, salt=salt, people=people)
    read = ""

    def labelled() -> Iterator[Ticket | Rejected]:
        nonlocal read
        for ticket in tickets():
            if isinstance(ticket, Ticket):
                read = ticket.id
                ticket = replace(ticket, queue=_NO_QUEUE)
            yield ticket

    for line in corpus.lines(labelled(), reject):
        yield read, dialogue(json.loads(line), pipeline.view, pipeline.names)[0]


_SOME_REJECTED = 1
# ONNX Runtime's own choice of threads: one for each core.
_ALL = 0
# As a shell tells a process that SIGPIPE ended.
_NOBODY_READS = 141


def main(arguments: list[str] | None = None) -> int:
    """Print a line for each ticket; return the exit code: 1 when some could not be read."""
    given = _parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Whatever the terminal is: both forms are UTF-8, and JSON knows half characters by number.
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        return _predict(given)
    except BrokenPipeError:
        # Or Python complains once more when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _NOBODY_READS
    except Exception as error:
        return say_fault(error)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="transect predict")
    parser.add_argument("model", type=Path)
    parser.add_argument("tickets", type=Path)
    parser.add_argument("--format")
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--top", type=int, default=3)
    parser.add_argument("--unsure", type=float)
    parser.add_argument("--output", choices=_WRITERS, default="jsonl")
    return parser


def _predict(given: argparse.Namespace) -> int:
    predictor = Predictor(given.model, threads=_ALL)
    kind = given.format or format_of(given.tickets)
    causes: Counter[str] = Counter()

    def reject(rejection: Rejected) -> None:
        causes[rejection.cause] += 1
        say(f"{rejection.place}: {rejection.cause}{': ' if rejection.detail else ''}{rejection.detail}")

    read = prepared(given.tickets, kind, _options(given.option), predictor.pipeline, reject)
    names: deque[str] = deque()

    def texts() -> Iterator[str]:
        for name, text in read:
            names.append(name)
            yield text

    counts: Counter[bool] = Counter()

    def rows() -> Iterator[tuple[str, Answer]]:
        for answer in predictor.answers(texts(), given.top, given.unsure):
            counts[answer.unsure] += 1
            yield names.popleft(), answer

    _WRITERS[given.output](rows(), min(given.top, len(predictor.pipeline.classes)))
    sys.stdout.flush()
    rejected = ", ".join(f"{count} {cause}" for cause, count in causes.most_common())
    say(
        f"tickets classified: {counts.total()}, unsure: {counts[True]}, not read: {causes.total()}"
        f"{f' ({rejected})' if rejected else ''}"
    )
    return _SOME_REJECTED if causes else 0


def _options(given: list[str]) -> dict[str, Any]:
    """Return options of the format; values are JSON, and text where they are none."""
    options = {}
    for pair in given:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise BadInput(f"--option {pair}: expected KEY=VALUE")
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    return options


def _write_lines(rows: Iterable[tuple[str, Answer]], top: int) -> None:
    for name, answer in rows:
        line = {
            "id": name,
            "class": None if answer.unsure else answer.likeliest[0][0],
            "likeliest": [[kind, round(share, 6)] for kind, share in answer.likeliest],
        }
        print(json.dumps(line, ensure_ascii=False))


def _write_table(rows: Iterable[tuple[str, Answer]], top: int) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    places = [f"{what}_{place}" for place in range(1, top + 1) for what in ("class", "probability")]
    writer.writerow(["id", "class", *places])
    for name, answer in rows:
        cells = [cell for kind, share in answer.likeliest for cell in (kind, f"{share:.6f}")]
        writer.writerow([name, "" if answer.unsure else answer.likeliest[0][0], *cells])


_WRITERS: dict[str, Callable[[Iterable[tuple[str, Answer]], int], None]] = {"jsonl": _write_lines, "csv": _write_table}

if __name__ == "__main__":
    sys.exit(main())
