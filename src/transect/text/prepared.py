"""New tickets on the way to a model: what was done to those that it was trained on is done to them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from transect.domain.errors import BadInput
from transect.text.bundle import Pipeline
from transect.text.corpus import Corpus, gather
from transect.text.dialogue import dialogue
from transect.text.formats import FORMATS
from transect.text.people import People
from transect.text.salt import Salt, read_salt, salt_file
from transect.text.tickets import Rejected, Ticket

_SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".mbox": "mbox"}
# A corpus takes no ticket without a label, and here there is none yet.
_NO_QUEUE = "queue"


def format_of(path: Path) -> str:
    """Tell the format by the name. Raises BadInput where that tells nothing."""
    name = "email-threads" if path.is_dir() else _SUFFIXES.get(path.suffix.lower())
    if name is None:
        raise BadInput(
            f"{path}: its name tells no format; expected {', '.join(_SUFFIXES)}, a folder, or "
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
