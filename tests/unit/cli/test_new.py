"""`transect new`: what it writes works as it is, and it spoils nothing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from checkouts import ROOT
from doc_examples import EXAMPLES
from transect.cli.new import _SCAFFOLDS, SCAFFOLDS
from transect.cli.new_files import write_new
from transect.domain.errors import BadInput

# Names that make other ones of a file, of a class and of a study's key.
NAMES = {
    "framework": "my-framework",
    "strategy": "mpi",
    "runtime": "My.rt+2",
    "parser": "other_bench",
    "stage": "my-stage",
    "workload": "toy",
}
# What the written tests themselves run in a tiny study, or what needs PyTorch: `extra-runtime` of the shared study.
RUN_ALREADY = ("strategy", "runtime", "stage", "workload")


@pytest.fixture(autouse=True)
def no_plug_ins(monkeypatch):
    monkeypatch.setenv("TRANSECT_PLUGINS", "")


def files_below(folder):
    """Return the files in `folder`, but for what Python compiled of them when a later command imported them."""
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(file.as_posix() for file in files if "__pycache__" not in file.parts)


def run(folder, *command):
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "TRANSECT_PLUGINS": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def written(tmp_path_factory, base_python):
    """Return a folder in which one of each kind lies in `mine`, and the commands that were printed for each."""
    folder = tmp_path_factory.mktemp("study")
    told = {kind: run(folder, "transect", "new", kind, name, "--folder", "mine") for kind, name in NAMES.items()}
    wrote = [line.removeprefix("wrote mine/") for lines in told.values() for line in lines if line.startswith("wrote")]
    assert sorted(wrote) == files_below(folder / "mine")
    return folder, {kind: lines[-2:] for kind, lines in told.items()}


@pytest.mark.env
def test_the_tests_that_are_written_pass(written):
    folder, commands = written
    tests = [test.split()[1] for _, test in commands.values()]
    *_, last = run(folder, "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert " passed" in last and "skipped" not in last


@pytest.mark.env
@pytest.mark.parametrize("kind", NAMES)
def test_what_is_written_passes_check_plugin_as_it_is_printed(kind, written):
    folder, commands = written
    command = commands[kind][0].removeprefix("next: ").split()
    *_, last = run(folder, *command, *(["--no-run"] if kind in RUN_ALREADY else []))
    assert last.startswith(f"{kind} '{NAMES[kind]}': 0 of ")


@pytest.mark.parametrize("kind", NAMES)
def test_no_name_of_the_page_is_left(kind, tmp_path, transect):
    code, _, err = transect("new", kind, "my-own", "--folder", tmp_path / "mine")
    assert code == 0, err
    found = files_below(tmp_path / "mine")
    assert "tests/test_my_own.py" in found
    text = "\n".join([*found, *((tmp_path / "mine" / name).read_text() for name in found)])
    assert [word for word in ("extra", "toy", "wine", "EXTRA") if word in text] == []


def test_each_file_to_begin_with_is_one_of_the_documentation_or_a_test_of_it():
    there = [name for name in files_below(SCAFFOLDS) if "__pycache__" not in name]
    assert there == sorted(template for one in _SCAFFOLDS.values() for template in one.files)
    assert [name for name in there if not name.startswith("tests/") and name not in EXAMPLES] == []


@pytest.mark.parametrize("name", ["2d", "a b", "", "_a", "class", "é", "a/b", "../a", "a\nb"])
def test_a_name_that_no_file_can_have_is_refused(name, tmp_path, transect):
    code, _, err = transect("new", "framework", name, "--folder", tmp_path / "mine")
    assert code == 2 and "expected letters, digits" in err and len(err.splitlines()) == 1
    assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("framework", "numpy", "framework 'numpy' is there already, in "),
        ("framework", "PyTorch", "framework 'torch', which 'PyTorch' may mean is there already"),
        ("stage", "generated_model", "stage 'generated-model', which"),
        ("stage", "my.own-one", "expected 'my-own-one' or 'my_own_one'"),
        ("stage", "limits", "the key 'limits' of a study is taken"),
        ("framwork", "mine", "unknown kind of plug-ins to begin with 'framwork': did you mean 'framework'?"),
    ],
)
def test_a_name_that_is_taken_is_refused(kind, name, message, tmp_path, transect):
    code, _, err = transect("new", kind, name, "--folder", tmp_path / "mine")
    assert code == 2 and message in err
    assert not (tmp_path / "mine").exists()


def test_a_file_that_is_there_is_kept_and_nothing_is_written(tmp_path, transect):
    folder = tmp_path / "mine"
    (folder / "tests").mkdir(parents=True)
    (folder / "tests/test_own.py").symlink_to("nowhere")
    code, _, err = transect("new", "strategy", "own", "--folder", folder)
    assert code == 2 and f"{folder}/tests/test_own.py: is there already" in err
    assert [path.name for path in folder.iterdir()] == ["tests"]


def test_a_folder_that_is_a_file_is_named(tmp_path, transect):
    (tmp_path / "mine").write_text("mine")
    code, _, err = transect("new", "strategy", "own", "--folder", tmp_path / "mine")
    assert code == 2 and f"{tmp_path}/mine: is no folder" in err


def test_what_cannot_be_written_whole_is_not_written(tmp_path):
    with pytest.raises(OSError):
        write_new({tmp_path / "a": "a", tmp_path / ("b" * 300): "b"})
    assert files_below(tmp_path) == []
    (tmp_path / "b").write_text("mine")
    with pytest.raises(BadInput):
        write_new({tmp_path / "a": "a", tmp_path / "b": "b"})
    assert files_below(tmp_path) == ["b"] and (tmp_path / "b").read_text() == "mine"
