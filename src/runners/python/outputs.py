"""Outputs of the runner contract: written as they come, so that no run's are kept."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
from tensors import NAMES, BadInput


class Outputs:
    """Writes `output-INDEX.bin` for each output, and `header.json` at the end.

    `types` holds what ONNX Runtime says of an output, such as `tensor(bfloat16)`.
    """

    def __init__(self, folder: Path, names: list[str], types: dict[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._names, self._types = folder, names, types
        self._entries: list[dict[str, Any] | None] = [None] * len(names)

    def append(self, results: list[Any], rows: int | None) -> None:
        """Add the outputs of a run, along the first axis where it was a batch of `rows`.

        Raises BadInput for an output without as many rows, and for more or fewer outputs.
        """
        if len(results) != len(self._names):
            raise BadInput(f"a run gave {len(results)} outputs, expected {', '.join(self._names)}")
        for index, (name, value) in enumerate(zip(self._names, results, strict=True)):
            kind = self._types.get(name, "")
            entry = self._entries[index]
            if not isinstance(value, np.ndarray):
                self._entries[index] = {"name": name, "kind": kind or type(value).__name__}
                continue
            if rows is not None and (not value.ndim or len(value) != rows):
                raise BadInput(
                    f"output '{name}' has shape {list(value.shape)} in a run of {rows} rows: outputs "
                    "without as many rows cannot be joined"
                )
            dtype, raw = _bytes(value, kind)
            file = f"output-{index}.bin"
            with (self._folder / file).open("wb" if entry is None else "ab") as stream:
                stream.write(raw)
            if entry is None or "shape" not in entry:
                shape = list(value.shape)
                self._entries[index] = {"name": name, "dtype": dtype, "shape": shape, "file": file}
            else:
                entry["shape"][0] += len(value)

    def close(self) -> None:
        """Write the header."""
        text = json.dumps({"tensors": self._entries}) + "\n"
        (self._folder / "header.json").write_text(text, encoding="utf-8")


def _bytes(array: np.ndarray, kind: str) -> tuple[str, bytes]:
    if array.dtype.kind in "OUS":
        texts = [str(text).encode("utf-8") for text in array.reshape(-1)]
        return "string", b"".join(struct.pack("<I", len(text)) + text for text in texts)
    if array.dtype.name == "bfloat16" or kind == "tensor(bfloat16)":
        return "bfloat16", np.ascontiguousarray(array).view("<u2").tobytes()
    native = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return NAMES[native.dtype], native.tobytes()
