"""Registries of plug-ins: a class in one file, found by pkgutil or in a plug-in folder."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import inspect
import os
import pkgutil
import re
import sys
from abc import ABC
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

from transect.domain.errors import FAULTS, BadInput, unknown_name
from transect.domain.names import only_meant

PLUGINS_VARIABLE = "TRANSECT_PLUGINS"

T = TypeVar("T")

# It stands in studies, and in the names of cells and files.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


class Plugin:
    """What planning asks a plug-in of any kind."""

    def supports(self, cell: Any) -> str | None:
        """Return None, or the reason why the cell cannot run."""
        return None

    def code_files(self) -> list[Path]:
        """Return files that its cells run, and that nothing imports and no environment's hash holds."""
        return []


def _unset(cls: type) -> Iterator[str]:
    """Yield the attributes that an abstract class above names without a value, and the class does not set."""
    for base in cls.__mro__[1:]:
        if issubclass(base, ABC):
            yield from (name for name in inspect.get_annotations(base) if name[0] != "_" and not hasattr(cls, name))


def _misspelt(cls: type) -> Iterator[str]:
    """Yield what a class calls nearly as one of its bases does: nobody would ever ask for it."""
    known = [name for base in cls.__bases__ for name in dir(base) if not name.startswith("_")]
    for name in vars(cls).keys() - known:
        for near in difflib.get_close_matches(name, known, n=1, cutoff=0.8) if not name.startswith("_") else ():
            yield f"has `{name}`: did you mean `{near}`? What is its own begins with _"


class Registry(Generic[T]):
    """Named plug-ins of one kind, subclasses of `base`. Discovery imports every public module of `package`."""

    def __init__(self, kind: str, package: str, base: type) -> None:
        self.kind = kind
        self.package = package
        self.base = base
        self._entries: dict[str, type[T]] = {}
        # What people call it besides.
        self._others: dict[str, tuple[str, ...]] = {}
        self._files: dict[str, Path] = {}
        self._described: set[str] = set()
        self._discovered = False

    def register(self, name: str, *others: str) -> Callable[[type[T]], type[T]]:
        """Decorate a class to make it known as `name`.

        `others` is what people call it besides, as `named` says; several plug-ins may claim one of these.
        """
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            raise ValueError(f"{self.kind}: expected a name of letters, digits and ._+- in register(...), got {name!r}")

        def add(cls: type[T]) -> type[T]:
            source = Path(sys.modules[cls.__module__].__file__ or "?")
            # A file that failed and is imported again gives the same class anew.
            known = self._entries.get(name, cls).__qualname__, self._files.get(name, source)
            if known != (cls.__qualname__, source):
                raise BadInput(f"{self.kind} '{name}' is registered twice: {known[1]} and {source}")
            if not (isinstance(cls, type) and issubclass(cls, self.base)):
                raise BadInput(f"{source}: {self.kind} '{name}' is no {self.base.__module__}.{self.base.__name__}")
            if lacks := sorted({*getattr(cls, "__abstractmethods__", ()), *_unset(cls)}):
                raise BadInput(f"{source}: {self.kind} '{name}' lacks {', '.join(lacks)}")
            if slips := sorted(_misspelt(cls)):
                raise BadInput(*(f"{source}: {self.kind} '{name}' {slip}" for slip in slips))
            self._entries[name] = cls
            self._others[name] = others
            self._files[name] = source
            return cls

        return add

    def define(self, name: str, cls: type[T], source: Path) -> None:
        """Make a class known that a study describes and no file registers; its next description replaces it.

        `source` stands for its file. Raises BadInput where a file has registered the name, or it cannot be one.
        """
        self._discover()
        if not _NAME.fullmatch(name):
            raise BadInput(f"{self.kind} {name!r}: expected a name of letters, digits and ._+-")
        if name in self._entries and name not in self._described:
            raise BadInput(f"{self.kind} '{name}' is there already, in {self._files[name]}: expected another name")
        self._described.add(name)
        self._entries[name], self._files[name] = cls, source

    def _discover(self) -> None:
        if self._discovered:
            return
        self._discovered = True
        package = importlib.import_module(self.package)
        for module in pkgutil.iter_modules(package.__path__):
            if not module.name.startswith("_"):
                importlib.import_module(f"{self.package}.{module.name}")
        load_plugin_folders()

    def names(self) -> list[str]:
        """Return all names, sorted."""
        self._discover()
        return sorted(self._entries)

    def named(self, given: str) -> str:
        """Return the name of the plug-in that is meant by what a person has typed: `PyTorch` is `torch`.

        Called once, where it is read, so that ids and fingerprints know one name. The given one where no plug-in is
        meant, or one of several may be: `get` then says what is known.
        """
        return only_meant(given, self.called())

    def called(self) -> dict[str, tuple[str, ...]]:
        """Return what people call each plug-in besides its name."""
        self._discover()
        return {name: self._others.get(name, ()) for name in self._entries}

    def get(self, name: str, where: str = "") -> T:
        """Make the plug-in of that name. Raises BadInput with the nearest name when unknown."""
        self._discover()
        try:
            return self._entries[name]()
        except KeyError:
            raise unknown_name(self.kind, name, self._entries, where, self.called()) from None

    def about(self, name: str) -> str:
        """Return the first line that its class says of itself, else that its file says, else where it is.

        Makes no plug-in, which may fail. Raises BadInput as `get` does.
        """
        if name not in self:
            raise unknown_name(self.kind, name, self._entries, others=self.called())
        cls = self._entries[name]
        elsewhere = sys.modules[cls.__module__].__doc__ or f"in {self._files[name].name}"
        # A class that a study describes is of no file of its own.
        said = cls.__doc__ or ("described in the study" if name in self._described else elsewhere)
        return said.strip().partition("\n")[0]

    def source(self, name: str) -> Path:
        """Return the file that defines the plug-in: it is part of a cell's fingerprint."""
        self.get(name)
        return self._files[name]

    def __contains__(self, name: object) -> bool:
        self._discover()
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())


