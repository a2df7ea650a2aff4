"""`--junit`: what a reader of JUnit's XML is given by `transect compare` and `transect status`."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from factories import train_cell, write_records
from result_runs import noisy, rates, run_record, write_run
from transect.domain.record import Cause, Status

SAMPLES = Path(__file__).parents[2] / "data" / "samples"
# Attributes and children that the readers of Jenkins, GitLab and GitHub's actions know, and no other.
COUNTS = {"tests", "failures", "errors", "skipped"}
KNOWN = {
    "testsuites": ({"name", *COUNTS}, {"testsuite"}),
    "testsuite": ({"name", "time", *COUNTS}, {"testcase"}),
    "testcase": ({"classname", "name", "time"}, {"failure", "skipped", "system-out"}),
    "failure": ({"message", "type"}, set()),
    "skipped": ({"message"}, set()),
    "system-out": (set(), set()),
}  # fmt: skip


def cases_of(path: Path) -> dict[str, str]:
    """Hold a file to what readers know; return how each case ended by its name."""
    root = etree.fromstring(path.read_bytes(), etree.XMLParser(recover=False))
    assert root.tag == "testsuites"
    for element in root.iter():
        attributes, children = KNOWN[element.tag]
        assert set(element.attrib) == attributes
        assert {child.tag for child in element} <= children
    for suite in (root, *root):
        cases = list(suite.iter("testcase"))
        counted = Counter(child.tag for case in cases for child in case)
        assert [int(suite.get(name)) for name in ("tests", "failures", "errors", "skipped")] == [
            len(cases),
            counted["failure"],
            0,
            counted["skipped"],
        ]
        names = [(case.get("classname"), case.get("name")) for case in cases]
        assert len({*names}) == len(names) > 0
        assert all(all(name) for name in names)
        assert all(len(case) <= 1 for case in cases)
    return {
        case.get("name"): next((child.tag for child in case if child.tag != "system-out"), "passed")
        for case in root.iter("testcase")
    }


def test_what_is_firmly_worse_fails_and_what_is_not_known_is_skipped(transect, tmp_path):
    paths = [SAMPLES / "results" / "made-up" / f"{name}.json" for name in ("base", "slow")]
    code, *_ = transect("compare", *paths, "--junit", tmp_path / "t.xml")
    ended = cases_of(tmp_path / "t.xml")
    assert code == 4
    assert ended["suite.Sums.time_sum · times 1, kind 'list': benchmark time"] == "failure"
    assert ended["suite.time_default: benchmark time"] == "skipped"
    assert ended["suite.time_fails: how it ended"] == "skipped"
    assert ended["all 4 cells together: benchmark time"] == "skipped"
    transect("compare", *paths, "--provisional", "--junit", tmp_path / "t.xml")
    ended = cases_of(tmp_path / "t.xml")
    assert ended["suite.time_default: benchmark time"] == ended["all 4 cells together: benchmark time"] == "failure"


def test_cells_of_a_study_are_compared_and_what_was_not_is_skipped(transect, tmp_path):
    write_run(tmp_path / "a", rates(1))
    write_run(tmp_path / "b", rates(2, torch=0.5), day=1)
    write_records(tmp_path / "b", run_record(train_cell("pytorch", 0), {"samples_per_second": 1.0}))
    code, *_ = transect("compare", tmp_path / "a", tmp_path / "b", "--junit", tmp_path / "t.xml")
    ended = cases_of(tmp_path / "t.xml")
    assert code == 4
    assert {name for name, how in ended.items() if how == "failure"} == {
        name for name in ended if "torch" in name and "pytorch" not in name
    }
    [lone] = [how for name, how in ended.items() if "pytorch" in name]
    assert lone == "skipped"
    assert "passed" in ended.values()


def test_a_comparison_of_nothing_has_a_skipped_case(transect, tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.json").write_text(json.dumps({"results": [{"command": name, "times": [0.1]}]}))
    code, *_ = transect("compare", tmp_path / "a.json", tmp_path / "b.json", "--junit", tmp_path / "t.xml")
    assert code == 5
    assert cases_of(tmp_path / "t.xml") == {"a": "skipped", "b": "skipped"}


@pytest.mark.parametrize("name", ["]]><failure/>&<!--", "\x00\x08\x1b[2J\x7f\x9f", "\ud800\udfff\ufffe\uffff", "\u202e", "a\nb\tc"])  # fmt: skip
def test_a_name_breaks_nothing(transect, tmp_path, name):
    for side, factor in (("a", 1.0), ("b", 3.0)):
        results = [{"command": f"{n}{name}", "times": noisy(factor, 7)} for n in range(2)]
        (tmp_path / f"{side}.json").write_text(json.dumps({"results": results}))
    code, *_ = transect("compare", tmp_path / "a.json", tmp_path / "b.json", "--junit", tmp_path / "t.xml")
    assert code == 4
    assert [*cases_of(tmp_path / "t.xml").values()] == ["failure"] * 2


def test_names_that_become_alike_are_told_apart(transect, tmp_path):
    for side in "ab":
        names = ["x\ufffe", "x\uffff"]
        results = [{"command": name, "times": noisy(1.0, ord(side))} for name in names]
        (tmp_path / f"{side}.json").write_text(json.dumps({"results": results}))
    transect("compare", tmp_path / "a.json", tmp_path / "b.json", "--junit", tmp_path / "t.xml")
    assert len(cases_of(tmp_path / "t.xml")) == 2


def test_the_cells_of_a_study_are_tests_of_their_stage(transect: Any, tmp_path: Path):
    folder = tmp_path / "study"
    write_run(folder, {"torch": [1.0]})
    bad = run_record(train_cell("jax", 0), {}, status=Status.FAILED, cause=Cause.OUT_OF_MEMORY, message="a\x1b<b>")
    left = run_record(train_cell("mxnet", 0), {}, status=Status.SKIPPED, cause=Cause.UNSUPPORTED, message="no GPU")
    write_records(folder, bad, left)
    (folder / "train" / "half~01234567").mkdir(parents=True)
    (folder / "train" / "half~01234567" / "record.json").write_text('{"half')
    code, out, _ = transect("status", folder, "--junit", tmp_path / "t.xml")
    ended = {name.split(".")[1] if "." in name else name: how for name, how in cases_of(tmp_path / "t.xml").items()}
    assert ended == {"torch": "passed", "jax": "failure", "mxnet": "skipped", "half~01234567": "failure"}
    assert (code, "1 ok, 1 failed, 1 skipped" in out) == (0, True)
    [failure] = etree.parse(tmp_path / "t.xml").xpath("//failure[@type='out-of-memory']")
    assert failure.get("message") == "failed: out-of-memory: a\\x1b<b>"
    code, _, err = transect("status", folder, "--junit", folder / "t.xml")
    assert (code, (folder / "t.xml").exists()) == (2, False)
    assert "is among the results" in err
