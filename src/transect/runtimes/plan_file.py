"""The plan that a runner's program is given: one flat binary file, docs/runner-contract.md."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from math import prod
from pathlib import Path

from transect.domain.errors import BadInput

MAGIC, BYTE_ORDER_MARK, VERSION = b"TRANSECT", 0x01020304, 1
MAX_AXES = 7
NO_LINK = 0xFFFFFFFF
# ONNX's numbers of types, and the bytes of one element; a text has no fixed size.
DTYPE_CODES = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "string": 8,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
    "bfloat16": 16,
}
DTYPE_NAMES = {code: name for name, code in DTYPE_CODES.items()}
_SIZES = {1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 16: 2}

_HEADER = struct.Struct("<8sIIQII11QqQ56x")
_ENTRY = struct.Struct(f"<IIIIII6Q{MAX_AXES}q")


class Level(IntEnum):
    """What a program does."""

    LATENCY = 1
    LOAD = 2
    CASES = 3
    TRAIN = 4


class Role(IntEnum):
    """What an entry is."""

    LIBRARY = 1
    PROVIDER = 2
    OUT = 3
    OPTION = 4
    PROVIDER_OPTION = 5
    MODEL = 6
    OUTPUTS = 7
    INPUT = 8
    OUTPUT = 9
    PROFILE = 10
    ARRIVALS = 11
    GRAPH = 12
    STATE = 13
    DATA = 14
    HYPER = 15
    SEED = 16
    METRIC = 17
    ORDER = 18
    TAKES = 19
    GIVES = 20
    STEP_FOLDER = 21


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A row of the table. `dtype` is a name, "" for none; `text` names the file of the data, where it has any.

    `link` is the number of another entry. `offset` and `size` are the data's bytes in the file.
    """

    role: Role
    group: int = 0
    name: str = ""
    text: str = ""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    link: int = NO_LINK
    offset: int = 0
    size: int = 0


@dataclass(kw_only=True, slots=True)
class Plan:
    """All that a program is told. Counts are as the contract's header has them; times in nanoseconds."""

    level: Level
    batch: int = 0
    rows: int = 0
    warmup: int = 0
    min_runs: int = 0
    max_ns: int = 0
    sessions: int = 0
    last_begin_ns: int = 0
    first_step: int = 0
    steps: int = 0
    checkpoint_every: int = 0
    accumulate: int = 1
    seed: int = 0
    state_bytes: int = 0
    entries: list[Entry] = field(default_factory=list)

    def add(self, entry: Entry) -> int:
        """Append an entry; return its number."""
        self.entries.append(entry)
        return len(self.entries) - 1

    def of(self, role: Role, group: int | None = None) -> Iterator[Entry]:
        """Yield the entries of a role, of one group where it is given, in their order."""
        return (entry for entry in self.entries if entry.role == role and group in (None, entry.group))

    def text(self, role: Role, group: int | None = None) -> str:
        """Return the text of the role's first entry, or ""."""
        return next((entry.text for entry in self.of(role, group)), "")


_NUMBERS = tuple(entry.name for entry in fields(Plan) if entry.name not in ("level", "entries"))


def write_plan(path: Path, plan: Plan) -> None:
    """Write a plan for the program that is started next: a half of one is refused. Raises BadInput as `plan_bytes`."""
    path.write_bytes(plan_bytes(plan))


def plan_bytes(plan: Plan) -> bytes:
    """Return the bytes of a plan's file. Raises BadInput for what the format cannot hold."""
    texts = bytearray()
    begin = _HEADER.size + _ENTRY.size * len(plan.entries)

    def place(text: str) -> tuple[int, int]:
        if "\0" in text:
            raise BadInput(f"a plan holds no text with a zero byte: {text!r:.200}")
        raw = text.encode("utf-8", "surrogateescape")
        at = begin + len(texts)
        texts.extend(raw + b"\0")
        return at, len(raw)

    try:
        rows = [_pack(entry, place(entry.name), place(entry.text)) for entry in plan.entries]
        numbers = [getattr(plan, name) for name in _NUMBERS]
        size = begin + len(texts)
        head = _HEADER.pack(MAGIC, BYTE_ORDER_MARK, VERSION, size, plan.level, len(rows), *numbers)
    except struct.error as error:
        raise BadInput(f"a plan holds no such number: {error}") from None
    return b"".join([head, *rows, bytes(texts)])


