"""The plan that a program is given: one flat binary file, docs/runner-contract.md."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np
from engines import BadInput

STRING, BFLOAT16 = 8, 16
# By ONNX's number of a type. bfloat16 travels as its bits: numpy has no such type.
DTYPES = {
    **{1: "<f4", 2: "u1", 3: "i1", 4: "<u2", 5: "<i2", 6: "<i4", 7: "<i8"},
    **{9: "?", 10: "<f2", 11: "<f8", 12: "<u4", 13: "<u8", BFLOAT16: "<u2"},
}
_MAGIC, _BYTE_ORDER_MARK, _VERSION = b"TRANSECT", 0x01020304, 1
_HEAD = struct.Struct("<8sIIQ")
_HEADER = struct.Struct("<24xII11QqQ56x")
_ENTRY = struct.Struct("<IIIII4x6Q7q")


# What a program does, and what an entry is: numbers from 1.
Level = IntEnum("Level", "LATENCY LOAD CASES TRAIN")
Role = IntEnum(
    "Role",
    "LIBRARY PROVIDER OUT OPTION PROVIDER_OPTION MODEL OUTPUTS INPUT OUTPUT PROFILE ARRIVALS "
    "GRAPH STATE DATA HYPER SEED METRIC ORDER TAKES GIVES STEP_FOLDER",
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the table; `number` is its place. `offset` and `size` are bytes in the file that `text` names."""

    number: int
    role: int
    group: int
    dtype: int
    link: int
    name: str
    text: str
    offset: int
    size: int
    shape: tuple[int, ...]

    def array(self) -> np.ndarray:
        """Read the data, into memory of our own; texts as objects, bfloat16 as uint16."""
        if self.dtype != STRING:
            count = math.prod(self.shape)
            return np.fromfile(self.text, DTYPES[self.dtype], count, offset=self.offset).reshape(self.shape)
        raw, place, texts = Path(self.text).read_bytes(), self.offset, []
        while place < self.offset + self.size:
            begin = place + 4
            place = begin + int.from_bytes(raw[place:begin], "little")
            texts.append(raw[begin:place].decode("utf-8"))
        return np.array(texts, dtype=object).reshape(self.shape)


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph of a training step; of each input and output the number of the entry that it takes or gives."""

    file: str
    takes: dict[str, int]
    gives: dict[str, int]


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a program is told, in the header's order; times in nanoseconds."""

    level: int
    count: int
    batch: int
    rows: int
    warmup: int
    min_runs: int
    max_ns: int
    sessions: int
    last_begin_ns: int
    first_step: int
    steps: int
    checkpoint_every: int
    accumulate: int
    seed: int
    state_bytes: int
    entries: list[Entry]

    def of(self, role: Role, group: int | None = None) -> Iterator[Entry]:
        """Yield the entries of a role, of one group where it is given, in their order."""
        return (entry for entry in self.entries if entry.role == role and group in (None, entry.group))

    def text(self, role: Role, group: int | None = None) -> str:
        """Return the text of the role's first entry, or ""."""
        return next((entry.text for entry in self.of(role, group)), "")

    @property
    def options(self) -> dict[str, str]:
        """Session options by name, as texts."""
        return {entry.name: entry.text for entry in self.of(Role.OPTION)}

    @property
    def graphs(self) -> dict[str, Graph]:
        """The graphs of a training step by name: `step`, perhaps `accumulate`."""

        def links(role: Role, graph: Entry) -> dict[str, int]:
            return {entry.name: entry.link for entry in self.of(role, graph.group)}

        found = self.of(Role.GRAPH)
        return {one.name: Graph(one.text, links(Role.TAKES, one), links(Role.GIVES, one)) for one in found}

    def arrays(self, role: Role) -> dict[int, np.ndarray]:
        """Read the tensors of a role by their numbers."""
        return {entry.number: entry.array() for entry in self.of(role)}

    def inputs(self, group: int = 0) -> dict[str, np.ndarray]:
        """Read the inputs of a model by name."""
        return {entry.name: entry.array() for entry in self.of(Role.INPUT, group)}


def read_plan(path: str) -> Plan:
    """Read a plan. Raises BadInput for a file that is none, the only thing that a program looks at."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    if len(raw) < _HEAD.size or not raw.startswith(_MAGIC):
        raise BadInput(f"{path}: is no plan, expected a file that begins with {_MAGIC.decode()}")
    _, mark, version, size = _HEAD.unpack_from(raw)
    if mark != _BYTE_ORDER_MARK:
        raise BadInput(f"{path}: is of another byte order: mark {mark:#010x}, expected {_BYTE_ORDER_MARK:#010x}")
    if version != _VERSION:
        raise BadInput(f"{path}: is of version {version}, expected {_VERSION}")
    if size != len(raw) or size < _HEADER.size:
        raise BadInput(f"{path}: holds {len(raw)} bytes, expected {size}")
    level, count, *numbers = _HEADER.unpack_from(raw)
    return Plan(level, count, *numbers, [_entry(raw, number) for number in range(count)])


def _entry(raw: bytes, number: int) -> Entry:
    role, group, dtype, axes, link, *rest = _ENTRY.unpack_from(raw, _HEADER.size + number * _ENTRY.size)
    name_at, name_size, text_at, text_size, offset, size, *shape = rest
    # A path may hold bytes that are no UTF-8.
    name = raw[name_at : name_at + name_size].decode("utf-8", "surrogateescape")
    text = raw[text_at : text_at + text_size].decode("utf-8", "surrogateescape")
    return Entry(number, role, group, dtype, link, name, text, offset, size, tuple(shape[:axes]))
