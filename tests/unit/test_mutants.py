"""`scripts/mutants`: which edits it makes, that it finds them again, and what it says of tests that notice or do not."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from checkouts import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

from _mutants.areas import AREAS, modules_of
from _mutants.edits import Candidate, Mutant, candidates_of, draw, find

PLAN = "transect/planning/plan.py"
DECIDES = '''
"""A module: a < b."""
LIMIT: int = 3

def fits(size: int, room: float = 0.5) -> bool:
    """Is 1 < 2?"""
    return size < LIMIT

def largest(sizes):
    if not sizes:
        raise ValueError(f"none of {1 + 2} in {sizes[1:]}")
    print("of", 1 + 2)
    return max(sizes[:-1]) + 1
'''


def source(folder: Path, text: str) -> Path:
    path = folder / "src" / PLAN
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def candidates(folder: Path, text: str) -> list[Candidate]:
    return candidates_of("planning", source(folder, text), folder / "src")


def test_edits_are_of_decisions_and_of_nothing_that_is_only_said(tmp_path: Path) -> None:
    found = {(c.mutant.function, c.mutant.kind, c.mutant.before, c.mutant.after) for c in candidates(tmp_path, DECIDES)}
    assert found == {
        ("", "constant", "3", "4"),
        ("fits", "constant", "0.5", "0.55"),
        ("fits", "compare", "size < LIMIT", "size <= LIMIT"),
        ("fits", "return", "return size < LIMIT", "return not size < LIMIT"),
        ("largest", "condition", "not sizes", "True"),
        ("largest", "condition", "not sizes", "False"),
        ("largest", "not", "not sizes", "sizes"),
        ("largest", "drop", "raise ValueError(f'none of {1 + 2} in {sizes[1:]}')", "pass"),
        ("largest", "return", "return max(sizes[:-1]) + 1", "return None"),
        ("largest", "arithmetic", "max(sizes[:-1]) + 1", "max(sizes[:-1]) - 1"),
        ("largest", "opposite", "max(sizes[:-1])", "min(sizes[:-1])"),
        ("largest", "slice", "sizes[:-1]", "sizes[:]"),
        ("largest", "constant", "1", "2"),
    }


def test_a_mutant_is_found_when_lines_and_layout_around_it_changed_and_gone_when_its_statement_did(
    tmp_path: Path,
) -> None:
    mutants = [candidate.mutant for candidate in candidates(tmp_path, DECIDES)]
    source(tmp_path, "import os\n\n\n" + DECIDES.replace("size < LIMIT", "(size\n  < LIMIT)  # so"))
    assert all(find(mutant, tmp_path / "src") for mutant in mutants)
    source(tmp_path, DECIDES.replace("size < LIMIT", "size > LIMIT"))
    gone = [mutant.kind for mutant in mutants if find(mutant, tmp_path / "src") is None]
    assert gone == ["return", "compare"]


def test_drawing_again_gives_the_same_and_as_many_of_each_area(tmp_path: Path) -> None:
    for area in AREAS:
        folder = tmp_path / "src" / "transect"
        path = folder / next(p for p in (*AREAS[area], "hpc/x.py") if "*" not in p)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"def f{n}(a):\n    return a < {n}\n" for n in range(9)))
        assert modules_of(area, folder) == [path]
    drawn = draw(tmp_path / "src", seed=3, count=14)
    assert drawn == draw(tmp_path / "src", seed=3, count=14)
    assert drawn != draw(tmp_path / "src", seed=4, count=14)
    assert [mutant.area for mutant in drawn] == sorted(2 * [*AREAS])


def test_the_list_names_each_mutant_once() -> None:
    entries = json.loads((ROOT / "tests" / "mutants.json").read_text())
    mutants = [Mutant(**{key: value for key, value in entry.items() if key != "was"}) for entry in entries]
    assert len({mutant.id for mutant in mutants}) == len(mutants) == 300
    assert {mutant.area for mutant in mutants} == {*AREAS}


TESTS = """
import subprocess
from transect.planning.plan import endless, fits, largest

def test_fits(): assert fits(3) is False
def test_largest(): assert largest([1, 2, 3])
def test_endless(): assert endless(2)
def test_of_a_process():
    subprocess.run(["true"])
    assert fits(2) is True
"""


# The second fails after the first, with an edit and without.
QUIET = "import os\nfrom transect.planning.plan import quiet\n"
DISTURBED = {
    "test_a": "def test_first():\n    os.environ['DISTURBED'] = '1'\n    assert quiet(0) == 0\n",
    "test_b": "def test_second():\n    assert quiet(0) == 0 and 'DISTURBED' not in os.environ\n",
}


@pytest.mark.env
def test_a_mutant_is_caught_survives_is_uncovered_or_gone(tmp_path: Path) -> None:
    text = DECIDES + "\ndef unused(a):\n    return a\n"
    text += "\ndef endless(a):\n    while a:\n        a -= 1\n    return True\n"
    text += "\ndef quiet(a):\n    return a * 2\n"
    chosen = {
        "size < LIMIT": "caught",
        "max(sizes[:-1])": "survived",
        "return a": "uncovered",
        "a -= 1": "caught",
        "a * 2": "survived",
    }
    mutants = {c.mutant.before: c.mutant for c in candidates(tmp_path, text)}
    listed = [dataclasses.asdict(mutants[before]) | {"was": "caught"} for before in chosen]
    gone = dataclasses.replace(mutants["not sizes"], statement="if not size:")
    listed.append(dataclasses.asdict(gone))
    (tmp_path / "list.json").write_text(json.dumps(listed))
    (tmp_path / "tests" / "unit").mkdir(parents=True)
    (tmp_path / "tests" / "unit" / "test_plan.py").write_text(TESTS)
    for name, test in DISTURBED.items():
        (tmp_path / "tests" / "unit" / f"{name}.py").write_text(QUIET + test)
    for package in ("transect", "transect/planning"):
        (tmp_path / "src" / package / "__init__.py").touch()
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    by_id = {mutants[before].id: before for before in chosen} | {gone.id: "not sizes"}
    results = tmp_path / "results.jsonl"
    command = [sys.executable, str(ROOT / "scripts" / "mutants"), "run", str(results)]
    options = ["--checkout", str(tmp_path), "--list", str(tmp_path / "list.json"), "--seconds", "2", "--jobs", "2"]
    done = subprocess.run([*command, *options], capture_output=True, text=True)
    told = {by_id[entry["id"]]: entry for entry in map(json.loads, results.read_text().splitlines())}
    assert {key: entry["outcome"] for key, entry in told.items()} == chosen | {"not sizes": "gone"}
    assert told["a -= 1"]["how"] == "timeout"
    assert told["size < LIMIT"]["by"] == "tests/unit/test_plan.py::test_fits"
    assert done.returncode == 1, done.stderr
    assert "of 5 that stand, 2 are caught; 5 were" in done.stdout
    subprocess.run([*command[:2], "keep", str(results), *options], check=True)
    kept = json.loads((tmp_path / "list.json").read_text())
    assert [entry["was"] for entry in kept] == [*chosen.values(), "gone"]
    # What a killed run left tells nothing of the others.
    results.write_text(results.read_text().partition("\n")[0] + "\n")
    part = subprocess.run([*command[:2], "table", str(results), *options], capture_output=True, text=True)
    assert part.returncode == 1 and "5 of 6 have no result" in part.stdout
