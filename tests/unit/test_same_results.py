"""scripts/same-results on two small checkouts: what differs is said, and what was not answered is never the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from checkouts import ROOT

pytestmark = pytest.mark.env

# Stands for transect's command line: prints what the test wrote down, and makes a report of it.
PROGRAM = """
import json, pathlib, sys
says = json.loads((pathlib.Path(__file__).parents[2] / "says.json").read_text())
command, *given = sys.argv[1:]
if command in says.get("crashes", ()):
    sys.exit("no")
if command == "check" and says.get("refuses"):
    print("transect: the system file cannot be used", file=sys.stderr)
    sys.exit(2)
if command == "report":
    import pandas
    folder = pathlib.Path(given[given.index("--results") + 1]) / given[0]
    (folder / "report.json").write_text(json.dumps({"sections": says["sections"]}))
    pandas.DataFrame(says["records"]).to_parquet(folder / "records.parquet")
print(json.dumps(says.get(command, {})))
"""
RECORD = {"stage": "train", "cell": "c", "metric": "accuracy", "label": "", "value": 0.5, "status": "ok"}
SAYS: dict[str, Any] = {
    "check": {"cells": [{"cell": "c", "skip": None}]},
    "report": {"findings": [{"id": "f", "text": "torch is 3 % faster than numpy", "confidence": "confirmed"}]},
    "status": {"ok": 1},
    "ingest": [{"source": "a.log", "status": "ok"}],
    "sections": [
        {"key": "speed", "rows": [["torch", "1.5"], ["numpy", "1.6"]], "verdict": {"text": "as fast", "tone": "plain"}}
    ],
    "records": [RECORD],
}


def checkout(folder: Path, says: dict[str, Any]) -> Path:
    (folder / "src" / "transect").mkdir(parents=True)
    (folder / "config" / "studies").mkdir(parents=True)
    (folder / "config" / "studies" / "one.yaml").write_text("")
    (folder / "src" / "transect" / "__init__.py").touch()
    (folder / "src" / "transect" / "__main__.py").write_text(PROGRAM)
    (folder / "says.json").write_text(json.dumps(says))
    return folder


def compare(
    tmp_path: Path, new: dict[str, Any], reasons: str = "", old: dict[str, Any] | None = None
) -> tuple[int, str, str]:
    """Return exit code, differences and complaints of two that say something else than SAYS."""
    for name in ("one", "environments"):
        (tmp_path / "results" / name).mkdir(parents=True)
    (tmp_path / "logs").mkdir()
    (tmp_path / "reasons").write_text(reasons)
    both = [checkout(tmp_path / "old", SAYS | (old or {})), checkout(tmp_path / "new", SAYS | new)]
    done = subprocess.run(
        [
            sys.executable,
            ROOT / "scripts" / "same-results",
            *both,
            "--results",
            tmp_path / "results",
            "--logs",
            tmp_path / "logs",
            "--reasons",
            tmp_path / "reasons",
            "--python",
            sys.executable,
        ],
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout, done.stderr


def test_the_same_is_the_same(tmp_path: Path) -> None:
    code, said, complaints = compare(tmp_path, {})
    assert (code, complaints) == (0, "") and said.count("\n") == 1


FINDING = SAYS["report"]["findings"][0]


def test_what_differs_is_said(tmp_path: Path) -> None:
    records = [RECORD | {"status": "failed"}, RECORD | {"value": float("nan")}]
    new = {
        "check": {"cells": []},
        "report": {"findings": [FINDING | {"text": "torch is 4 % faster", "confidence": "inconclusive"}]},
        "sections": [{"key": "speed", "rows": [["numpy", "1.6"], ["torch", "1.5"]]}],
        "records": records,
        "ingest": [{"source": "a.log", "status": "truncated"}],
    }
    code, said, _ = compare(tmp_path, new)
    assert code == 1
    changed = {line.split(": ")[0]: line.partition(": ")[2] for line in said.splitlines()}
    record = "record/one/train/c/accuracy/"
    for key, told in {
        "plan/one/cells/c/skip": "-> -",
        f"{record}/status": "failed",
        f"{record}#2/value": "NaN",
        "summary/one/findings/f/confidence": "inconclusive",
        "summary/one/findings/f/text": "4 %",
        "report/one/speed/rows/order": "numpy~1.6 | torch~1.5",
        "logs/0-logs/a.log/status": "truncated",
    }.items():
        assert told in changed[key], (key, changed)


def test_words_may_change_and_what_has_a_reason(tmp_path: Path) -> None:
    told = {"report": {"findings": [FINDING | {"text": "numpy is 3 % slower than torch"}]}}
    assert compare(tmp_path, told)[0] == 0


def test_a_study_that_both_refuse_was_not_compared(tmp_path: Path) -> None:
    code, said, complaints = compare(tmp_path, {"refuses": True}, old={"refuses": True})
    assert code == 2 and "no plan was compared: one" in said and "no study was planned" in complaints


def test_a_reason_covers_a_change_and_no_loss(tmp_path: Path) -> None:
    code, said, _ = compare(tmp_path, {"records": []}, "record/*\tthe table has another form\n")
    assert code == 1 and "-> -" in said


def test_nothing_to_compare_is_not_the_same(tmp_path: Path) -> None:
    empty: dict[str, Any] = {"ingest": [], "records": []}
    code, _, complaints = compare(tmp_path, empty, old=empty)
    assert code == 2 and "no log" in complaints and "results/one: the old checkout reads no record" in complaints
