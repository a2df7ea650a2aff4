"""A cell: one point of a grid, with an id that a person can read and a machine can trust."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cache, cached_property
from operator import itemgetter
from types import ModuleType
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SerializeAsAny

from transect.domain.files import canonical_json, digest

# Execution providers of ONNX Runtime that need a CUDA device.
GPU_PROVIDERS = ("cuda", "tensorrt")

_STAGES = "transect.stages"
_AXES = "transect.domain.axes"

# With `~` and the hash it names a folder: 255 bytes.
MAX_ID_CHARS = 246

C = TypeVar("C", bound="Cell")


@dataclass(frozen=True, kw_only=True)
class Axis:
    """How people read an axis: in ids, in the labels of groups, and as what makes a kind.

    An axis at its default has no word in the id, unless its class names it in `always`, and none
    in a label, unless groups differ in it.
    """

    # Where its word stands among those of other axes.
    place: int
    # Its word in the id, made from the value; None: none.
    word: Callable[[Any], str] | None = str
    # Its words in the label of a group; an empty text goes without saying.
    label: Callable[[Any], str] = str
    # A proper name, such as a framework's: part of every label.
    name: bool = False
    # Cells that differ in it do different work, and are never each other's base.
    kind: bool = False


def counted(noun: str) -> Callable[[int], str]:
    """Return what makes `1 thread` and `2 threads` of a number.

    >>> counted("thread")(2)
    '2 threads'
    """
    return lambda number: f"{number} {noun}" + ("" if number == 1 else "s")


class Cell(BaseModel):
    """One point of a grid. Frozen; every axis is a keyword. A stage adds its own axes.

    An axis at its default is left out of the hash, so an axis that is added later
    with a default keeps the ids of old cells.
    """

    # A payload imports the classes of several stages and makes a cell of one: the others' validators are never built.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    # Axes whose word stands in the id at their default too.
    always: ClassVar[tuple[str, ...]] = ()

    stage: str
    workload: Annotated[str | None, Axis(place=20, name=True)] = None
    device: Annotated[str, Axis(place=140, word=None)] = "cpu"
    nodes: Annotated[int, Axis(place=100, label=counted("node"))] = Field(default=1, ge=1)
    ranks_per_node: Annotated[int, Axis(place=101, word=None)] = Field(default=1, ge=1)
    threads: Annotated[int, Axis(place=110, word=lambda n: f"t{n}", label=counted("thread"))] = Field(default=1, ge=1)
    precision: Annotated[str, Axis(place=130, kind=True)] = "fp32"
    network: Annotated[str | None, Axis(place=190)] = None
    # Who runs it in an image made of its environment; None: nobody, or as the system says.
    # Groups in and out of one run in different races: what it costs is a question of its own.
    container: Annotated[str | None, Axis(place=195, label=lambda v: f"in {v}" if v else "", kind=True)] = None
    repeat: Annotated[int, Axis(place=200, word=lambda n: f"r{n}")] = Field(default=0, ge=0)

    @classmethod
    def of(cls, **axes: Any) -> Self:
        """Make a cell of the class that its stage has; an unknown stage keeps every axis.

        Raises pydantic's ValidationError for axes that the stage does not have, and TypeError for another class of
        cells than the one that is asked.
        """
        stage = str(axes.get("stage"))
        # A class that has this stage need not be looked for, which imports those of all stages.
        kind = cls if cls.model_fields["stage"].default == stage else class_of(stage)
        made = kind.model_validate(axes)
        if not isinstance(made, cls):
            raise TypeError(f"a cell of stage '{made.stage}' is a {kind.__name__}: expected a {cls.__name__}")
        return made

    @property
    def ranks(self) -> int:
        """World size: nodes times ranks per node."""
        return self.nodes * self.ranks_per_node

    def get(self, axis: str, default: Any = None) -> Any:
        """Return the value of an axis that cells of this stage may not have."""
        held = self.__dict__
        if axis in held:
            return held[axis]
        # To ask pydantic for what is not there takes twenty times as long.
        if axis in _offered(type(self)):
            return getattr(self, axis)
        return (self.model_extra or {}).get(axis, default)

    def axes(self) -> dict[str, Any]:
        """Return the stage, and the axes that differ from their defaults."""
        return {"stage": self.stage, **self.model_dump(exclude_defaults=True)}

    @cached_property
    def id(self) -> str:
        """Readable id, `~`, and 8 hexadecimal digits of the hash of the non-default axes.

        >>> Cell.of(stage="train", workload="iris-mlp", framework="numpy", strategy="single",
        ...         batch=16).id
        'iris-mlp.numpy.single.n1x1.b16.fp32~e84b7a6c'
        """
        readable = re.sub(r"[^A-Za-z0-9_.+-]", "-", ".".join(self._words())) or self.stage
        return f"{readable[:MAX_ID_CHARS]}~{digest([canonical_json(self.axes())])[:8]}"

    def _words(self) -> list[str]:
        words = []
        for name, axis in axes_of(type(self)).items():
            value = getattr(self, name)
            if name == "nodes":
                # One word for both numbers.
                if self.ranks > 1 or "nodes" in self.always:
                    words.append(f"n{value}x{self.ranks_per_node}")
            elif axis.word is not None and (name in self.always or value != type(self).model_fields[name].default):
                words.append(axis.word(value))
        return [word for word in words if word]

    def without_repeat(self: C) -> C:
        """Return the same point with repeat 0: the key under which repeats are compared."""
        return self.changed(repeat=0) if self.repeat else self

    def apart_from(self, *axes: str) -> Hashable:
        """Return what cells share that differ in these axes at most: a key to group by, much cheaper than `changed`."""
        more = self.model_extra
        rest = canonical_json({name: more[name] for name in more.keys() - {*axes}}) if more else ""
        return type(self), _others(type(self), axes)(self.__dict__), rest

    def changed(self: C, **axes: Any) -> C:
        """Return the same point but for these axes, which are taken as they are."""
        copy = self.model_copy(update=axes)
        # A copy takes what was computed along: its id would be the other point's.
        copy.__dict__.pop("id", None)
        return copy


class OpenCell(Cell):
    """A cell of a stage that is not there: read from a record, with whatever axes that has."""

    model_config = ConfigDict(frozen=True, extra="allow")


@cache
def axes_of(kind: type[Cell]) -> dict[str, Axis]:
    """Return the axes of a class of cells by name, in the order of their words.

    A field without an `Axis` has no word and no label.
    """
    annotated = {
        name: axis for name, field in kind.model_fields.items() for axis in field.metadata if isinstance(axis, Axis)
    }
    return dict(sorted(annotated.items(), key=lambda item: item[1].place))


@cache
def _others(kind: type[Cell], axes: tuple[str, ...]) -> Callable[[dict[str, Any]], Any]:
    return itemgetter(*(name for name in kind.model_fields if name not in axes))


@cache
def _offered(kind: type[Cell]) -> frozenset[str]:
    return frozenset(dir(kind))


def class_of(stage: str) -> type[Cell]:
    """Return the class of a stage's cells: of `transect.domain.axes`, or a plug-in's `STAGE/cell.py`."""
    known = _known()
    if stage in known:
        return known[stage]
    folder = stage.replace("-", "_")
    if not folder.isidentifier():
        return OpenCell
    folders = tuple(importlib.import_module(_STAGES).__path__)
    return _class_among(folder, folders)


@cache
def _known() -> dict[str, type[Cell]]:
    package = importlib.import_module(_AXES)
    modules = [importlib.import_module(f"{_AXES}.{module.name}") for module in pkgutil.iter_modules(package.__path__)]
    return {kind.model_fields["stage"].default: kind for module in modules for kind in cells_in(module)}


def cells_in(module: ModuleType) -> list[type[Cell]]:
    """Return the classes of cells that a module defines and that name their stage."""
    return [
        thing
        for thing in vars(module).values()
        if isinstance(thing, type)
        and issubclass(thing, Cell)
        and thing.__module__ == module.__name__
        and not thing.model_fields["stage"].is_required()
    ]


@cache
def _class_among(stage: str, folders: tuple[str, ...]) -> type[Cell]:
    """Look once, and again where another plug-in folder may hold the stage."""
    module = f"{_STAGES}.{stage}.cell"
    try:
        loaded = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        return OpenCell
    return next(iter(cells_in(loaded)), OpenCell)


# A cell of any stage, where one is read: its class is that of its stage.
AnyCell = Annotated[
    SerializeAsAny[Cell], BeforeValidator(lambda given: Cell.of(**given) if isinstance(given, dict) else given)
]
