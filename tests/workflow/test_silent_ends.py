"""No end without a word: names in a pattern language, plug-ins that quit, faults of the machine."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys

import pytest

from checkouts import ROOT, Checkout, Place

pytestmark = pytest.mark.study

LOG = ROOT / "config/studies/quick-logs/hpl-2.0-netlib.txt"
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
    assert sum(count["ok"] for count in counts) == 2 * len(NAMES) * counts[-1]["ok"]
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


def test_a_cell_whose_plug_in_quits_has_a_record_of_it_and_a_report_and_check_say_so(quitting):
    place, run = quitting
    assert run.returncode == 0, run.stderr
    records = {r["cell"]["where"]: r for r in place.records("quits", "quits").values()}
    assert sorted(records) == sorted(PLACES)
    for where, record in records.items():
        assert (record["status"], record["cause"]) == ("failed", "crash"), where
        expected = "exit code 0 without a result" if where == "payload" else "SystemExit: 0"
        assert expected in record["message"], (where, record["message"])
    html = (place.folder / "results/quits/report.html").read_text()
    assert "SystemExit: 0" in html and "quits/report.py" in html
    checked = place.transect("check", "quits.yaml")
    assert checked.returncode == 0 and "SystemExit: 0" in checked.stdout and "5 cells" in checked.stdout


QUITS = {
    "a plug-in": ({"mine.py": "import sys\nsys.exit(0)\n"}, {}, "plug-in", "mine.py"),
    "a stage": ({"quits/stage.py": "raise SystemExit\n"}, {}, "stage", "quits/stage.py"),
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
    run = place.transect("check", "early.yaml")
    assert run.returncode == 2, run.stderr
    assert all(part in run.stderr for part in ["transect: ", "SystemExit", *expected])
    assert "Traceback" not in run.stderr


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


def test_a_limit_on_files_leaves_the_old_report_and_the_cell_to_run_again(logs):
    before = (logs.folder / "results/logs/report.html").read_bytes()
    made = limited(logs, "transect.engine.make_report", "--folder", "results/logs")
    assert (logs.folder / "results/logs/report.html").read_bytes() == before
    assert list((logs.folder / "results/logs").glob(".*.html.*")) == []
    (path,) = (logs.folder / "results/logs/ingest").glob("*/record.json")
    path.unlink()
    (block,) = (logs.folder / "results/logs/specs/ingest").glob("*.json")
    ran = limited(
        logs, "transect.engine.run_block", "--block", str(block.relative_to(logs.folder)), "--results", "results"
    )
    assert not path.exists()
    for run in (made, ran):
        assert run.returncode == 75, run.stderr
        assert "too large" in run.stderr.lower() and "Traceback" not in run.stderr
