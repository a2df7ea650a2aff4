"""One corpus.

Leaves `tickets.jsonl`, a ticket a line; `labels.npy` (n,) int32, `times.npy` (n,) float64 in seconds since 1970 with
NaN for none, `owners.npy` (n,) int32 with -1 for none; `bayes.npz` where the format knows how probable the likeliest
label is; `rejected.jsonl` with what could not be read; and `result.json`. Identities are hashed with the salt; nothing
is written that has not been redacted, if it is to be. A few numbers of each ticket are in memory, and one ticket.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from itertools import compress, islice
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.errors import BadInput
from transect.domain.files import digest, sha256_file, writing
from transect.onnx_models.results import result
from transect.text.corpus import Corpus, PeopleNamed, gather
from transect.text.formats import FORMATS
from transect.text.lines import write_array, write_arrays, writing_lines
from transect.text.people import People
from transect.text.salt import Salt, public_salt, read_salt
from transect.text.tickets import Rejected, Ticket, rejected

_ARRAYS = ("labels", "times", "owners")
# So that a limit draws otherwise than a format that makes tickets from the same seed.
_DRAW = 27
# Lines that are written at once.
_TOGETHER = 64


def run(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Make one cell; return its result."""
    # Without a file of the key the tickets hold nobody.
    key = spec["run"].get("salt")
    return build(spec, read_salt(Path(key)) if key else public_salt(), out)


def build(spec: dict[str, Any], salt: Salt, out: Path) -> dict[str, Any]:
    """Write the corpus of one cell into `out`; return its result. Raises BadInput without a ticket."""
    rule = spec["rule"]
    kind = FORMATS.get(rule["format"])
    path = Path(rule["path"]) if rule["path"] else None
    given = (path, rule["options"], spec["seed"])
    try:
        corpus, rows = _take(kind.tickets(*given), spec, salt, None, out)
    except PeopleNamed:
        people = gather(kind.tickets(*given), salt)
        corpus, rows = _take(kind.tickets(*given), spec, salt, people, out)
    causes = dict(corpus.causes.most_common())
    if not len(rows):
        counts = ", ".join(f"{cause} {many}" for cause, many in causes.items())
        raise BadInput(
            f"{path or rule['format']}: no ticket to use of {corpus.read}{counts and ': '}{counts}; expected "
            f"some with text and {rule['label']}; rejected.jsonl lists the others"
        )
    arrays, details = corpus.columns.arrays(rows)
    for name in _ARRAYS:
        write_array(out / f"{name}.npy", arrays.pop(name))
    if arrays:
        write_arrays(out / "bayes.npz", arrays)
    found = details.pop("found")
    known = getattr(kind, "accuracy", None)
    best = known(rule["options"], spec["seed"], rule["label"]) if known is not None else None
    return result(
        details=details
        | {
            "read": corpus.read,
            "rejected": causes,
            "label": rule["label"],
            "format": rule["format"],
            "synthetic": kind.synthetic,
            # The name of a file or folder that was not there, in whose place these tickets were made.
            "instead_of": rule.get("instead_of"),
            "source_sha256": None if path is None else _checksum(path),
            "redacted": found if rule["redact"] else dict.fromkeys(found, 0),
            "names_found": found["names"],
            "people": corpus.people,
            "bayes_accuracy": best,
        }
    )


def _take(
    tickets: Iterator[Ticket | Rejected], spec: dict[str, Any], salt: Salt, people: People | None, out: Path
) -> tuple[Corpus, np.ndarray]:
    """Write `tickets.jsonl` and `rejected.jsonl`; return the corpus, and which of its tickets stay."""
    rule = spec["rule"]
    corpus = Corpus(label=rule["label"], redacts=rule["redact"], salt=salt, people=people)
    # Redacted, but which stay is not known yet; without a name nothing is left of it.
    with tempfile.TemporaryFile(dir=out) as every, writing_lines(out / "rejected.jsonl") as write:
        lines = corpus.lines(tickets, lambda rejection: write(asdict(rejection)))
        while some := "".join(islice(lines, _TOGETHER)):
            every.write(some.encode())
        first = corpus.columns.first_of_each_id()
        rows = np.flatnonzero(first == np.arange(len(first)))
        for row in np.flatnonzero(first != np.arange(len(first))).tolist():
            corpus.causes["duplicate-id"] += 1
            place, detail = (corpus.columns.place(row), f"that of {corpus.columns.place(int(first[row]))}")
            write(asdict(rejected(place, "duplicate-id", detail)))
        if rule["limit"] is not None and rule["limit"] < len(rows):
            generator = np.random.default_rng([spec["seed"], _DRAW])
            rows = np.sort(generator.choice(rows, rule["limit"], replace=False))
        every.seek(0)
        with writing(out / "tickets.jsonl") as stream:
            if len(rows) == len(first):
                shutil.copyfileobj(every, stream, 1 << 20)
            else:
                stays = np.zeros(len(first), bool)
                stays[rows] = True
                stream.writelines(compress(every, stays))
    return corpus, rows


def _checksum(path: Path) -> str:
    """Return SHA-256 of a file; of a folder, that of the names and checksums of its files."""
    if path.is_file():
        return sha256_file(path)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    return digest(f"{file.relative_to(path)} {sha256_file(file)}" for file in files)
