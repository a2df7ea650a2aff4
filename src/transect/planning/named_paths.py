"""Files and folders that a plug-in's options name, without the plug-in saying that it reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from transect.domain.registry import plugin_folders
from transect.training.own_workload import SPEC_KEY

# Keys of a spec that name no files of the user.
_NO_OPTIONS = frozenset({"study", "cell_id", "system", "inputs", "environment", "lock", "sources"})
_OPTIONS = frozenset({"options", "dataset_options", SPEC_KEY})
_WALKED = frozenset({str, dict, list, tuple})
_MAX_LENGTH = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class _Named:
    path: str
    folder: bool


class NamedPaths:
    """Finds the files and folders that texts in specs of one study name.

    Text is taken as it stands, from the study's folder and from plug-in folders. A file counts wherever it is named. A
    folder counts as an option, or where it is written with a `/`; as an option of the cell itself it does not, as those are
    of programs that write there, such as IOR. What holds the study's own results or is one of them does not count: that changes with every run.
    """

    def __init__(self, study: Path, results: Path) -> None:
        # A folder of plug-ins itself holds what Python compiles as it imports them.
        self._places = [study.parent.resolve(), *plugin_folders()]
        self._results = results.resolve()
        # A study has few different texts in many cells.
        self._of = cache(self._look)

    def __call__(self, spec: Mapping[str, Any], *, options_only: bool = False) -> dict[str, str]:
        """Return the key below which each path is named, by the absolute path; of a list, the list's key.

        `options_only`: of a stage that says itself which files it reads, only the options of its plug-ins.
        """
        found: dict[str, tuple[str, bool]] = {}
        for key, value in spec.items():
            if key not in _NO_OPTIONS and type(value) in _WALKED:
                self._walk(value, key, key in _OPTIONS, key != "cell", found)
        return {path: key for path, (key, option) in found.items() if option or not options_only}

    def _walk(self, value: Any, key: str, option: bool, folders: bool, found: dict[str, tuple[str, bool]]) -> None:
        # Types as JSON has them: fifty thousand specs are walked whenever a study is planned.
        kind = type(value)
        if kind is str:
            for named in self._of(value):
                if not named.folder or (folders and (option or "/" in value)):
                    found[named.path] = (key, option)
        elif kind is dict:
            for name, inside in value.items():
                if type(inside) in _WALKED:
                    self._walk(inside, name, option or name in _OPTIONS, folders, found)
        elif kind is list or kind is tuple:
            for inside in value:
                self._walk(inside, key, option, folders, found)

    def _look(self, text: str) -> list[_Named]:
        if not 0 < len(text) <= _MAX_LENGTH or "\0" in text:
            return []
        found = []
        for place in self._places:
            try:
                path = (place / Path(text).expanduser()).resolve()
                folder = path.is_dir()
                there = folder or path.is_file()
            except (OSError, RuntimeError):
                continue  # too long for a name, or nobody's home
            of_results = path.is_relative_to(self._results) or self._results.is_relative_to(path)
            if there and not of_results and path not in self._places:
                found.append(_Named(path=str(path), folder=folder))
        return found
