"""A stage from outside of the repository: a folder of its roles in a study's plug-in folder."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from checkouts import ROOT, edited

pytestmark = pytest.mark.study

STUDY = """
name: toys
plugins: [mine]
workloads: {iris-mlp-ce: {epochs: 2}}
train:
  repeats: 1
  grids:
    - {workloads: [iris-mlp-ce], frameworks: [numpy], strategies: [single]}
toy: {workloads: [iris-mlp-ce], orders: [1, 2]}
"""
FILE = "toys.yaml"


@pytest.fixture(scope="module")
def done(place):
    """A folder in which the study has run once, with a copy of the plug-in folder."""
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "tests/plugins/toy", place.folder / "mine", ignore=skip)
    (place.folder / FILE).write_text(STUDY)
    run = place.make(FILE)
    assert run.returncode == 0, run.stderr
    return place


def toys(place):
    """Return the toy records by the order of their norm."""
    return {
        record["cell"].get("order", 2): record
        for name, record in place.records("toys").items()
        if name.startswith("toy/")
    }


def test_it_is_planned_and_checked(done):
    told = done.transect("check", FILE, "--json")
    assert told.returncode == 0, told.stderr
    rows = [row for row in json.loads(told.stdout)["cells"] if row["stage"] == "toy"]
    names = sorted(row["cell"].split("~")[0] for row in rows)
    assert names == ["iris-mlp-ce.numpy", "iris-mlp-ce.numpy.l1"]
    assert {(row["environment"], row["skip"]) for row in rows} == {("base", None)}


def test_its_numbers_are_those_of_the_weights_that_it_takes(done):
    found = toys(done)
    (weights,) = (done.folder / "results/toys/train").glob("*/weights.npz")
    with np.load(weights) as file:
        flat = np.concatenate([file[name].ravel() for name in file.files])
    for order, record in found.items():
        assert record["status"] == "ok", record["message"]
        (metric,) = record["metrics"]
        assert (metric["name"], metric["unit"]) == ("toy_norm", "1")
        assert metric["value"] == pytest.approx(np.linalg.norm(flat, order))
        assert record["inputs"][0].startswith("weights.npz ")
    assert sorted(found) == [1, 2]


def test_its_section_is_in_the_report_and_its_axes_in_the_table(done):
    html = (done.folder / "results/toys/report.html").read_text()
    assert "Norms of toys" in html and "How large trained weights are." in html
    parquet = pytest.importorskip("pyarrow.parquet")
    frame = parquet.read_table(done.folder / "results/toys/records.parquet").to_pandas()
    rows = frame[frame["metric"] == "toy_norm"]
    assert set(rows["stage"]) == {"toy"} and len(rows) == 2
    assert sorted(int(order) for order in rows["order"]) == [1, 2]


def test_nothing_runs_again_without_an_edit(done):
    assert done.why(FILE) == {}
    assert done.pending(FILE) == set()


# File of the stage, text, another text.
EDITS = {
    "payload.py": ("    value = ", "    print(flat)\n    value = "),
    "cell.py": ("place=150", "place=151"),
    "stage.py": ("_OFFSET = 0", "_OFFSET = 1"),
}


@pytest.mark.parametrize("file", EDITS)
def test_an_edit_of_the_stage_reruns_it_alone(done, file):
    with edited(done.folder / "mine/toy" / file, *EDITS[file]):
        told = done.why(FILE)
    assert told.keys() == {name for name in done.records("toys") if name.startswith("toy/")}
    expected = ("parameter", "offset: 0 -> 1") if file == "stage.py" else ("source", f"mine/toy/{file}")
    assert all(reasons == [expected] for reasons in told.values()), told


def test_an_edit_of_its_declaration_that_changes_no_cell_reruns_nothing(done):
    with edited(done.folder / "mine/toy/stage.py", "of the norms", "of all these norms"):
        assert done.why(FILE) == {}


def test_an_edit_of_its_report_reruns_the_report_alone(done):
    with edited(done.folder / "mine/toy/report.py", "How large", "How very large"):
        assert done.why(FILE) == {}
        pending = done.pending(FILE)
    assert {path.rsplit("/", 1)[1] for path in pending} == {"report.html", "records.parquet", "summary.json"}


def test_an_edit_of_what_training_takes_reruns_it_too(done):
    with edited(done.folder / FILE, "epochs: 2", "epochs: 2, learning_rate: 0.01"):
        told = done.why(FILE)
    stages = {name.split("/")[0] for name in told}
    assert stages == {"reference", "train", "toy"}
    assert {kind for name in told if name.startswith("toy/") for kind, _ in told[name]} == {"input"}


def test_a_real_edit_runs_it_again_alone(done):
    before = done.records("toys")
    path = done.folder / "mine/toy/stage.py"
    path.write_text(path.read_text().replace(*EDITS["stage.py"]))
    run = done.make(FILE, report=False)
    assert run.returncode == 0, run.stderr
    after = done.records("toys")
    again = {name for name in after if after[name]["started"] != before[name]["started"]}
    assert again == {name for name in before if name.startswith("toy/")}
    for name in again:
        moved = after[name]["metrics"][0]["value"] - before[name]["metrics"][0]["value"]
        assert moved == pytest.approx(1)


BAD = {
    "unknown key": (
        "orders: [1, 2]",
        "order: [1, 2]",
        [FILE, "toy.order", "did you mean 'orders'", "framework", "workloads"],
    ),
    "bad value": ("orders: [1, 2]", "orders: [0]", [FILE, "toy.orders.0", "0"]),
    "nobody trains it": (
        "toy: {workloads: [iris-mlp-ce]",
        "toy: {workloads: [iris-mlp]",
        [FILE, "toy.workloads", "nobody trains 'iris-mlp'"],
    ),
    "without its plug-in folder": ("plugins: [mine]", "plugins: []", [FILE, "'toy'"]),
}


@pytest.mark.parametrize("name", BAD)
def test_a_mistake_in_its_section_is_told_like_any_other(done, name):
    old, new, expected = BAD[name]
    with edited(done.folder / FILE, old, new):
        told = done.transect("check", FILE)
    assert told.returncode == 2
    assert all(part in told.stderr for part in expected), told.stderr
    assert "Traceback" not in told.stderr


BROKEN = {
    "cells raises": (
        "stage.py",
        "yield ToyCell(",
        "raise RuntimeError('lost'); yield ToyCell(",
        ["stage 'toy' raised RuntimeError: lost", "stage.py:"],
    ),
    "cells of another stage": (
        "stage.py",
        "yield ToyCell(workload=name, framework=section.framework, order=order)",
        "yield context.cells['train'][0]",
        ["stage 'toy'", "expected ToyCell"],
    ),
    "takes nothing": ("stage.py", '{"weights": weights}', '{"weights": None}', ["stage 'toy'", "weights None"]),
    "waits for itself": (
        "stage.py",
        'needs = ("train",)',
        'needs = ("train",)\n    placement = Placement(group="prepare")',
        ["in a circle", "prepare", "train"],
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_stage_that_misbehaves_is_named(done, name):
    file, old, new, expected = BROKEN[name]
    imported = "import STAGES, Placement, Stage"
    with (
        edited(done.folder / "mine/toy/stage.py", "import STAGES, Stage", imported),
        edited(done.folder / "mine/toy" / file, old, new),
    ):
        told = done.transect("check", FILE)
        ran = done.make(FILE)
    assert (told.returncode, ran.returncode) == (2, 2)
    for text in (told.stderr, ran.stderr):
        assert all(part in text for part in expected), text
        assert "Traceback" not in text


@pytest.mark.parametrize("name", ["my-toy", "specs"])
def test_a_stage_whose_records_would_be_lost_is_refused(done, name):
    other = done.folder / f"named-{name}"
    shutil.copytree(done.folder / "mine/toy", other / name)
    plan = other / name / "stage.py"
    plan.write_text(plan.read_text().replace('register("toy")', f'register("{name}")'))
    with edited(done.folder / FILE, "plugins: [mine]", f"plugins: [mine, named-{name}]"):
        told = done.transect("check", FILE)
    assert told.returncode == 2
    assert f"stage '{name}' cannot" in told.stderr


DECLARED = {
    "no payload": ('payload = "transect.stages.toy.payload:norm"', 'payload = ""', "'toy' has neither a `payload`"),
    "a payload that is not there": ("toy.payload:norm", "toy.lost:norm", "there is no module transect.stages.toy.lost"),
    "a role that is not declared": ('takes = {"weights"', 'takes = {"arrays"', "role 'weights'"),
    "no environment": ("def environment(", "def surroundings(", "environment"),
}


@pytest.mark.parametrize("name", DECLARED)
def test_a_declaration_that_lacks_something_is_refused(done, name):
    old, new, expected = DECLARED[name]
    with edited(done.folder / "mine/toy/stage.py", old, new):
        told = done.transect("check", FILE)
    assert told.returncode == 2
    assert expected in told.stderr and "Traceback" not in told.stderr


RUNNER = """from transect.engine.stage_helpers import OneProcess


