"""`transect list`, and what is said of names that nothing has."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from checkouts import ROOT
from doc_examples import EXAMPLES, write_examples
from transect.cli.kinds import REGISTRIES, plural
from transect.domain.metrics import METRICS
from transect.planning.study import names_of
from transect.report.engine.rules import RULES


@pytest.fixture
def listed(transect):
    """Return what lists a kind: names with their sentences."""

    def ask(*arguments):
        code, out, err = transect("list", *arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    return ask


def test_every_kind_of_plug_in_is_listed_with_a_sentence_for_each_name(listed):
    counts = {row["kind"]: row["names"] for row in listed()}
    for registry in REGISTRIES:
        kind = plural(registry.kind).replace(" ", "-")
        rows = listed(kind)
        assert [row["name"] for row in rows] == registry.names() and counts.pop(kind) == len(rows)
        assert [row["name"] for row in rows if not row["about"]] == []
    assert set(counts) == {"studies", "systems", "environments", "metrics", "rules"}


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("studies", sorted(path.stem for path in (ROOT / "config/studies").glob("*.yaml"))),
        ("systems", sorted(path.stem for path in (ROOT / "config/systems").glob("*.yaml"))),
        ("metrics", [*METRICS]),
        ("rules", [*RULES]),
    ],
)
def test_what_is_no_plug_in_is_listed_too(kind, names, listed):
    rows = listed(kind)
    assert [row["name"] for row in rows] == names
    assert [row["name"] for row in rows if len(row["about"]) < 8] == []


def test_the_sentence_of_a_file_is_the_first_of_its_comment():
    assert names_of("study")["frameworks"] == (
        "Frameworks side by side: every framework with every way to distribute it, on 1, 2 and 4 ranks."
    )
    assert names_of("system")["example-gpu-cluster"] == "A GPU cluster under Slurm, line by line."


def test_a_kind_may_be_given_in_the_singular_and_as_people_type_it(listed):
    assert listed("framework") == listed("Frameworks")
    assert listed("report_format") == listed("report-formats")


@pytest.mark.parametrize(
    ("arguments", "wrong", "nearest", "known"),
    [
        (("list", "framwork"), "kind 'framwork'", "frameworks", "runtimes"),
        (("list", "rules", "--study", "qiuck"), "study 'qiuck'", "quick", "messages"),
        (("check", "qiuck"), "study 'qiuck'", "quick", "messages"),
        (("check", "quick", "--system", "lptop"), "system 'lptop'", "laptop", "virtual-cluster"),
        (("doctor", "--system", "lptop"), "system 'lptop'", "laptop", "virtual-cluster"),
        (("report", "qiuck"), "study 'qiuck'", "quick", "messages"),
        (("conformance", "pyhton"), "runtime 'pyhton'", "python", "rust"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_nearest_and_all_that_there_are(
    arguments, wrong, nearest, known, transect
):
    code, out, err = transect(*arguments)
    assert (code, out) == (2, "")
    assert f"unknown {wrong}: did you mean '{nearest}'? Known: " in err and known in err


def test_a_folder_called_like_a_study_does_not_stand_for_it(tmp_path, monkeypatch, transect):
    (tmp_path / "messages").mkdir()
    monkeypatch.chdir(tmp_path)
    code, out, err = transect("check", "messages", "--json")
    assert code in (0, 1) and json.loads(out)["study"] == "messages", err


@pytest.mark.env
@pytest.mark.parametrize("given", ["--plugins", "--study"])
def test_what_lies_in_a_plug_in_folder_is_listed(given, tmp_path):
    write_examples(tmp_path / "plugins")
    (tmp_path / "plugins/envs/mine").mkdir(parents=True)
    (tmp_path / "plugins/envs/mine/requirements.txt").write_text("numpy==2.4.6\n# a==b\n")
    (tmp_path / "study.yaml").write_text(EXAMPLES["study.yaml"])
    option = [given, str(tmp_path / ("plugins" if given == "--plugins" else "study.yaml"))]
    found = {}
    for kind in ("strategies", "stages", "rules", "environments"):
        done = subprocess.run(
            [sys.executable, "-m", "transect", "list", kind, *option, "--json"],
            env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        found |= {row["name"]: row["about"] for row in json.loads(done.stdout)}
    assert found["extra-reduce-broadcast"] == "MPI_Reduce and MPI_Bcast."
    assert found["toy"] == "Takes weights and gives a number."
    assert found["mine"] == "1 packages, not built yet"


@pytest.mark.env
def test_what_a_study_describes_itself_is_listed_as_such():
    done = subprocess.run(
        [sys.executable, "-m", "transect", "list", "frameworks", "--study", "own-scripts", "--json"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert {"name": "lightning", "about": "described in the study"} in json.loads(done.stdout)


@pytest.mark.env
def test_a_part_of_a_report_that_cannot_be_imported_is_named_beside_the_rules(tmp_path):
    write_examples(tmp_path / "plugins")
    (tmp_path / "plugins/toy/report.py").write_text("from nowhere import REPORT\n")
    done = subprocess.run(
        [sys.executable, "-m", "transect", "list", "rules", "--plugins", str(tmp_path / "plugins"), "--json"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and [row["name"] for row in json.loads(done.stdout)] == [*RULES]
    assert "toy" in done.stderr and "nowhere" in done.stderr
