"""`transect history`: runs by date, changes that are no chance, and what else changed where they are."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from factories import infer_cell, train_cell, write_records
from result_runs import START, noisy, run_record, write_run
from transect.domain.record import Cause, Status, write_record
from transect.engine.result_folders import find_runs
from transect.stats.change_points import MIN_RUNS, change_points

FRAMEWORKS = ("numpy", "torch", "keras", "jax")


def write_runs(folder: Path, amount: int, **changes: tuple[int, float]) -> Path:
    """Write runs of four cells, a day each; `changes`: a cell's run and factor from there on."""
    for day in range(amount):
        rates = {}
        for place, name in enumerate(FRAMEWORKS):
            at, factor = changes.get(name, (amount, 1.0))
            level = 100 * (place + 1) * (factor if day >= at else 1)
            rates[name] = noisy(level, 1000 * day + place, repeats=3)
        commit = f"{int(day >= amount // 2)}" * 40
        write_run(folder / f"day-{day:02}" / "quick", rates, day=day, commit=commit)
    return folder


def history_facts(transect: Any, *arguments: object) -> tuple[int, dict[str, Any]]:
    code, out, err = transect("history", *arguments, "--format", "json")
    assert out, err
    return code, json.loads(out)


def changes_of(facts: dict[str, Any]) -> list[tuple[str, int, str]]:
    """Return of each change the framework (or nothing, for a stage), its run and what it is."""
    series = facts["series"]
    return [
        ((series[row["series"]]["cell"] or ".").split(".")[1], row["run"], row["outcome"]) for row in facts["changes"]
    ]


def test_without_an_option_the_margin_is_that_of_the_latest_runs_study(tmp_path, transect):
    write_runs(tmp_path, 14, torch=(7, 0.8))
    for day, margin in (("day-00", 0.05), ("day-13", 0.5)):
        plan = {"study": {"name": "quick"}, "analysis_plan": {"margin": margin, "pairs": []}}
        (tmp_path / day / "quick" / "plan.json").write_text(json.dumps(plan))
    _, facts = history_facts(transect, tmp_path)
    assert facts["margin"] == 0.5 and changes_of(facts) == [("torch", 7, "same")]
    assert history_facts(transect, tmp_path, "--margin", "5%")[1]["changes"][0]["outcome"] == "worse"


def test_a_step_is_found_where_it_is_and_named_with_what_else_changed(tmp_path, transect):
    write_runs(tmp_path, 14, torch=(7, 0.8))
    code, facts = history_facts(transect, tmp_path)
    assert code == 0 and len(facts["runs"]) == 14
    assert changes_of(facts) == [("torch", 7, "worse")]
    (change,) = facts["changes"]
    assert change["confidence"] == "confirmed" and change["p"] <= 0.025
    assert change["low"] < 0.8 < change["high"]
    assert change["differences"] == [
        {"kind": "software", "fact": "git commit", "before": ["0" * 12], "after": ["1" * 12]}
    ]
    assert history_facts(transect, tmp_path, "--fail")[0] == 4


@pytest.mark.parametrize("old", [0, 7])
def test_a_change_among_records_that_lack_what_was_told_is_not_confirmed(tmp_path, transect, old):
    """The first runs are of a version that recorded no warm-up: another one may be what changed."""
    for day in range(14):
        details = {} if day < old else {"told": {"limits": {"warmup": 20}}}
        for repeat, latency in enumerate(noisy(1e-3 * (1.3 if day >= 7 else 1), day, repeats=3)):
            cell = infer_cell("c", repeat, exporter="dynamo")
            at = START + timedelta(days=day, minutes=repeat)
            record = run_record(cell, {"latency": latency}, at=at, details=details)
            write_records(tmp_path / f"day-{day:02}" / "quick", record)
    _, facts = history_facts(transect, tmp_path)
    change = facts["changes"][-1]
    assert (change["run"], change["outcome"]) == (7, "worse")
    assert change["confidence"] == ("provisional" if old else "confirmed")
    assert history_facts(transect, tmp_path, "--fail")[0] == (0 if old else 4)


