"""No end without a word: names in a pattern language, plug-ins that quit, faults of the machine."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from checkouts import ROOT, Checkout, Place

pytestmark = pytest.mark.study

LOG = ROOT / "tests/data/hpc/hpl-2.0-netlib.txt"
NAMES = ["run-{n}.txt", "a<b>.txt", "{{x}}.txt", "*.txt", 'it\'s "q" $HOME.txt', "ü\n\x1b[31m.txt"]
PLACES = ["supports", "command", "inputs", "collect", "payload"]


def test_no_name_of_a_folder_or_file_reaches_a_pattern_language_or_a_shell(tmp_path):
    checkout = Checkout(tmp_path / 'a {b} <c> it\'s "q" $HOME; ü[x]*?')
    folder = checkout.folder / "st{u}dy <x> 'q'"
    (folder / "lo{gs}").mkdir(parents=True)
    for name in NAMES:
        shutil.copy(LOG, folder / "lo{gs}" / name)
    study = {"name": "names", "ingest": {"paths": ["lo{gs}", *(f"lo{{gs}}/{n}" for n in NAMES)]}}
    (folder / "na{m}e.yaml").write_text(json.dumps(study))
    given = (folder / "na{m}e.yaml").relative_to(checkout.folder)
    run = checkout.snakemake("--config", f'study="{given}"')
    assert run.returncode == 0, run.stderr
    records = checkout.records("names", "ingest").values()
    assert len(records) == len(NAMES) + 1
    assert {record["status"] for record in records} == {"ok"}
    counts = [record["details"]["status_counts"] for record in records]
    assert sum(one["ok"] for one in counts) == 2 * len(NAMES) * counts[-1]["ok"]
    assert "\x1b" not in run.stderr
    assert (checkout.folder / "results/names/report.html").is_file()


@pytest.fixture(scope="module")
def quitting(place):
    """A folder in which a study has run whose plug-ins quit, and that run."""
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "tests/plugins/quitting", place.folder / "quitting", ignore=skip)
    study = {"name": "quits", "plugins": ["quitting"], "quits": {"places": PLACES}}
    (place.folder / "quits.yaml").write_text(json.dumps(study))
    return place, place.make("quits.yaml")


def test_a_cell_whose_plug_in_quits_has_a_record_of_it(quitting):
    place, run = quitting
    assert run.returncode == 0, run.stderr
    records = {r["cell"]["where"]: r for r in place.records("quits", "quits").values()}
    assert sorted(records) == sorted(PLACES)
    for place, record in records.items():
        assert (record["status"], record["cause"]) == ("failed", "crash"), place
        expected = "exit code 0 without a result" if place == "payload" else "SystemExit: 0"
        assert expected in record["message"], (place, record["message"])


def test_a_report_whose_part_quits_comes_and_says_so(quitting):
    place, _ = quitting
    html = (place.folder / "results/quits/report.html").read_text()
    assert "SystemExit: 0" in html and "quits/report.py" in html


def test_check_names_a_cell_whose_plug_in_quits(quitting):
    place, _ = quitting
    told = place.transect("check", "quits.yaml")
    assert told.returncode == 0, told.stderr
    assert "SystemExit: 0" in told.stdout and "5 cells" in told.stdout


QUITS = {
    "a plug-in": ({"mine.py": "import sys\nsys.exit(0)\n"}, {}, "plug-in", "mine.py"),
    "by the builtin": ({"mine.py": "exit()\n"}, {}, "plug-in", "mine.py"),
    "a stage": ({"quits/stage.py": "raise SystemExit\n"}, {}, "stage", "quits/stage.py"),
    "the cell of a stage": ({"quits/cell.py": "import sys\nsys.exit(0)\n"}, {}, "stage", "quits/stage.py"),
    "checking a section": ({}, {"places": ["check"]}, "stage 'quits'", "stage.py"),
    "planning a cell": ({}, {"places": ["spec"]}, "stage 'quits'", "stage.py"),
}


@pytest.mark.parametrize("name", QUITS)
def test_a_plug_in_that_quits_while_a_study_is_planned_is_named(place, name):
    files, section, *expected = QUITS[name]
    folder = place.folder / "quitting-early"
    shutil.rmtree(folder, ignore_errors=True)
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "tests/plugins/quitting", folder, ignore=skip)
    for file, text in files.items():
        (folder / file).write_text(text)
    study = {"name": "early", "plugins": [folder.name], "quits": section}
    (place.folder / "early.yaml").write_text(json.dumps(study))
    checked = place.transect("check", "early.yaml")
    for run in (checked, place.make("early.yaml")):
        assert run.returncode == 2, run.stderr
        assert all(part in run.stderr for part in ["transect: ", "SystemExit", *expected])
        assert "Traceback" not in run.stderr
    assert not (place.folder / "results/early").exists()


ODD = {
    "a NUL byte": (b"name: odd\n\0", "odd.yaml: cannot be read as YAML"),
    "5,000 brackets": (b"name: " + b"[" * 5000, "nested too deeply"),
    "no text": (b"name: \xff", "cannot be read"),
    "a million repeats": (
        b"name: odd\ntrain: {repeats: 1000000, grids: [{workloads: [iris-mlp], frameworks: [numpy], "
        b"strategies: [single]}]}\n",
        "max_cells",
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_a_study_that_cannot_be_read_is_told_in_one_message(place, name):
    text, expected = ODD[name]
    (place.folder / "odd.yaml").write_bytes(text)
    for run in (place.transect("check", "odd.yaml"), place.make("odd.yaml")):
        assert run.returncode == 2
        assert expected in run.stderr and "Traceback" not in run.stderr, run.stderr


CONFIG = {
    "a number": (17, "'results': expected one line of text, found"),
    "an escape": ("a\x1b[31m", "expected one line of text"),
    "a study's folder that is a file": ("taken", "Not a directory: 'taken/quick'"),
    "below a file": ("taken/quick/x", "Not a directory: 'taken/quick'"),
    "a variable of a path": ("re<s>", "re<s>"),
}


@pytest.mark.parametrize("name", CONFIG)
def test_configuration_that_cannot_be_used_is_told(place, name):
    given, expected = CONFIG[name]
    (place.folder / "taken").mkdir(exist_ok=True)
    (place.folder / "taken/quick").write_text("a file")
    run = place.make("quick", results=given)
    assert run.returncode == 2, run.stderr
    assert expected in run.stderr and "Traceback" not in run.stderr, run.stderr
    assert "\x1b" not in run.stderr


@pytest.fixture(scope="module")
def logs(place):
    """A folder in which a study of logs has run."""
    (place.folder / "logs.yaml").write_text(f"name: logs\ningest: {{paths: ['{LOG}']}}\n")
    run = place.make("logs.yaml")
    assert run.returncode == 0, run.stderr
    return place


def limited(place: Place, *module: str) -> subprocess.CompletedProcess[str]:
    """Run a module of ours that may write no file of more than 4 kB."""
    return subprocess.run(
        [sys.executable, "-m", *module],
        cwd=place.folder,
        capture_output=True,
        text=True,
        # Byte code that is cut at the limit would break every later import of the checkout.
        env=place.environment() | {"PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    )


def test_a_limit_on_files_is_told_where_the_report_is_written(logs):
    before = (logs.folder / "results/logs/report.html").read_bytes()
    made = limited(logs, "transect.engine.make_report", "--folder", "results/logs")
    asked = limited(logs, "transect", "report", "logs.yaml")
    assert "results/logs" in made.stderr
    for run in (made, asked):
        assert run.returncode == 75, run.stderr
        assert "File too large" in run.stderr
        assert "Traceback" not in run.stderr
    assert (logs.folder / "results/logs/report.html").read_bytes() == before
    assert list((logs.folder / "results/logs").glob(".*.html.*")) == []


def test_a_limit_on_files_leaves_the_cell_to_run_again(logs):
    (path,) = (logs.folder / "results/logs/ingest").glob("*/record.json")
    path.unlink()
    (block,) = (logs.folder / "results/logs/specs/ingest").glob("*.json")
    run = limited(
        logs, "transect.engine.run_block", "--block", str(block.relative_to(logs.folder)), "--results", "results"
    )
    assert run.returncode == 75, run.stderr
    assert "too large" in run.stderr and "Traceback" not in run.stderr
    assert not path.exists()


def test_environments_that_cannot_be_kept_are_a_cause_of_their_cells(place, tmp_path):
    (tmp_path / "file").write_text("")
    stamp = tmp_path / "base.json"
    run = subprocess.run(
        [sys.executable, "-m", "transect.engine.build_environment", "--name", "base", "--out", str(stamp)],
        cwd=place.folder,
        capture_output=True,
        text=True,
        env=place.environment() | {"PYTHONPATH": str(ROOT / "src"), "TRANSECT_ENVS": str(tmp_path / "file" / "x")},
    )
    assert (run.returncode, "Traceback" in run.stderr) == (0, False), run.stderr
    facts = json.loads(stamp.read_text())
    assert facts["status"] == "failed"
    assert str(Path("file") / "x") in facts["message"] and "TRANSECT_ENVS" in facts["message"]
