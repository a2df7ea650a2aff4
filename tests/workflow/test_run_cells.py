"""`transect run` and `transect why`: chosen cells of a study, and each kind of reason."""

from __future__ import annotations

import json

import pytest

from checkouts import ROOT

pytestmark = pytest.mark.study

STUDY = """
name: chosen
plugins: [{plugins}]
workloads: {{iris-mlp-ce: {{epochs: 1}}, iris-mlp: {{epochs: 1}}}}
train:
  repeats: 2
  grids:
    - {{workloads: [iris-mlp-ce, iris-mlp], frameworks: [numpy], strategies: [single]}}
    - {{workloads: [iris-mlp-ce], frameworks: [test-raises], strategies: [single], repeats: 1}}
ingest: {{paths: [logs]}}
"""
FILE = "chosen.yaml"


@pytest.fixture(scope="module")
def study(place):
    """A folder with a study of which nothing has run."""
    plugins = ROOT / "tests" / "plugins" / "failing"
    (place.folder / FILE).write_text(STUDY.format(plugins=plugins))
    (place.folder / "logs").mkdir()
    (place.folder / "logs" / "notes.txt").write_text("nothing that a parser knows\n")
    return place


def run(study, *arguments):
    return study.transect("run", FILE, *arguments)


def short(records) -> set[str]:
    return {name.split("~")[0] for name in records}


def reported(study) -> dict[str, int]:
    """Return what the report counts."""
    folder = study.folder / "results/chosen"
    assert (folder / "report.html").stat().st_size
    counts: dict[str, int] = json.loads((folder / "summary.json").read_text())["counts"]
    return counts


IRIS = {
    "dataset/iris-mlp-ce",
    "reference/iris-mlp-ce.numpy.single.n1x1.b16.fp64.r1",
    "train/iris-mlp-ce.numpy.single.n1x1.b16.fp32.r1",
}


def test_before_anything_ran_all_is_missing_and_told_by_stage(study):
    reasons_of = study.why(FILE)
    assert {kind for reasons in reasons_of.values() for kind, _ in reasons} == {"missing"}
    assert short(reasons_of) >= IRIS and len(reasons_of) == 2 + 4 + 5 + 1
    assert len(study.why(FILE, "train/iris-mlp.*")) == 2
    lost = study.transect("why", FILE, "no-such")
    assert lost.returncode == 2 and "'no-such'" in lost.stderr and "transect check" in lost.stderr
    dry = study.make(FILE, dry=True)
    for line in ("dataset: 2 cells", "reference: 4 cells", "train: 5 cells", "ingest: 1 cells"):
        assert f"[transect] {line} would run: " in dry.stderr
    assert "5 missing" in dry.stderr
    assert not (study.folder / "results/chosen").exists()


def test_chosen_cells_run_with_what_they_take(study):
    done = run(study, "train/iris-mlp-ce.numpy.*.r1~*")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "1 ok"
    records = study.records("chosen")
    assert short(records) == IRIS
    assert reported(study)["ok"] == 3
    started = {name: record["started"] for name, record in records.items()}
    # What it takes came first.
    assert sorted(started, key=started.get) == sorted(
        started, key=lambda n: ["dataset", "reference", "train"].index(n.split("/")[0])
    )


def test_a_cell_whose_record_holds_is_kept_unless_it_is_asked_again(study):
    before = study.records("chosen")
    (name,) = study.records("chosen", "train")
    cell = name.split("/")[1]
    done = run(study, cell)
    assert (done.returncode, done.stdout.strip()) == (0, "1 ok")
    assert study.records("chosen") == before
    # The readable part of an id is enough where it is one cell's.
    done = run(study, cell.split("~")[0], "--force")
    assert done.returncode == 0, done.stderr
    assert study.made_again("chosen", before) == {name}


def test_a_failed_cell_is_the_exit_code(study):
    done = run(study, "train/*test-raises*")
    assert done.returncode == 1, done.stderr
    assert done.stdout.strip() == "1 failed"
    # Its input, reference and data hold, or ran; one report says so of all.
    counts = reported(study)
    assert counts["failed"] == 1 and counts["ok"] == len(study.records("chosen")) - 1
    (record,) = (r for n, r in study.records("chosen").items() if "test-raises" in n)
    assert record["cause"] == "crash"


def test_retry_runs_what_failed_and_nothing_else(study):
    before = study.records("chosen")
    done = study.transect("retry", "results/chosen")
    assert (done.returncode, done.stdout.strip()) == (1, "1 failed"), done.stderr
    assert short(study.made_again("chosen", before)) == {"train/iris-mlp-ce.test-raises.single.n1x1.b16.fp32"}


def test_a_run_of_the_study_runs_the_rest_alone_and_looks_at_what_was_made_anew(study):
    before = study.records("chosen")
    assert study.make(FILE, report=False).returncode == 0
    after = study.records("chosen")
    assert len(after) == 12
    assert {n for n in before if after[n]["started"] != before[n]["started"]} == set()
    assert study.why(FILE) == {} and study.pending(FILE, report=False) == set()
    name = next(n for n in after if n.startswith("dataset/iris-mlp-ce"))
    assert run(study, name, "--force").returncode == 0
    assert study.stamps("chosen", [name]) <= study.pending(FILE, report=False)
    again = study.records("chosen")
    # The same data: nothing runs again.
    assert study.make(FILE, report=False).returncode == 0 and study.records("chosen") == again