def _pack(entry: Entry, name: tuple[int, int], text: tuple[int, int]) -> bytes:
    if len(entry.shape) > MAX_AXES:
        raise BadInput(f"'{entry.name}' has {len(entry.shape)} axes, a plan's tensors have at most {MAX_AXES}")
    shape = entry.shape + (0,) * (MAX_AXES - len(entry.shape))
    dtype = DTYPE_CODES[entry.dtype] if entry.dtype else 0
    places = (*name, *text, entry.offset, entry.size)
    return _ENTRY.pack(entry.role, entry.group, dtype, len(entry.shape), entry.link, 0, *places, *shape)


def read_plan(path: Path) -> Plan:
    """Read and check a plan: what a program may rely on. Raises BadInput naming the file and what is wrong."""
    raw = path.read_bytes()
    if raw[: len(MAGIC)] != MAGIC or len(raw) < 24:
        raise BadInput(f"{path}: is no plan, expected a file that begins with {MAGIC.decode()}")
    _, mark, version, size = struct.unpack_from("<8sIIQ", raw)
    if mark != BYTE_ORDER_MARK:
        raise BadInput(f"{path}: is of another byte order: mark {mark:#010x}, expected {BYTE_ORDER_MARK:#010x}")
    if version != VERSION:
        raise BadInput(f"{path}: is of version {version}, expected {VERSION}")
    if size != len(raw) or size < _HEADER.size:
        raise BadInput(f"{path}: holds {len(raw)} bytes, expected {size}")
    _, _, _, _, level, count, *numbers = _HEADER.unpack_from(raw)
    if _HEADER.size + count * _ENTRY.size > size:
        raise BadInput(f"{path}: holds {size} bytes, which are too few for {count} entries")
    try:
        entries = [_unpack(raw, _HEADER.size + index * _ENTRY.size) for index in range(count)]
        plan = Plan(level=Level(level), entries=entries, **dict(zip(_NUMBERS, numbers, strict=True)))
        _check(plan)
    except ValueError as error:
        raise BadInput(f"{path}: {error}") from None
    return plan


def _unpack(raw: bytes, at: int) -> Entry:
    role, group, dtype, axes, link, _, *rest = _ENTRY.unpack_from(raw, at)
    name_at, name_size, text_at, text_size, offset, size, *shape = rest
    if axes > MAX_AXES or (dtype and dtype not in DTYPE_NAMES):
        raise ValueError(f"an entry has {axes} axes of the type {dtype}")
    return Entry(
        role=Role(role),
        group=group,
        name=_text(raw, name_at, name_size),
        text=_text(raw, text_at, text_size),
        dtype=DTYPE_NAMES.get(dtype, ""),
        shape=tuple(shape[:axes]),
        link=link,
        offset=offset,
        size=size,
    )


def _text(raw: bytes, at: int, size: int) -> str:
    if at + size >= len(raw) or raw[at + size] or 0 in raw[at : at + size]:
        raise ValueError(f"a text of {size} bytes at {at} has no end")
    return raw[at : at + size].decode("utf-8", "surrogateescape")


def _check(plan: Plan) -> None:
    for number, entry in enumerate(plan.entries):
        if entry.link != NO_LINK and entry.link >= len(plan.entries):
            raise ValueError(f"entry {number} links to entry {entry.link} of {len(plan.entries)}")
        size = _SIZES.get(DTYPE_CODES.get(entry.dtype, 0))
        held = entry.role in TENSORS and size is not None
        if held and entry.size != size * prod(entry.shape):  # type: ignore[operator]
            raise ValueError(f"'{entry.name}' holds {entry.size} bytes, {entry.dtype} {list(entry.shape)} takes others")


# The roles of entries that have data.
TENSORS: Sequence[Role] = (Role.INPUT, Role.ARRIVALS, Role.STATE, Role.DATA, Role.HYPER, Role.ORDER)