class ToyRunner(OneProcess):
    def inputs(self, job):
        raise RuntimeError("lost")
"""
FAULTS = {"inputs raises": RUNNER, "not imported": f"import no_such_module\n{RUNNER}"}


@pytest.mark.parametrize("name", FAULTS)
def test_a_runner_that_misbehaves_costs_its_own_cells_alone(done, name):
    before = done.records("toys")
    (done.folder / "mine/toy/run.py").write_text(FAULTS[name])
    mine = '    runner = "transect.stages.toy.run:ToyRunner"\n'
    with edited(done.folder / "mine/toy/stage.py", "    payload =", f"{mine}    payload ="):
        run = done.make(FILE, report=False)
        dry = done.make(FILE, dry=True)
    assert (run.returncode, dry.returncode) == (0, 0), run.stderr + dry.stderr
    after = done.records("toys")
    for cell, record in after.items():
        if cell.startswith("toy/"):
            assert record["cause"] == "crash", record
        else:
            assert record == before[cell]
    assert done.make(FILE, report=False).returncode == 0
    assert {record["status"] for record in done.records("toys").values()} == {"ok"}


def test_a_study_that_is_edited_while_it_runs_has_its_report(done):
    path, report = done.folder / FILE, done.folder / "results/toys/report.html"
    text, before = path.read_text(), report.stat().st_mtime_ns
    old = "    value ="
    with edited(done.folder / "mine/toy/payload.py", old, f"    open({str(path)!r}, 'w').write('a: [')\n{old}"):
        run = done.make(FILE)
    assert path.read_text() == "a: ["
    path.write_text(text)
    assert run.returncode == 0, run.stderr
    assert report.stat().st_mtime_ns > before


@pytest.mark.parametrize("name", ["toy", "train"])
def test_a_stage_that_is_there_twice_is_named_with_both_places(done, name):
    other = done.folder / f"other-{name}"
    shutil.copytree(done.folder / "mine/toy", other / name)
    with edited(done.folder / FILE, "plugins: [mine]", f"plugins: [mine, other-{name}]"):
        told = done.transect("check", FILE)
        ran = done.make(FILE)
    first = done.folder / "mine/toy" if name == "toy" else ROOT / "src/transect/stages/train"
    assert (told.returncode, ran.returncode) == (2, 2)
    for text in (told.stderr, ran.stderr):
        assert f"stage '{name}' is there twice" in text
        assert str(first / "stage.py") in text and str(other / name / "stage.py") in text
        assert "Traceback" not in text
