"""Rules of published claims: fixed when a study is first planned, and never again."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from factories import plan_study
from transect.domain.claims import rule_id
from transect.domain.errors import BadInput
from transect.domain.paths import StudyPaths
from transect.engine.make_report import write_report
from transect.engine.plan_files import fix_rules, fixed_rules, planned_works, write_plan
from transect.planning.blocks import make_blocks

STUDY = """
name: s
claims: [work.yaml]
train: {grids: [{workloads: [iris-mlp], frameworks: [numpy], strategies: [single]}]}
"""
WORK = """
title: A work
short: W
cite: A
hardware: laptop
conditions: {{}}
claims:
  - key: rate
    says: "{says}"
    where: abstract
    kind: value
    published: {published}
    rule: {{test: within, factor: 1.25}}
    measured: [{{study: s, metric: samples_per_second}}]
  - key: other
    says: on another machine
    where: abstract
    kind: value
    published: 9
    not_comparable: no such machine
"""
LONG_AGO = {"since": "2020-01-01T00:00:00+00:00", "commit": "0" * 40}


@pytest.fixture(autouse=True)
def _commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask no program for the commit."""
    monkeypatch.setattr("transect.engine.plan_files.git_state", lambda: {"commit": "1" * 40})


def planned(folder: Path, *, published: float = 100, says: str = "so fast") -> Any:
    """Plan the study with a work that says this, and write what was planned."""
    (folder / "work.yaml").write_text(WORK.format(published=published, says=says))
    made = plan_study(folder, STUDY)
    write_plan(made, make_blocks(made))
    return made


def rule_of(made: Any) -> str:
    [work] = made.works.values()
    return rule_id(work, work.claims[0])


def test_a_rule_is_noted_once_and_keeps_its_date(tmp_path: Path) -> None:
    made = planned(tmp_path)
    noted = fixed_rules(made.paths)
    assert noted is not None and list(noted) == [rule_of(made)]
    # As if it had been planned long ago.
    made.paths.rules.write_text(json.dumps({rule_of(made): LONG_AGO}))
    before = made.paths.rules.read_bytes()
    assert rule_of(planned(tmp_path, says="as fast as this")) == rule_of(made)
    assert made.paths.rules.read_bytes() == before


def test_an_edited_rule_is_a_younger_one_beside_the_old(tmp_path: Path) -> None:
    first = planned(tmp_path)
    first.paths.rules.write_text(json.dumps({rule_of(first): LONG_AGO}))
    second = planned(tmp_path, published=50)
    rules = fixed_rules(second.paths)
    assert rules is not None and set(rules) == {rule_of(first), rule_of(second)} and len(rules) == 2
    new = rules[rule_of(second)]["since"]
    assert rules[rule_of(first)] == LONG_AGO | {"until": new} and new > LONG_AGO["since"]
    # Taken back, it is the old one again from now on: it decides no run that began under the other one.
    planned(tmp_path)
    again = fixed_rules(second.paths)
    assert again is not None and again[rule_of(first)]["since"] >= new and "until" not in again[rule_of(first)]
    assert "until" in again[rule_of(second)]


def test_two_that_note_rules_at_once_lose_none(tmp_path: Path) -> None:
    made = planned(tmp_path)
    [work] = made.works.values()
    works = [work.model_copy(update={"short": f"W{n}"}) for n in range(12)]
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda one: fix_rules(made.paths, [one]), works))
    rules = fixed_rules(made.paths)
    assert rules is not None and {rule_id(one, one.claims[0]) for one in works} <= set(rules)


@pytest.mark.parametrize("damage", ["{", "[]", '{"a": 1}'])
def test_a_damaged_list_of_rules_is_told_and_left_as_it_is(tmp_path: Path, damage: str) -> None:
    made = planned(tmp_path)
    made.paths.rules.write_text(damage)
    for again in (lambda: fixed_rules(made.paths), lambda: planned(tmp_path)):
        with pytest.raises(BadInput) as error:
            again()
        assert str(made.paths.rules) in str(error.value)
    assert made.paths.rules.read_text() == damage


def test_without_the_list_rules_count_from_the_next_plan_on(tmp_path: Path) -> None:
    made = planned(tmp_path)
    made.paths.rules.write_text(json.dumps({rule_of(made): LONG_AGO}))
    made.paths.rules.unlink()
    assert fixed_rules(made.paths) is None
    planned(tmp_path)
    rules = fixed_rules(made.paths)
    assert rules is not None and rules[rule_of(made)]["since"] > LONG_AGO["since"]


def test_results_without_their_study_file_have_the_same_claims(tmp_path: Path) -> None:
    made = planned(tmp_path)
    [work] = planned_works(made.paths)
    assert [work] == list(made.works.values())
    summary, *_ = write_report(made.file, made.paths, ["html"])
    told = [finding for finding in summary["findings"] if finding["rule"].startswith("claim")]
    (tmp_path / "work.yaml").unlink()
    made.file.unlink()
    without, *_ = write_report(None, made.paths, ["html"])
    assert [finding for finding in without["findings"] if finding["rule"].startswith("claim")] == told
    assert len(told) == 1


def test_a_plan_without_works_notes_no_rule(tmp_path: Path) -> None:
    made = plan_study(tmp_path, STUDY.replace("claims: [work.yaml]", ""))
    write_plan(made, make_blocks(made))
    assert not made.paths.rules.exists() and planned_works(made.paths) == []
    assert planned_works(StudyPaths(results=tmp_path, study="nobody")) == []
