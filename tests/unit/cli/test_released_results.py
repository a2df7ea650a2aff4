"""Results that a released version wrote stay readable: `tests/data/results/VERSION.tar.gz`, packed by that version."""

from __future__ import annotations

import json
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from checkouts import ROOT
from sealed import resealed
from transect import __version__
from transect.engine.pack import unpack

FOLDER = ROOT / "tests" / "data" / "results"
RELEASED = sorted(path.name.removesuffix(".tar.gz") for path in FOLDER.glob("*.tar.gz"))
# Of each: how its cells ended; the causes of those that are not ok; its stages; its title; one of its trainings.
WRITTEN: dict[str, dict[str, Any]] = {
    "0.1.0": {
        "counts": {"ok": 10, "failed": 1, "skipped": 1},
        "causes": {"diverged", "unsupported"},
        "stages": {"dataset", "ingest", "reference", "train"},
        "title": "What version 0.1.0 wrote",
        "training": "iris-mlp.numpy.single.n1x1.b16.fp32~e84b7a6c",
    }
}


@pytest.fixture
def small(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """The folder of a version's results, and what it is known to hold."""
    _, folder = unpack(FOLDER / f"{request.param}.tar.gz", tmp_path / "results")
    return folder, WRITTEN[request.param]


def a_day_before(folder: Path, copy: Path) -> Path:
    """Copy results as a run of the day before, whose trainings were twice as fast."""

    def change(record: dict[str, Any]) -> None:
        for key in ("started", "ended"):
            record[key] = (datetime.fromisoformat(record[key]) - timedelta(days=1)).isoformat()
        for metric in record["metrics"]:
            if metric["name"] == "samples_per_second":
                metric["value"] *= 2

    shutil.copytree(folder, copy)
    for path in copy.glob("*/*~*/record.json"):
        resealed(path, change)
    return copy


every_version = pytest.mark.parametrize("small", RELEASED, indirect=True)


def test_each_version_has_results_and_they_are_described() -> None:
    assert __version__ in RELEASED and set(RELEASED) == set(WRITTEN)


@every_version
def test_status_and_verify_read_them(small: tuple[Path, dict[str, Any]], transect: Any) -> None:
    folder, written = small
    code, out, _ = transect("status", folder, "--json")
    facts = json.loads(out)
    assert (code, facts["counts"], facts["others"]) == (0, written["counts"], {})
    assert {cell["cause"] for cell in facts["cells"]} == written["causes"]
    assert {path.parts[-3] for path in folder.glob("*/*~*/record.json")} == written["stages"]
    code, out, _ = transect("verify", folder, "--json")
    facts = json.loads(out)
    assert (code, facts["records"], facts["wrong"]) == (0, sum(written["counts"].values()), 0)
    # A byte of a file beside a record is found.
    damaged = folder / "train" / written["training"] / "weights.npz"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    code, out, _ = transect("verify", folder)
    assert code == 1 and "weights.npz is not what its record says" in out


@every_version
def test_their_report_is_made(small: tuple[Path, dict[str, Any]], transect: Any) -> None:
    folder, written = small
    code, out, err = transect("report", folder, "--json")
    assert code == 0, err
    summary = json.loads(out)
    assert {name: summary["counts"][name] for name in written["counts"]} == written["counts"]
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert written["title"] in page and written["training"] in page


@every_version
def test_they_are_compared_and_followed(small: tuple[Path, dict[str, Any]], transect: Any, tmp_path: Path) -> None:
    folder, written = small
    before = a_day_before(folder, tmp_path / "before" / folder.name)
    arguments = (before, folder, "--metric", "samples_per_second", "--format", "json")
    # Others were at work where the results were made: nothing is confirmed.
    code, out, err = transect("compare", *arguments, "--provisional")
    assert code == 4, err
    [other] = json.loads(out)["others"]
    [line] = [line for line in other["lines"] if line["cell"] == written["training"]]
    assert line["outcome"] == "worse" and line["ratio"] == pytest.approx(0.5)
    code, out, err = transect("history", folder, before, "--format", "json")
    assert code == 0, err
    series = {(row["cell"], row["metric"]): row["values"] for row in json.loads(out)["series"]}
    first, last = series[written["training"], "samples_per_second"]
    assert first == pytest.approx(2 * last)
