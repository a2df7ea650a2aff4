"""Study and system files: found by name or path, checked against what the stages know."""

from __future__ import annotations

import itertools
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field, create_model

from transect.domain.counts import Machine
from transect.domain.errors import BadInput, Complaints, unknown_name
from transect.domain.paths import config_folders
from transect.domain.registry import PLUGINS_VARIABLE
from transect.domain.strict_yaml import load_yaml, validate
from transect.domain.study import Study
from transect.planning.own_scripts import define_scripts, is_script
from transect.planning.own_workloads import define, is_own
from transect.planning.stage import STAGES, ordered_stages
from transect.training.workloads import WORKLOADS

# Of packages that bring plug-ins: an entry point's name is what a study calls them, its value the package they lie in.
PLUGINS_GROUP = "transect.plugins"
_SUFFIXES = (".yaml", ".yml")


def _folders_of(kind: str) -> list[Path]:
    folders = {"study": "studies", "system": "systems", "work": "claims", "data set": "datasets"}
    return [folder / folders[kind] for folder in config_folders()]


def names_of(kind: str) -> dict[str, str]:
    """Return the names of all files of a kind, `study`, `system`, `work` or `data set`, each with its sentence.

    That is the first sentence of the comment that the file begins with, else its title or description.
    """
    found: dict[str, Path] = {}
    for folder in _folders_of(kind):
        found = {path.stem: path for path in folder.glob("*.yaml")} | found
    return {name: _sentence(found[name]) for name in sorted(found)}


def named_file(kind: str, name: str) -> Path | None:
    """Return the file of that name that goes before the others; None where no folder has one."""
    places = (folder / f"{name}.yaml" for folder in _folders_of(kind))
    return next((place.resolve() for place in places if place.is_file()), None)


def _sentence(path: Path) -> str:
    """Say what a file is about; nothing where it cannot be read: who uses it is told what is wrong with it."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    comment = []
    for line in itertools.takewhile(lambda line: line.startswith("#"), lines):
        comment.append(line.lstrip("# "))
        if line.endswith((".", "?", ":")):
            break
    said = re.search(r"^(?:title|about|description): *(.+)", "\n".join(lines), re.MULTILINE)
    first = re.split(r"(?<=[.?]) ", " ".join(comment).strip(), maxsplit=1)[0].rstrip(":")
    return first or (said[1].strip("\"' ") if said else "")


def _find(kind: str, given: str) -> Path:
    path = Path(given)
    if path.suffix in _SUFFIXES or path.is_file():
        return path.resolve()
    found = named_file(kind, given)
    if found is None:
        raise unknown_name(kind, given, names_of(kind))
    return found


def find_study(given: str) -> Path:
    """Return the file of a study given by name or path. Raises BadInput for a name that is none."""
    return _find("study", given)


def find_system(given: str) -> Path:
    """Return the file of a system given by name or path. Raises BadInput for a name that is none."""
    return _find("system", given)


def find_data_set(given: str) -> Path:
    """Return the file of a data set given by name or path. Raises BadInput for a name that is none."""
    return _find("data set", given)


def study_model() -> type[Study]:
    """Return the model of a study with a section for each stage that has one."""
    return _model_of(tuple(STAGES))


@cache
def _model_of(names: tuple[str, ...]) -> type[Study]:
    sections: dict[str, Any] = {}
    for name, stage in ordered_stages():
        if stage.section is not None:
            if stage.key in Study.model_fields or stage.key in sections:
                raise BadInput(f"stage '{name}': the key '{stage.key}' of a study is taken")
            about = (stage.section.__doc__ or "").split("\n")[0]
            sections[stage.key] = (stage.section, Field(default_factory=stage.section, description=about))
    return create_model("Study", __base__=Study, __doc__="One study file.", **sections)


def _add_plugins(path: Path, content: dict[str, Any]) -> None:
    """Make the study's plug-in folders known to this process and its children."""
    folders = content.get("plugins") or []
    if not isinstance(folders, list) or not all(isinstance(folder, str) for folder in folders):
        return  # the model says what is wrong with it
    resolved = [str(_plugin_folder(path.parent / given, given, f"{path}: key 'plugins'")) for given in folders]
    known = [part for part in os.environ.get(PLUGINS_VARIABLE, "").split(os.pathsep) if part]
    os.environ[PLUGINS_VARIABLE] = os.pathsep.join(dict.fromkeys(known + resolved))


def _plugin_folder(folder: Path, given: str, where: str) -> Path:
    """Return a plug-in folder beside the study, or that of an installed package: the name of its entry point."""
    if folder.is_dir():
        return folder.resolve()
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    installed = entry_points(group=PLUGINS_GROUP)
    modules = sorted({one.value for one in installed if one.name == given})
    if not modules:
        named = ", ".join(sorted(installed.names)) or "none"
        raise BadInput(f"{where}: {folder}: no such folder; installed packages with plug-ins: {named}")
    if len(modules) > 1:
        raise BadInput(f"{where}: {given}: two packages have plug-ins of that name: {', '.join(modules)}")
    try:
        spec = find_spec(modules[0])
    except ImportError as error:
        raise BadInput(f"{where}: {given}: {modules[0]}, which an installed package names for it: {error}") from None
    if spec is None or not spec.submodule_search_locations:
        raise BadInput(f"{where}: {given}: expected {modules[0]} to be a package, a folder of plug-ins")
    return Path(spec.submodule_search_locations[0]).resolve()


def load_study(path: Path) -> Study:
    """Read a study; its plug-in folders, which may hold stages, come first."""
    complaints = Complaints()
    study, _ = read_study(path, complaints)
    complaints.end()
    return study


def read_study(path: Path, complaints: Complaints, machine: Machine | None = None) -> tuple[Study, frozenset[str]]:
    """Return what can be used of a study, and the keys at its top that cannot; note what is wrong with them.

    Its lists grow with `machine`; without one they hold the numbers that are written out.
    """
    content = load_yaml(path)
    _add_plugins(path, content)
    model, usable = study_model(), {}
    for key, value in content.items():
        with complaints.noted():
            validate(model, {"name": "unnamed", key: value}, str(path), context=machine)
            usable[key] = value
    broken = frozenset(content.keys() - usable.keys())
    for name, keys in list(usable.get("workloads", {}).items()):
        with complaints.noted():
            if isinstance(keys, dict) and is_script(keys):
                usable["workloads"][name] = define_scripts(name, keys, path)
            elif isinstance(keys, dict) and is_own(keys):
                usable["workloads"][name] = define(name, keys, path)
            elif name not in WORKLOADS:
                raise unknown_name("workload", name, WORKLOADS, f"{path}: workloads")
            continue
        del usable["workloads"][name]
    if "name" in broken:
        usable["name"] = "unnamed"
    study = None
    with complaints.noted():
        study = validate(model, usable, str(path), context=machine)
    if study is None:
        complaints.end()
    assert study is not None
    return study, broken