def test_what_all_cells_do_together_is_a_change_of_their_stage(tmp_path, transect):
    write_runs(tmp_path, 14, **dict.fromkeys(FRAMEWORKS, (6, 1.3)))
    _, facts = history_facts(transect, tmp_path)
    assert changes_of(facts)[0] == ("", 6, "better")
    assert sorted(changes_of(facts)[1:]) == sorted((name, 6, "better") for name in FRAMEWORKS)
    assert [change["with_its_stage"] for change in facts["changes"]] == [False, True, True, True, True]


def test_few_runs_tell_no_change_and_say_so(tmp_path, transect):
    write_runs(tmp_path, MIN_RUNS - 1, torch=(4, 0.3))
    code, out, _ = transect("history", tmp_path)
    assert code == 0
    assert f"{MIN_RUNS} are the fewest" in " ".join(out.split())
    assert f"{MIN_RUNS - 1} runs: too few to tell a change" in out
    assert "no changes" not in out


def test_a_copy_a_folder_given_twice_and_one_without_records_are_left_out_and_named(tmp_path, transect):
    write_runs(tmp_path, 3)
    shutil.copytree(tmp_path / "day-01", tmp_path / "copy")
    (tmp_path / "planned" / "quick").mkdir(parents=True)
    (tmp_path / "planned" / "quick" / "plan.json").write_text(
        json.dumps({"study": {"name": "quick"}, "cells": {"train/x~01234567": "f"}})
    )
    _, facts = history_facts(transect, tmp_path, tmp_path / "day-02" / "quick", "--study", "made-up")
    assert len(facts["runs"]) == 3
    why = {Path(left_out["folder"]).parent.name: left_out["why"] for left_out in facts["left_out"]}
    assert why["day-02"] == "given twice"
    assert any("and no others" in reason for reason in why.values())
    # Whose study a folder without records is of, only its name tells.
    assert "planned" in why and why["planned"] == "no records"


def test_runs_of_several_studies_are_told_apart(tmp_path, transect):
    write_runs(tmp_path, 2)
    write_run(tmp_path / "else", {"torch": noisy(1, 1)}, study="else")
    code, out, err = transect("history", tmp_path)
    assert (code, out) == (2, "") and "else, made-up" in err and "--study" in err
    assert len(history_facts(transect, tmp_path, "--study", "made-up")[1]["runs"]) == 2
    code, _, err = transect("history", tmp_path, "--study", "nobody")
    assert code == 2 and "else, made-up" in err


def test_runs_with_other_settings_are_left_out_of_the_series(tmp_path, transect):
    for day in range(4):
        parameters = {"learning_rate": 0.5 if day == 1 else 0.1}
        write_run(tmp_path / str(day), {"torch": noisy(100, day)}, day=day, parameters=parameters)
    _, facts = history_facts(transect, tmp_path)
    (series,) = facts["series"]
    assert series["values"][1] is None and None not in series["values"][2:]
    assert series["refused"] == {"1": "learning_rate: 0.5, later 0.1"}


def test_clocks_that_are_wrong_are_told(tmp_path, transect):
    write_run(tmp_path / "a", {"torch": noisy(100, 1)}, day=0)
    write_run(tmp_path / "b", {"torch": noisy(100, 2)}, day=40_000)
    record = run_record(train_cell("torch", 0), {"samples_per_second": 1.0}, at=START + timedelta(days=1))
    back = record.model_copy(update={"ended": "2020-01-01T00:00:00+00:00"})
    write_records(tmp_path / "c", back)
    undated = record.model_copy(update={"started": "yesterday", "ended": ""})
    write_records(tmp_path / "d", undated)
    _, facts = history_facts(transect, *(tmp_path / name for name in "abcd"))
    notes = {Path(run["folder"]).name: " ".join(run["notes"]) for run in facts["runs"]}
    assert "later than now" in notes["b"] and "set back" in notes["c"] and notes["a"] == ""
    (undated,) = facts["left_out"]
    assert Path(undated["folder"]).name == "d" and "date" in undated["why"]