class StageRegistry(Registry[T]):
    """The stages: `transect/stages/NAME.py` or `NAME/stage.py` there, and `NAME/stage.py` of a plug-in folder.

    A file `a_b.py` is the stage `a-b`.
    """

    def __init__(self, kind: str, base: type) -> None:
        super().__init__(kind, "transect.stages", base)
        self._seen: str | None = None

    def _discover(self) -> None:
        # Folders may become known after a first look: those of a study, once it is read.
        before, known = self._seen, os.environ.get(PLUGINS_VARIABLE, "")
        if known == before:
            return
        # A stage that asks for another as it is imported gets one of those before it.
        self._seen = known
        try:
            self._import()
        except BadInput:
            self._seen = before  # what is wrong is said each time
            raise

    def _import(self) -> None:
        package = importlib.import_module(self.package)
        package.add_plugin_folders()
        package_folder, *_ = package.__path__
        files = {path: path.stem for path in sorted(Path(package_folder).glob("*.py"))}
        files |= {
            path: path.parent.name for folder in package.__path__ for path in sorted(Path(folder).glob("*/stage.py"))
        }
        places: dict[str, Path] = {}
        for path, name in files.items():
            if name.startswith("_"):
                continue
            if name in places:
                raise BadInput(f"stage '{name}' is there twice: {places[name]} and {path}")
            places[name] = path
            with _named(f"stage {path}"):
                importlib.import_module(f"{self.package}.{name}" + (".stage" if path.stem != name else ""))
            if not self._entries.keys() & {name, name.replace("_", "-")}:
                raise BadInput(
                    f"{path}: registers no stage '{name}', as its place is called: expected @STAGES.register"
                )
        load_plugin_folders()


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Turn what a file raises as it is imported into a BadInput that names it; what it prints goes to stderr."""
    try:
        with redirect_stdout(sys.stderr):
            yield
    except BadInput:
        raise
    except FAULTS as error:
        raise BadInput(f"{what}: cannot be imported: {type(error).__name__}: {error}") from error


def plugin_folders() -> list[Path]:
    """Return the plug-in folders of this process, from TRANSECT_PLUGINS (separated like PATH)."""
    given = os.environ.get(PLUGINS_VARIABLE, "")
    return [Path(part).resolve() for part in given.split(os.pathsep) if part]


def load_plugin_folders() -> list[ModuleType]:
    """Import every public `*.py` of the plug-in folders, once. Raises BadInput when one cannot be."""
    modules = []
    for folder in plugin_folders():
        if not folder.is_dir():
            raise BadInput(f"plug-in folder {folder}: no such folder")
        for path in sorted(folder.glob("*.py")):
            if path.name.startswith("_"):
                continue
            # The path is part of the name: two folders may hold files of one name.
            name = f"transect_plugin_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
            if name not in sys.modules:
                spec = importlib.util.spec_from_file_location(name, path)
                assert spec is not None and spec.loader is not None
                sys.modules[name] = module = importlib.util.module_from_spec(spec)
                try:
                    with _named(f"plug-in {path}"):
                        spec.loader.exec_module(module)
                except BadInput:
                    del sys.modules[name]
                    raise
            modules.append(sys.modules[name])
    return modules
