"""A cut-down docking study: what runs is checked, what is wrong or missing is told by its cause."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from checkouts import ROOT

pytestmark = pytest.mark.study
sys.path.insert(0, str(ROOT / "tests" / "unit"))

STUDY = """
name: docked
limits: {{seconds: 120}}
bench:
  repeats: 2
  grids:
    - benchmarks: [docking-probe]
      threads: [1, 2]
      options:
        - &equal {{deck: small, poses: 300, iterations: 2, warm_ups: 1, implementation: openmp, pin: close}}
    - benchmarks: [docking-probe]
      options:
        - {{<<: *equal, implementation: rust}}
        - {{<<: *equal, deck: {wrong}, poses: 20}}
        - {{<<: *equal, deck: {cut}, poses: 20}}
        - {{<<: *equal, pin: none, implementation: julia}}
        - {{<<: *equal, ppwi: 3}}
    - benchmarks: [docking-probe]
      device: cuda
      options: [{{<<: *equal, pin: none, implementation: openacc, compiler: clang}}]
"""


def decks_of(folder: Path) -> dict[str, Path]:
    """Write a deck whose reference energies are wrong, and one that is cut."""
    from docking_parts import small
    from transect.hpc.probes._docking_deck import ENERGIES, write_deck

    made = {name: folder / name for name in ("wrong", "cut")}
    for path in made.values():
        path.mkdir()
        write_deck(small(), path)
    (made["wrong"] / ENERGIES).write_text("12345.0\n" * 20)
    protein = made["cut"] / "protein.in"
    protein.write_bytes(protein.read_bytes()[:-3])
    return made


@pytest.fixture(scope="module")
def records(checkout, tmp_path_factory):
    """What each cell of a study came to, by its options; it has run once."""
    decks = decks_of(tmp_path_factory.mktemp("decks"))
    (checkout.folder / "docked.yaml").write_text(STUDY.format(**decks))
    run = checkout.snakemake("--config", "study=docked.yaml")
    assert run.returncode == 0, run.stderr
    return list(checkout.records("docked", "bench").values())


def of(records, **wanted):
    """Return the records whose options hold these."""
    return [
        one for one in records
        if wanted.items() <= (dict(one["cell"]["options"]) | {"device": one["cell"]["device"]}).items()
    ]  # fmt: skip


def test_right_energies_make_times(records):
    for one in [
        *of(records, implementation="openmp", deck="small", ppwi=None), *of(records, implementation="rust")
    ]:  # fmt: skip
        assert one["status"] == "ok", one["message"]
    good = [one for one in records if one["status"] == "ok"]
    assert len(good) == 6
    for one in good:
        numbers = {metric["label"]: metric["value"] for metric in one["metrics"]}
        assert numbers["pose-time_median"] * numbers["interactions_median"] == pytest.approx(
            8 * 128, rel=1e-4
        )
        (run,) = one["details"]["runs"]
        assert run["parameters"]["verified"] == "yes"
        assert [len(run["samples"][name]["values"]) for name in ("kernel", "warm-up")] == [2, 1]
        assert run["parameters"]["pin"].startswith("threads on CPU ")


def test_wrong_energies_are_a_wrong_result(records):
    for one in [one for one in records if "wrong" in str(dict(one["cell"]["options"])["deck"])]:
        assert (one["status"], one["cause"]) == ("failed", "wrong-result")
        assert "energies are wrong: they differ by" in one["message"]
        assert one["metrics"] == []


def test_a_cut_deck_is_bad_input(records):
    cut = [one for one in records if str(dict(one["cell"]["options"])["deck"]).endswith("/cut")]
    assert len(cut) == 2
    for one in cut:
        assert (one["status"], one["cause"]) == ("failed", "bad-input")
        assert "protein.in has 637 bytes, expected a multiple of 16" in one["message"]


def test_what_is_missing_is_skipped_with_its_own_words(records):
    for one in of(records, implementation="openacc", device="cuda"):
        assert (one["status"], one["cause"]) == ("skipped", "missing-dependency")
        assert "clang" in one["message"]
    for one in of(records, implementation="julia"):
        assert one["status"] == "ok" or "julia is not on PATH" in one["message"]
    for one in of(records, ppwi=3):
        assert (one["status"], one["cause"]) == ("skipped", "unsupported")


def test_the_report_draws_it_and_says_what_is_missing(records, checkout):
    folder = checkout.folder / "results" / "docked"
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert '<section id="docking">' in page and "Scaling with threads, pinned and not" in page
    findings = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["findings"]
    said = [one for one in findings if one.get("kind") == "docking"]
    assert any("the fastest docking kernel" in json.dumps(one) for one in said)
