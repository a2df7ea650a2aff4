"""A stage of a plug-in folder whose declaration is wrong: one message says what, before anything runs."""

from __future__ import annotations

import json
import shutil

import pytest

from checkouts import ROOT, Place, edited

pytestmark = pytest.mark.env

SUPPORTS = "    def supports(self, cell):\n        return True\n\n    def spec("
GROUP = "\n    from transect.planning.stage import Placement as _P\n    placement = _P(group='{}')"
# Text of `stage.py`, what stands in its place, and what is said of it.
WRONG = {
    "misspelt": ("def inputs(", "def input(", "stage 'toy' has `input`: did you mean `inputs`?"),
    "lacks": ("def environment(", "def surroundings(", "stage 'toy' lacks environment"),
    "no payload": ('"transect.stages.toy.payload:norm"', '""', "stage 'toy' has neither a `payload`"),
    "another name": ('register("toy")', 'register("toys")', "stage.py: registers no stage 'toy'"),
    "a text for a tuple": ('("train",)', '"train"', "stage 'toy' has the text 'train' as its `needs`"),
    "needs nobody": ('("train",)', '("trian",)', "stage 'toy' needs an unknown stage 'trian': did you mean 'train'?"),
    "waits for itself": ('("train",)', f'("train",){GROUP.format("prepare")}', "in a circle: prepare"),
    "a taken group": (
        '("train",)',
        f'("train",){GROUP.format("specs")}',
        "'toy' cannot have the name or group 'specs'",
    ),
    "a text to take": ('Takes("weights.npz")', '"weights.npz"', "stage 'toy' takes as its weights 'weights.npz'"),
    "an unknown role": ('takes = {"weights"', 'takes = {"arrays"', "the role 'weights', and `takes` has: arrays"),
    "contests": ('("train",)', '("train",)\n    comparison = None', "which is nothing any more: expected `pairs`"),
    "half a section": ("    section = ToySection\n", "", "stage 'toy' has only one of `key` and `section`"),
    "cells raises": ("yield ToyCell(", "raise OSError('lost')\n            dict(", "'toy' raised OSError: lost ("),
    "no cells of its own": ("yield ToyCell(", "yield context.cells['train'][0] or dict(", "expected ToyCell of stage"),
    "no inputs": ('return {"weights": trained', '_ = {"weights": trained', "stage 'toy' raised TypeError"),
    "no environment": ('return "base"', "pass", "stage 'toy': `environment` gives None: expected a name"),
    "a key of every spec": ('{"offset": _OFFSET}', '{"lock": 1}', "`spec` has keys that every spec has: lock"),
}
STUDIES = {
    "nobody trains it": ("toy: {workloads: [iris-mlp-ce]", "toy: {workloads: [iris-mlp]", "which no train grid has"),
    "without its folder": ("plugins: [plugins]", "plugins: []", "unknown key 'toy'"),
}
EDITS = [("plugins/toy/stage.py", *row) for row in WRONG.values()] + [("toys.yaml", *row) for row in STUDIES.values()]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toys")
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "tests/plugins/toy", folder, ignore=skip, dirs_exist_ok=True)
    return Place(folder)


@pytest.fixture(autouse=True)
def fresh(place):
    """Byte code of an edit as long and of the same second would stand for the next one."""
    shutil.rmtree(place.folder / "plugins/toy/__pycache__", ignore_errors=True)


@pytest.mark.parametrize(("file", "old", "new", "expected"), EDITS, ids=[*WRONG, *STUDIES])
def test_what_is_wrong_is_said_before_anything_runs(file, old, new, expected, place):
    with edited(place.folder / file, old, new):
        told = place.transect("check", "toys.yaml")
    assert told.returncode == 2 and expected in told.stderr, told.stderr
    assert "Traceback" not in told.stderr and len(told.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        ("stage.py", "payload:norm", "payload:norn", "FAIL  arguments of transect.stages.toy.payload:norn"),
        ("stage.py", "toy.payload:norm", "toy.paylaod:norm", "FAIL  arguments of transect.stages.toy.paylaod:norm"),
        ("payload.py", "folders: dict[str, Path], ", "", "expected [3], given [2]"),
        (
            "cell.py",
            '["toy"] = "toy"',
            '["toys"] = "toys"',
            "FAIL  stage of its class of cells: expected toy, given toys",
        ),
    ],
)
def test_a_check_of_the_stage_sees_what_no_plan_does(file, old, new, expected, place):
    with edited(place.folder / "plugins/toy" / file, old, new):
        told = place.transect("check-plugin", "stage", "toy", "--plugins", "plugins", "--no-run")
    assert told.returncode == 1 and expected in told.stdout, told.stdout + told.stderr


def test_a_stage_that_supports_with_a_yes_is_told_what_was_expected(place):
    with edited(place.folder / "plugins/toy/stage.py", "    def spec(", SUPPORTS):
        told = place.transect("check", "toys.yaml", "--json")
    assert told.stdout.count("stage 'toy': `supports` gives True: expected None, or a sentence") == 2


def test_a_stage_may_ask_for_another_as_it_is_imported(place):
    with edited(place.folder / "plugins/toy/stage.py", "_OFFSET = 0", "_OFFSET = 0\nSTAGES.get('train')"):
        told = place.transect("check", "toys.yaml")
    assert told.returncode == 0, told.stderr


def test_what_a_stage_prints_as_it_is_imported_is_no_part_of_an_answer(place):
    with edited(place.folder / "plugins/toy/stage.py", "_OFFSET = 0", "_OFFSET = 0\nprint('noise')"):
        told = place.transect("check", "toys.yaml", "--json")
    assert len(json.loads(told.stdout)["cells"]) == 5 and told.stderr == "noise\n"


def test_a_stage_is_checked_at_work_in_a_study_that_asks_for_it(place, base_python):
    with edited(place.folder / "plugins/toy/report.py", "Lead(", "("):
        told = place.transect("check-plugin", "stage", "toy", "--study", "toys.yaml")
    assert told.returncode == 1 and told.stdout.count(": ok\n") == 3, told.stdout + told.stderr
    (failed,) = (line for line in told.stdout.splitlines() if line.startswith("FAIL"))
    assert "problems of the report: expected []" in failed and "a section yields a str" in failed
    assert not (place.folder / "results").exists()
