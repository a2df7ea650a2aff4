"""The quick study, cut down to one repeat, two ranks, one thread and a few epochs: every stage, on real data.

It is run by an installed transect from a folder that is no checkout, and so are the commands of the README.
"""

from __future__ import annotations

import json
import re
import shutil

import pyarrow.parquet
import pytest
import yaml

from checkouts import ROOT
from installed_package import call, fine
from transect.measure.provenance import available_cores, gpus

# The first test waits for the package, its environment, those of the study, and the study.
pytestmark = [pytest.mark.study, pytest.mark.timeout(2400)]

# The README's commands but for the one that runs the study: what each is given here, its exit code and words of its
# output. Measurements that were only copied are no second run: of them `compare` decides nothing, and says so.
COMMANDS = {
    "init": (("my-studies", "--yes"), 0, "wrote "),
    "check": (("quick",), 0, "valid, "),
    "watch": (("results/quick",), 0, "report: "),
    "status": (("results/quick",), 0, " ok, 0 failed"),
    "compare": (("results/quick", "elsewhere"), 5, "not comparable"),
    "replicate": (("go-mpi", "--list"), 0, "claims can be decided here"),
    "fetch-data": (("--list",), 0, "imagenet"),
    "doctor": ((), 0, "environments"),
}


@pytest.fixture(scope="module")
def results(installed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("anywhere")
    study = yaml.safe_load((ROOT / "config/studies/quick.yaml").read_text())
    study["train"]["repeats"] = study["infer"]["repeats"] = 1
    del study["train"]["repeat_until"], study["infer"]["repeat_until"]
    # Other tests may hold the cores: ranks that wait for messages spin meanwhile.
    study["limits"] |= {"seconds": 600, "repeats_if_disturbed": 0}
    study["infer"]["max_seconds"] = 0.1
    for grid in study["train"]["grids"]:
        grid["ranks"] = [r for r in grid.get("ranks", [1]) if r <= 2]
    # The last ones are there to be measured: each target is reached by then.
    for changes in study["workloads"].values():
        changes["epochs"] = 36
    for grid in study["bench"]["grids"]:
        if "threads" in grid:
            grid["threads"] = [1]
        if "hpcc" in grid["benchmarks"]:
            # Its ranks spin while they wait for small messages, of which a larger N has more: beside other tests that
            # takes minutes.
            grid["options"] = [{"N": 500}]
    shutil.copytree(ROOT / "config/studies/quick-logs", folder / "quick-logs")
    (folder / "cut.yaml").write_text(yaml.safe_dump(study))
    fine(installed / "transect", "run", "cut.yaml", folder=folder)
    shutil.copytree(folder / "results" / "quick", folder / "elsewhere")
    return folder / "results" / "quick"


def records(results, stage):
    return [json.loads(path.read_text()) for path in results.glob(f"{stage}/*/record.json")]


def value(record, name):
    found = [metric["value"] for metric in record["metrics"] if metric["name"] == name]
    return found[0] if found else None


def test_nothing_fails_and_only_what_this_machine_lacks_is_skipped(results):
    summary = json.loads((results / "summary.json").read_text())
    assert summary["counts"]["failed"] == 0, summary["failures"]
    reasons = {failure["message"] for failure in summary["failures"]}
    reasons = {reason for reason in reasons if not reason.startswith("hpcc is not on PATH")}
    assert reasons <= {"no CUDA device"}, reasons
    assert summary["problems"] == []
    assert summary["findings"]


def test_every_trainer_follows_the_reference(results):
    trained = records(results, "train")
    # Of two frameworks alone; a strategy of both and one of torch's where two ranks fit.
    fitting = 2 + 3 * (available_cores() >= 2)
    assert len(trained) == 2 * fitting + 2 * bool(gpus())
    for record in trained:
        assert value(record, "equality_ratio") <= 1, record["cell_id"]
        assert value(record, "samples_per_second") > 0
        parts = [value(record, f"{p}_time") for p in ("compute", "communication", "input")]
        assert sum(parts) <= value(record, "step_time") * 1.5
        assert record["provenance"]["cpu_model"]
        assert record["provenance"]["libraries"]
    assert all(value(r, "time_to_quality") for r in trained)


def test_runtimes_measure_run_alone_and_never_pretend_cuda(results):
    for record in records(results, "infer"):
        if record["cell"]["provider"] == "cuda" and record["status"] == "skipped":
            assert record["message"] == "no CUDA device"
            continue
        assert record["details"]["provider_used"].lower().startswith(record["cell"]["provider"])
        assert value(record, "latency") > 0
        assert record["samples"]["latency"]["count"] >= 200


def test_table_is_tidy(results):
    frame = pyarrow.parquet.read_table(results / "records.parquet").to_pandas()
    assert not frame.duplicated(["stage", "cell", "metric", "label"]).any()


def test_report_opens_without_network_in_a_browser(results, browser_page):
    page, requests, errors = browser_page
    page.goto((results / "report.html").as_uri())
    assert page.locator("main > section").count() >= 9
    assert errors == []
    assert all(url.startswith("file:") for url in requests)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_of_the_readme_end_well_beside_it(name, results, installed):
    given, code, words = COMMANDS[name]
    done = call(installed / "transect", name, *given, folder=results.parents[1])
    assert done.returncode == code and words in done.stdout, done.stdout + done.stderr


def test_every_command_of_the_readme_is_tried():
    table = re.findall(r"^\| `transect ([a-z-]+)[^`]*` \|", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert set(table) == {*COMMANDS, "run"}
