"""A study's own training scripts, run: what their records hold, and every way in which one may go wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from checkouts import ROOT, Place

pytestmark = [pytest.mark.study, pytest.mark.timeout(3600)]

# Each is the whole script of a workload of its name; `epochs` tells of three, the last of which reaches the target.
HEAD = "import os, sys, time\nimport transect\n"
# Epochs take time.
LOOP = "for number, score in enumerate((0.2, 0.6, 0.95), 1):\n    time.sleep(0.01); "
TOLD = "transect.log_epoch(epoch=number, metric=score, loss=1 / number, seconds=number / 1000, samples=640)\n"
SCRIPTS = {
    "told": HEAD + "print(sys.argv, os.environ['COLOUR'], os.environ.get('WORLD_SIZE'))\n" + LOOP + TOLD,
    # Run alone it prints, and nothing of transect is in it.
    # Someone stays behind, and holds its output open.
    "printed": "import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(36000)'])\n"
    + LOOP
    + "print(f'progress\\repoch {number}: loss={1 / number:.3f} acc={score}')\n",
    "silent": "print('no epoch')\n",
    "garbled": HEAD + LOOP + "print(f'epoch {number}: acc={score if number < 2 else chr(63)}')\n",
    "crashing": HEAD + TOLD.replace("number", "1").replace("score", "0.5") + "raise ValueError('boom')\n",
    "lost": HEAD + LOOP + TOLD + "if os.environ['RANK'] == '1': raise ValueError('boom')\ntime.sleep(600)\n",
    "hungry": "x = [bytearray(2**26)]\nwhile True:\n    x.append(bytearray(b'x' * 2**26))\n",
    "refusing": "raise SystemExit('no such option')\n",
    "importing": "import nothing_of_that_name\n",
    "slow": "import time\ntime.sleep(600)\n",
    "diverging": HEAD + LOOP + TOLD.replace("1 / number", "float('nan') if number > 1 else 1.0"),
    "summing": HEAD
    + "from mpi4py import MPI\nworld = MPI.COMM_WORLD\nprint('sum', world.allreduce(world.rank + 1), 'of', world.size)\n"
    + LOOP
    + TOLD,
    "reading": HEAD + "print(open('data/x.csv').read())\n" + LOOP + TOLD,
}
PATTERN = r"epoch (?P<epoch>\d+): (loss=(?P<loss>\S+) )?acc=(?P<metric>\S+)"
MORE = {
    "told": 'arguments: [--seed, "{seed}", --batch, "{batch_per_rank}"], variables: {COLOUR: "{ranks} red"}, clock: told',
    "printed": f"epoch_line: '{PATTERN}'",
    "garbled": f"epoch_line: '{PATTERN}'",
    "reading": "data: [data/x.csv], metric: {name: bleu, better: higher}",
}
GRIDS = {"lost": ("torchrun", 2), "summing": ("mpirun", 2)}
STUDY = "name: own\nlimits: {{seconds: 60, memory_mb: 700, repeats_if_disturbed: 0}}\nworkloads:\n{}\ntrain:\n  repeats: 1\n  grids:\n{}\n"
GRID = "    - {{workloads: [{}], frameworks: [script], strategies: [{}], ranks: [{}]}}"


@pytest.fixture(scope="module")
def records(place: Place) -> dict[str, Any]:
    """Return the records of one run, by workload and number of ranks."""
    (place.folder / "data").mkdir()
    (place.folder / "data" / "x.csv").write_text("1,2\n")
    keys, grids = [], []
    for name, text in SCRIPTS.items():
        (place.folder / f"{name}.py").write_text(text)
        more = f", {MORE[name]}" if name in MORE else ""
        keys.append(f"  {name}: {{script: {name}.py, environment: base, batch: 64, target: 0.9{more}}}")
        grids.append(GRID.format(name, *GRIDS.get(name, ("single", 1))))
    grids.append(GRID.format("told", "torchrun", 2))
    # Seconds that one has alone.
    slow = STUDY.replace("name: own", "name: slow").replace("60", "2")
    for file, wanted in (("own", lambda line: "[slow]" not in line), ("slow", lambda line: "[slow]" in line)):
        text = (slow if file == "slow" else STUDY).format(
            "\n".join(key for key in keys if (" slow:" in key) == (file == "slow")), "\n".join(filter(wanted, grids))
        )
        (place.folder / f"{file}.yaml").write_text(text)
        place.transect("run", f"{file}.yaml", "train")
    found = {}
    for path in place.folder.glob("results/*/train/*/record.json"):
        record = json.loads(path.read_text())
        found[f"{record['cell']['workload']} {record['cell']['ranks_per_node']}"] = record
    return found


def values(record: dict[str, Any]) -> dict[str, float]:
    return {metric["name"]: metric["value"] for metric in record["metrics"]}


def log(place: Place, record: dict[str, Any]) -> str:
    text: str = (place.folder / "results/own/train" / record["cell_id"] / "output.log").read_text()
    return text


def test_what_a_script_tells_is_its_record(place: Place, records: dict[str, Any]) -> None:
    record = records["told 1"]
    assert record["status"] == "ok", record["message"]
    found = values(record)
    assert found["time_to_quality"] == found["train_time"] == 0.003
    assert found["accuracy"] == 0.95 and found["final_loss"] == pytest.approx(1 / 3)
    # Samples and seconds of an epoch, and 10 steps of 64 in it.
    assert found["samples_per_second"] == pytest.approx(640_000) and found["step_time"] == pytest.approx(1e-4)
    assert found["peak_memory"] > 2**20 and found["cpu_utilisation"] > 0
    assert record["details"]["quality"] == {"metric": "accuracy", "target": 0.9, "reached": True}
    assert record["samples"]["accuracy"]["values"] == [0.2, 0.6, 0.95]
    assert "no reference" in record["details"]["not_checkable"]
    assert "'--seed', '20261120', '--batch', '64'] 1 red None" in log(place, record)


def test_ranks_are_told_who_they_are_and_one_of_them_tells(place: Place, records: dict[str, Any]) -> None:
    record = records["told 2"]
    assert record["status"] == "ok", record["message"]
    assert record["details"]["epochs"] == [1, 2, 3] and len(record["details"]["rank_usage"]) == 2
    assert log(place, record).count("'--batch', '32'] 2 red 2") == 2


def test_a_program_of_mpi_finds_its_ranks(place: Place, records: dict[str, Any]) -> None:
    record = records["summing 2"]
    assert record["status"] == "ok", record["message"]
    assert log(place, record).count("sum 3 of 2") == 2
    assert record["details"]["epochs"] == [1, 2, 3]


def test_lines_that_it_prints_are_enough_and_stay_in_the_log(place: Place, records: dict[str, Any]) -> None:
    record = records["printed 1"]
    assert record["status"] == "ok", record["message"]
    assert record["details"]["clock"] == "start"
    assert 0 < values(record)["time_to_quality"] <= record["details"]["payload_s"]
    assert "samples_per_second" not in values(record)
    assert "epoch 3: loss=0.333 acc=0.95" in log(place, record)


def test_files_are_where_the_script_looks_for_them_and_a_metric_may_be_its_own(records: dict[str, Any]) -> None:
    record = records["reading 1"]
    assert record["status"] == "ok", record["message"]
    (score,) = (metric for metric in record["metrics"] if metric["name"] == "own_score")
    assert (score["label"], score["value"]) == ("bleu", 0.95)
    assert any(line.startswith("x.csv ") for line in record["inputs"])


ENDS = {
    "silent 1": ("bad-input", "the script told of no epoch"),
    "garbled 1": ("bad-input", "epochs.jsonl, line 2: metric is '?': expected a number"),
    "crashing 1": ("crash", "ValueError: boom (exit code 1)"),
    "lost 2": ("crash", "rank 1: ValueError: boom (exit code 1)"),
    "hungry 1": ("out-of-memory", "700 MB"),
    "refusing 1": ("crash", "no exception in its output, which ends: no such option (exit code 1)"),
    "importing 1": ("missing-dependency", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
    "slow 1": ("timeout", "ended after its limit of 2 s"),
    "diverging 1": ("diverged", "the loss is nan in epoch 2"),
}


@pytest.mark.parametrize("name", ENDS)
def test_each_end_has_its_cause(records: dict[str, Any], name: str) -> None:
    cause, message = ENDS[name]
    record = records[name]
    assert (record["status"], record["cause"]) == ("failed", cause), record["message"]
    assert message in record["message"]


def test_the_report_says_that_nothing_checked_them(place: Place, records: dict[str, Any]) -> None:
    page = (place.folder / "results/own/report.html").read_text()
    assert "a script of the study's own, which has no reference" in page.replace("&#39;", "'").replace("&#x27;", "'")
    assert "asynchronous" not in page


def test_a_script_runs_alone_as_it_does_in_a_study(place: Place, records: dict[str, Any]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLOUR": "red"}
    environment.pop("TRANSECT_EPOCHS", None)
    before = sorted(place.folder.iterdir())
    command = [sys.executable, "told.py"]
    done = subprocess.run(command, cwd=place.folder, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == "" and sorted(place.folder.iterdir()) == before
