"""ONNX's operator tests as one archive: what is called what in it, and how it is opened."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from transect.domain.errors import BadInput

ARCHIVE = "nodetests.tar"
CASES = "cases.json"
MODEL, INPUTS, EXPECTED, OUTPUTS = "model.onnx", "inputs", "expected", "outputs"


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeTest:
    """One test: `opset` is the version that its model asks for, tolerances are ONNX's own."""

    name: str
    opset: str
    rtol: float
    atol: float


def known_tests(archive: Path) -> list[NodeTest]:
    """Return an archive's tests, sorted by name. Raises BadInput naming the archive."""
    with _opened(archive) as packed:
        listed = packed.extractfile(CASES)
        if listed is None:
            raise ValueError(f"{CASES} is no file")
        return [NodeTest(**entry) for entry in json.load(listed)]


def unpack(archive: Path, tests: Iterable[NodeTest], folder: Path) -> None:
    """Unpack some of an archive's tests into `folder`. Raises BadInput naming the archive."""
    wanted = {test.name for test in tests}
    with _opened(archive) as packed:
        members = [member for member in packed if member.name.partition("/")[0] in wanted]
        packed.extractall(folder, members, filter="data")


@contextmanager
def _opened(archive: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(archive) as packed:
            yield packed
    except (OSError, tarfile.TarError, KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{archive}: no archive of node tests ({type(error).__name__}: {error})") from None
