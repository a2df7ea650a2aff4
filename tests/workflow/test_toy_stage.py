"""A stage from outside of the repository: a folder of its roles in a study's plug-in folder."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from checkouts import ROOT, edited

pytestmark = pytest.mark.study

TOY = ROOT / "tests/plugins/toy"
FILE = "toys.yaml"


@pytest.fixture(scope="module")
def done(place):
    """A folder in which the study has run once, with a copy of the plug-in folder."""
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(TOY / "plugins", place.folder / "mine", ignore=skip)
    (place.folder / FILE).write_text((TOY / FILE).read_text().replace("[plugins]", "[mine]"))
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


def test_its_section_is_in_the_report_its_axes_in_the_table_and_nothing_runs_again(done):
    html = (done.folder / "results/toys/report.html").read_text()
    assert "Norms of toys" in html and "How large trained weights are." in html
    parquet = pytest.importorskip("pyarrow.parquet")
    frame = parquet.read_table(done.folder / "results/toys/records.parquet").to_pandas()
    rows = frame[frame["metric"] == "toy_norm"]
    assert set(rows["stage"]) == {"toy"} and len(rows) == 2
    assert sorted(int(order) for order in rows["order"]) == [1, 2]
    assert done.why(FILE) == {} and done.pending(FILE) == set()


# File of the stage, text, another text.
EDITS = {
    "payload.py": ("    value = ", "    print(flat)\n    value = "),
    "cell.py": ("place=150", "place=151"),
    "stage.py": ("_OFFSET = 0", "_OFFSET = 1"),
}


@pytest.mark.parametrize("file", EDITS)
def test_an_edit_of_the_stage_reruns_it_alone(done, file):
    with edited(done.folder / "mine/toy" / file, *EDITS[file]):
        reasons_of = done.why(FILE)
    assert reasons_of.keys() == {name for name in done.records("toys") if name.startswith("toy/")}
    expected = ("parameter", "offset: 0 -> 1") if file == "stage.py" else ("source", f"mine/toy/{file}")
    assert all(reasons == [expected] for reasons in reasons_of.values()), reasons_of


def test_an_edit_of_its_report_reruns_the_report_alone(done):
    with edited(done.folder / "mine/toy/report.py", "How large", "How very large"):
        assert done.why(FILE) == {}
        pending = done.pending(FILE)
    assert {path.rsplit("/", 1)[1] for path in pending} == {"report.html", "records.parquet", "summary.json"}


def test_a_real_edit_runs_it_again_alone(done):
    before = done.records("toys")
    path = done.folder / "mine/toy/stage.py"
    path.write_text(path.read_text().replace(*EDITS["stage.py"]))
    run = done.make(FILE, report=False)
    assert run.returncode == 0, run.stderr
    after, again = done.records("toys"), done.made_again("toys", before)
    assert again == {name for name in before if name.startswith("toy/")}
    for name in again:
        moved = after[name]["metrics"][0]["value"] - before[name]["metrics"][0]["value"]
        assert moved == pytest.approx(1)


RUNNER = """from transect.engine.stage_helpers import OneProcess


class ToyRunner(OneProcess):
    def inputs(self, job):
        raise RuntimeError("lost")
"""


@pytest.mark.parametrize("runner", [RUNNER, f"import no_such_module\n{RUNNER}"], ids=["raises", "not imported"])
def test_a_runner_that_misbehaves_costs_its_own_cells_alone(done, runner):
    before = done.records("toys")
    (done.folder / "mine/toy/run.py").write_text(runner)
    mine = '    runner = "transect.stages.toy.run:ToyRunner"\n'
    with edited(done.folder / "mine/toy/stage.py", "    payload =", f"{mine}    payload ="):
        run = done.make(FILE, report=False)
    assert run.returncode == 0, run.stderr
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
