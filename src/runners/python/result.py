"""What a program leaves: docs/runner-contract.md."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
from engines import BadInput
from plan import BFLOAT16, DTYPES, STRING, Plan, Role

_CODES = {np.dtype(dtype): code for code, dtype in DTYPES.items() if code != BFLOAT16}


class Result:
    """The plan's folder `out`. Its methods raise OSError for what cannot be written."""

    def __init__(self, plan: Plan) -> None:
        self.folder = Path(plan.text(Role.OUT))

    def say(self, **line: Any) -> None:
        """Write a line, before the work goes on."""
        with (self.folder / "result.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def keep_process(self) -> None:
        """Keep what the kernel says of this process, before anything else is written."""
        for name in ("status", "maps"):
            if (file := Path("/proc/self", name)).exists():
                (self.folder / f"{name}.txt").write_bytes(file.read_bytes())

    def write(self, name: str, numbers: Any, dtype: str = "<i8") -> None:
        """Write rows of numbers."""
        (self.folder / f"{name}.bin").write_bytes(np.asarray(numbers, dtype).tobytes())


class Outputs:
    """Writes `output-INDEX.bin` for each output, as they come, so that no run's are kept.

    `told` has type and shape of each, None for what is no tensor.
    """

    def __init__(self, plan: Plan, group: int = 0) -> None:
        self._folder, self._entries = Path(plan.text(Role.OUTPUTS, group)), list(plan.of(Role.OUTPUT, group))
        self.told: list[Any] = [None] * len(self._entries)

    def append(self, results: list[Any], rows: int = 0) -> None:
        """Add the outputs of a run, along the first axis where it was a batch of `rows`.

        Raises BadInput for an output without as many rows, and for more or fewer outputs.
        """
        if len(results) != len(self._entries):
            names = ", ".join(entry.name for entry in self._entries)
            raise BadInput(f"a run gave {len(results)} outputs, expected {names}")
        for index, (entry, value) in enumerate(zip(self._entries, results, strict=True)):
            if not isinstance(value, np.ndarray):
                continue
            told = self.told[index]
            if rows and (not value.ndim or len(value) != rows):
                raise BadInput(
                    f"output '{entry.name}' has shape {list(value.shape)} in a run of {rows} rows: outputs "
                    "without as many rows cannot be joined"
                )
            if told and told[1][1:] != list(value.shape[1:]):
                raise BadInput(f"output '{entry.name}' has shape {list(value.shape)}, before it was {told[1]}")
            dtype, raw = _bytes(value, entry.dtype)
            with (self._folder / f"output-{index}.bin").open("ab" if told else "wb") as stream:
                stream.write(raw)
            if told:
                told[1][0] += len(value)
            else:
                self.told[index] = [dtype, list(value.shape)]


def _bytes(array: np.ndarray, dtype: int) -> tuple[int, bytes]:
    if array.dtype.kind in "OUS":
        texts = [str(text).encode("utf-8") for text in array.reshape(-1)]
        return STRING, b"".join(struct.pack("<I", len(text)) + text for text in texts)
    if array.dtype.name == "bfloat16" or dtype == BFLOAT16:
        return BFLOAT16, np.ascontiguousarray(array).view("<u2").tobytes()
    native = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return _CODES[native.dtype], native.tobytes()
