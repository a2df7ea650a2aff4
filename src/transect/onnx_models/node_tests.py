"""ONNX's operator tests as one archive: what is called what in it, and how it is opened."""

from __future__ import annotations

import json
import tarfile
from dataclasses import dataclass
from pathlib import Path

from transect.domain.errors import BadInput

__all__ = ["ARCHIVE", "CASES", "EXPECTED", "INPUTS", "MODEL", "NodeTest", "unpack"]

ARCHIVE = "nodetests.tar"
CASES = "cases.json"
MODEL, INPUTS, EXPECTED = "model.onnx", "inputs", "expected"


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeTest:
    """One test: `opset` is the version that its model asks for, tolerances are ONNX's own."""

    name: str
    opset: str
    rtol: float
    atol: float


def unpack(archive: Path, folder: Path) -> list[NodeTest]:
    """Unpack into `folder`; return the tests, sorted by name. Raises BadInput naming the archive."""
    try:
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        entries = json.loads((folder / CASES).read_text(encoding="utf-8"))
        return [NodeTest(**entry) for entry in entries]
    except (OSError, tarfile.TarError, TypeError, ValueError) as error:
        raise BadInput(
            f"{archive}: no archive of node tests ({type(error).__name__}: {error})"
        ) from None
