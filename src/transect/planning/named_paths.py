"""Files and folders that a plug-in's options name, without the plug-in saying that it reads them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from transect.domain.registry import plugin_folders

__all__ = ["named_paths"]

# What a spec holds besides what somebody can be told.
_NO_OPTIONS = ("study", "cell_id", "system", "inputs", "environment", "lock", "sources")
_OPTIONS = ("options", "dataset_options")
_LONGEST = 4096


def named_paths(
    spec: Mapping[str, Any],
    study: Path,
    results: Path,
    known: Collection[Path],
    declared: Collection[str],
) -> list[str]:
    """Return the absolute paths that exist and that any text in a cell's spec names, sorted.

    Text is taken as it stands, from the study's folder (that of the file `study`), and from plug-in folders. A file counts
    wherever it is named. A folder counts as an option, or where it is written with a `/`; as an option of
    the cell itself it does not, as those are of programs that write there, such as IOR. Not those in `known`, of
    which the stage knows already, nor options that a dataset has `declared`: those are its data stage's. Nor what
    holds the results or is one of them: that changes with every run.
    """
    places = [study.parent.resolve(), *plugin_folders()]
    # A folder of plug-ins holds what Python compiles as it imports them.
    own, left = results.resolve(), {*places, *(one.resolve() for one in known)}
    found: set[Path] = set()
    for keys, text in _texts({key: spec[key] for key in spec if key not in _NO_OPTIONS}, ()):
        option = any(key in _OPTIONS for key in keys)
        if not 0 < len(text) <= _LONGEST or "\0" in text or (option and keys[-1] in declared):
            continue
        for place in places:
            try:
                path = (place / Path(text).expanduser()).resolve()
                folder = path.is_dir() and keys[0] != "cell" and (option or "/" in text)
                there = folder or path.is_file()
            except (OSError, RuntimeError):
                continue  # too long for a name, or nobody's home
            results_own = path.is_relative_to(own) or own.is_relative_to(path)
            if there and not results_own and path not in left:
                found.add(path)
    return sorted(map(str, found))


def _texts(value: Any, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each text with the keys above it; of the pairs that an axis of options holds, the value."""
    if isinstance(value, str):
        yield keys, value
    elif isinstance(value, Mapping):
        for key, inside in value.items():
            yield from _texts(inside, (*keys, str(key)))
    elif isinstance(value, list | tuple):
        for inside in value:
            yield from _texts(inside, keys)