def test_a_cell_that_fails_or_goes_missing_is_named(tmp_path, transect):
    write_runs(tmp_path, 3)
    last = tmp_path / "day-02" / "quick" / "train"
    for repeat in range(3):
        shutil.rmtree(last / train_cell("numpy", repeat).id)
        record = run_record(train_cell("torch", repeat), {}, status=Status.FAILED, cause=Cause.TIMEOUT)
        write_record(last / record.cell_id / "record.json", record)
    _, facts = history_facts(transect, tmp_path)
    assert {lost["cell"].split(".")[1]: lost["why"] for lost in facts["lost"]} == {
        "numpy": "no later run has it",
        "torch": "failed: timeout",
    }


def test_faster_at_worse_quality_is_no_better_change(tmp_path, transect):
    for day in range(14):
        fast = 1.5 if day >= 7 else 1
        rates = {"torch": noisy(100 * fast, day, 3), "numpy": noisy(10, 900 + day, 3)}
        good = {name: noisy(0.95, 500 + day, 3, 0.001) for name in rates}
        if day >= 7:
            good["torch"] = [0.8 * share for share in good["torch"]]
        write_run(tmp_path / str(day), rates, day=day, accuracy=good)
    _, facts = history_facts(transect, tmp_path)
    assert sorted(changes_of(facts)) == [("torch", 7, "not comparable"), ("torch", 7, "worse")]


@pytest.mark.parametrize("given", ["nowhere", "file", "empty"])
def test_folders_without_runs_are_refused(tmp_path, transect, given):
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty" / "deeper").mkdir(parents=True)
    code, out, err = transect("history", tmp_path / given)
    assert (code, out) == (2, "") and err.count("\n") == 1 and given in err


def test_runs_are_found_below_and_loops_end(tmp_path):
    write_runs(tmp_path / "runs", 2)
    (tmp_path / "runs" / "day-00" / "loop").symlink_to(tmp_path / "runs")
    found, again = find_runs([tmp_path / "runs"])
    assert [folder.parent.name for folder in found] == ["day-00", "day-01"]
    assert all(folder.resolve() in {known.resolve() for known in found} for folder in again)


def noise(seed: int, shape: Any) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def test_changes_of_series_that_are_cut_in_three():
    values = np.concatenate([noise(1, 14), noise(2, 16) + 9, noise(3, 14)])
    found = change_points({"a": values})
    assert [(point.since, point.at, point.until) for point in found] == [(0, 14, 30), (14, 30, 44)]


def test_false_alarms_over_many_series_stay_below_the_level():
    """Six series a study, of one run each: 60 studies, of which about three may alarm at 5 %."""
    alarms = sum(bool(change_points(dict(enumerate(noise(1000 + n, (6, 12)))), draws=999)) for n in range(60))
    assert alarms <= 8


def test_what_a_folder_still_held_counts_in_one_run(tmp_path, transect):
    # One folder, kept each day: its cells were measured twice, and never again.
    made = tmp_path / "results" / "quick"
    for day in range(14):
        if day in (0, 7):
            rates = {"torch": noisy(100 if day < 7 else 70, day, 3)}
            write_run(made, dict.fromkeys(("torch", "keras"), rates["torch"]), day=day)
        write_run(made, {"numpy": noisy(50, day, 3)}, day=day)
        shutil.copytree(made, tmp_path / f"kept/day-{day:02}/quick")
    code, facts = history_facts(transect, tmp_path / "kept")
    values = {series["cell"].split(".")[1]: series["values"] for series in facts["series"] if series["cell"]}
    assert [place for place, value in enumerate(values["torch"]) if value is not None] == [0, 7]
    assert None not in values["numpy"] and len(facts["runs"]) == 14
    assert (code, facts["changes"]) == (0, [])
    assert "6 records" in str(facts["runs"][1]["notes"])
