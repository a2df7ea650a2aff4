"""What a plug-in imports from beside it, and files that its options name, belong to the fingerprints of its cells."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from transect.planning import code_hash
from transect.planning.code_hash import closure
from transect.planning.named_paths import NamedPaths


@pytest.fixture
def ground(tmp_path, monkeypatch):
    """A study's folder with a plug-in folder in it."""
    monkeypatch.setenv("TRANSECT_PLUGINS", str(tmp_path / "mine"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "mine").mkdir()
    return tmp_path


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("INIT", "__init__")
        path = path.with_name(f"{path.name}.py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def followed(ground: Path) -> set[str]:
    """Return the files below the study's folder that the plug-in runs."""
    for cached in (code_hash._text, code_hash._imports, code_hash._neighbours, code_hash._closure):
        cached.cache_clear()
    found = closure(ground / "mine/plugin.py", ground)
    return {p.relative_to(ground).as_posix() for p in found if p.is_relative_to(ground)}


FORMS = {
    "in a function": "def f():\n    import helper as h, os",
    "behind a word": "try: import helper\nexcept ImportError: pass",
    "of a name": "from helper import (\n    one,\n    two)",
    "beside a comment in parentheses": "from os import (\n    path,  # as in x)\n    sep)\nimport helper",
    "named by a format": "import importlib\nh = importlib.import_module(name='helper')",
    "by its location": "import os\nf = f'{os.path.dirname(__file__)}/helper.py'",
    "by name": "import importlib\nh = importlib.import_module('helper')",
    "as a file": "import runpy, pathlib\nrunpy.run_path(str(pathlib.Path(__file__).parent / 'helper.py'))",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_module_beside_a_plugin_is_followed(ground, form):
    write(ground / "mine", plugin=FORMS[form], helper="", nobodys="")
    assert followed(ground) == {"mine/plugin.py", "mine/helper.py"}


def test_what_a_file_outside_of_the_study_imports_may_import_from_its_folder_too(tmp_path):
    """As the one call does: its study lies among its results."""
    write(
        tmp_path,
        package__INIT="",
        package__model="from package.block import Block",
        package__block="from package.sizes import W",
        package__sizes="W = 8",
        alone="from parts.block import Block",
        parts__INIT="",
        parts__block="from parts.sizes import W",
        parts__sizes="W = 8",
    )
    for root, folder in (("package/model.py", "package"), ("alone.py", "parts")):
        found = closure(tmp_path / root, tmp_path / "results" / "own-net")
        assert {f"{folder}/{name}.py" for name in ("__init__", "block", "sizes")} <= {
            path.relative_to(tmp_path).as_posix() for path in found if path.is_relative_to(tmp_path)
        }


def test_packages_nested_and_whatever_they_import_are_followed(ground):
    write(
        ground,
        mine__plugin="from lib.deep.factors import F\n",
        mine__lib__INIT="from .first import A\n",
        mine__lib__first="import common.shared\n",
        mine__lib__deep__INIT="",
        mine__lib__deep__factors="from ..second import B\n",
        mine__lib__second="",
        mine__lib__third="",
        common__shared="",
    )
    assert followed(ground) == {
        "mine/plugin.py",
        "mine/lib/__init__.py",
        "mine/lib/first.py",
        "mine/lib/second.py",
        "mine/lib/deep/__init__.py",
        "mine/lib/deep/factors.py",
        "common/shared.py",
    }


@pytest.mark.parametrize("early", [True, False], ids=["when imported", "when run"])
def test_a_folder_that_a_plugin_makes_python_search_is_searched(ground, early):
    line = "sys.path.insert(0, str(Path(__file__).parent / 'more'))"
    write(ground / "mine", plugin=f"{line}\nimport helper", more__helper="")
    if early:
        sys.path.insert(0, str(ground / "mine/more"))
    assert followed(ground) == {"mine/plugin.py", "mine/more/helper.py"}


def test_the_packages_of_a_stage_in_a_plugin_folder_and_compiled_modules_are_followed(ground):
    write(ground / "mine", plugin="import fast", INIT="")
    (ground / "mine/fast.cpython-311-x86_64-linux-gnu.so").write_bytes(b"\x7fELF")
    assert followed(ground) == {"mine/plugin.py", "mine/__init__.py", "mine/fast.cpython-311-x86_64-linux-gnu.so"}


def test_what_is_installed_below_the_study_is_its_environments(ground, monkeypatch):
    """A virtual environment in the study's folder, and a Python in the home folder that a study lies in."""
    installed = ground / ".venv/lib/python3/site-packages"
    write(ground, **{".venv/lib/python3/site-packages/framework/__init__": "import below"})
    write(ground, **{".venv/lib/python3/below": "", ".venv/lib/python3/json": ""})
    write(ground / "mine", plugin="import framework, json")
    sys.path += [str(installed), str(installed.parent)]
    monkeypatch.setattr(sys, "prefix", str(ground / ".venv"))
    assert followed(ground) == {"mine/plugin.py"}


def named(ground: Path, spec: dict) -> dict[str, str]:
    found = NamedPaths(ground / "study.yaml", ground / "results/x")(spec)
    return {Path(name).relative_to(ground).as_posix(): key for name, key in found.items()}


@pytest.fixture
def data(ground):
    """Files and folders that options may name."""
    for name in ("data/rows.csv", "mine/own.csv", "results/x/table.csv", "results/y/table.csv", "word"):
        (ground / name).parent.mkdir(parents=True, exist_ok=True)
        (ground / name).touch()
    return ground


NAMED = {
    "a file": ({"parameters": {"dataset_options": {"table": "data/rows.csv"}}}, ["data/rows.csv"]),
    "beside the plug-in": ({"model": {"options": {"table": "own.csv"}}}, ["mine/own.csv"]),
    "in a list": ({"options": {"tables": [{"a": "word"}]}}, ["word"]),
    "a folder": ({"rule": {"options": {"folder": "data"}}}, ["data"]),
    "of a cell": ({"cell": {"options": [["deck", "data/rows.csv"]]}}, ["data/rows.csv"]),
    # Benchmarks of file systems write there.
    "a cell's folder": ({"cell": {"options": [["folder", "./data"]]}}, []),
    "no option, a path": ({"toys": "./data"}, ["data"]),
    "no option, a word": ({"workload": "data"}, []),
    "not there": ({"options": {"table": "data/nothing.csv", "optimiser": "sgd", "empty": ""}}, []),
    # What holds the results changes with every run.
    "results": ({"options": {"a": "results", "b": ".", "c": "results/x/table.csv"}}, []),
    "of another study": ({"options": {"a": "results/y/table.csv"}}, ["results/y/table.csv"]),
    "no text": ({"options": {"a": "x\0y", "b": "~nobody-has-this-name/x", "c": "x" * 300}}, []),
}


@pytest.mark.parametrize("case", NAMED)
def test_what_an_option_names_is_found(data, case):
    spec, expected = NAMED[case]
    assert sorted(named(data, spec)) == expected


@pytest.mark.parametrize("place", [".", "mine/.venv/lib/site-packages"])
def test_of_what_is_installed_a_package_s_own_modules_alone_are_followed(ground, monkeypatch, place):
    """The environment of transect may lie in the study's folder, and a plug-in be of an installed package."""
    site = ground / place
    write(
        site,
        tools__INIT="",
        tools__plugins__INIT="",
        tools__help="",
        other__INIT="import tools.unused",
        tools__unused="",
    )
    write(site / "tools/plugins", plug="import other\nfrom tools.help import x\nNAMES = ['other', 'other/__init__.py']")
    (site / "other-1.dist-info").mkdir()
    monkeypatch.setenv("TRANSECT_PLUGINS", str(site / "tools" / "plugins"))
    for cached in (code_hash._text, code_hash._imports, code_hash._neighbours, code_hash._closure, code_hash._of_pip):
        cached.cache_clear()
    found = closure(site / "tools/plugins/plug.py", ground)
    ours = {path.relative_to(site).as_posix() for path in found if path.is_relative_to(site)}
    assert ours == {"tools/__init__.py", "tools/plugins/__init__.py", "tools/plugins/plug.py", "tools/help.py"}
