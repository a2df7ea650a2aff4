"""Searches: the same points in every run, places that the budget pays for, and who goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from classify_cells import READ, arguments, write_cells

from factories import bare_record
from step_worker_client import StepWorker, step_worker
from ticket_study import plan_search
from transect.domain.cell import Cell
from transect.domain.errors import BadInput, Unsupported
from transect.domain.record import Cause, MetricValue, Status, write_record
from transect.planning.plan import StudyPlan
from transect.stages.search import run as search_run
from transect.stages.search.stage import SearchRule, draw_points, places_of

SPACE = "{learning_rates: {low: 0.0001, high: 0.1}, batches: [4, 8, 16], heads: [1, 2]}"


def cells(made: StudyPlan) -> list:
    return [planned.cell for planned in made.stage("search").values()]


def points(made: StudyPlan) -> list:
    first = [planned for planned in made.stage("search").values() if not planned.cell.rung]
    return [planned.spec["point"] for planned in sorted(first, key=lambda planned: planned.cell.place)]


def rule(**changes: object) -> SearchRule:
    given = {
        "corpora": ["one"],
        "split": "plain",
        "embeddings": "small",
        "model": "encoder",
        "budget": 40,
        "epochs": 2,
        "keep": 2,
        "rungs": 3,
        "space": {"batches": [1, 2, 4, 8]},
    }
    return SearchRule.model_validate(given | changes)


def test_two_plans_of_a_study_have_the_same_points(tmp_path):
    (tmp_path / "again").mkdir()
    first = plan_search(tmp_path, f"budget: 60, space: {SPACE}")
    second = plan_search(tmp_path / "again", f"budget: 60, space: {SPACE}")
    assert points(first) == points(second)
    assert [cell.id for cell in cells(first)] == [cell.id for cell in cells(second)]
    rates = [point["learning_rate"] for point in points(first)]
    assert len(set(rates)) == len(rates) and all(0.0001 <= rate <= 0.1 for rate in rates)
    changed = plan_search(tmp_path, f"budget: 60, space: {SPACE}", "seed: 3\n")
    assert points(changed) != points(first)
    listed = rule(space={"batches": [*range(1, 100)]})
    assert len(draw_points(listed, "a", 1)) == places_of(listed) < 99


def test_each_rung_has_fewer_places_and_more_epochs(tmp_path):
    made = plan_search(tmp_path, f"budget: 42, epochs: 2, keep: 2, rungs: 3, space: {SPACE}")
    rungs: dict[int, list] = {}
    for planned in made.stage("search").values():
        rungs.setdefault(planned.cell.rung, []).append(planned)
    assert {rung: len(found) for rung, found in rungs.items()} == {0: 11, 1: 5, 2: 2}
    epochs = {rung: {planned.spec["hyperparameters"]["epochs"] for planned in found} for rung, found in rungs.items()}
    assert epochs == {0: {2}, 1: {4}, 2: {8}}
    for rung, found in rungs.items():
        for planned in found:
            taken = {name for role, (_, name) in planned.inputs.items() if role.startswith("place-")}
            assert taken == ({earlier.id for earlier in rungs[rung - 1]} if rung else set())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("budget: 10, space: {batches: [1, 2]}", "do not pay for a point .*: expected 42 or more"),
        ("budget: 90, space: {learning_rates: {low: 1, high: 0.1}}", "less than high"),
        ("budget: 90, model: words, space: {}", "'words' has no hyper-parameter 'epochs'"),
        ("budget: 90, split: without, space: {}", "part `validation`"),
    ],
)
def test_a_search_that_cannot_be_made_is_refused(tmp_path, given, message):
    with pytest.raises(BadInput, match=message):
        plan_search(tmp_path, given)


def search_cell(rung: int, place: int) -> Cell:
    return Cell.of(stage="search", corpus="made", search="hyperparameters", kind="transformer", rung=rung, place=place)


def write_rung(folder: Path, scores: list[tuple[float, ...] | None]) -> SimpleNamespace:
    """Write the records of rung 0; return the job of a place of rung 1.

    None is one that diverged, an empty score one without tickets to validate by.
    """
    inputs = {}
    for place, score in enumerate(scores):
        cell = search_cell(0, place)
        names = ("validation_accuracy", "validation_log_loss")
        metrics = [MetricValue.of(n, v) for n, v in zip(names, score or (), strict=bool(score))]
        ended = {} if score is not None else {"status": Status.FAILED, "cause": Cause.DIVERGED}
        (folder / cell.id).mkdir(parents=True)
        write_record(folder / cell.id / "record.json", bare_record(cell, metrics, **ended))
        inputs[f"place-{place}"] = ["search", cell.id]
    return SimpleNamespace(spec={"inputs": inputs}, cell=search_cell(1, 0), input=lambda role: folder / inputs[role][1])


def test_the_best_of_a_rung_go_on_in_their_order(tmp_path):
    job = write_rung(tmp_path, [(0.5, 1.0), None, (0.7, 0.9), (0.7, 0.8), (0.5, 1.0)])
    chosen = []
    for place in range(4):
        job.cell = search_cell(1, place)
        chosen.append(search_run._chosen(job))
    assert chosen == ["place-3", "place-2", "place-0", "place-4"]
    job.cell = search_cell(1, 4)
    with pytest.raises(Unsupported, match=r"only 4 of the 5 cells .* with number 5 of them"):
        search_run._chosen(job)


@pytest.fixture(scope="module")
def worker(torch_python: str) -> Iterator[StepWorker]:
    with step_worker(torch_python, Path(__file__).with_name("classify_worker.py")) as started:
        yield started


def test_a_place_goes_on_with_the_point_and_state_of_its_cell(worker, tmp_path):
    folders = write_cells(tmp_path / "cells")
    point = {"batch": 16, "learning_rate": 0.02}
    spec = {"classifier": {"kind": "transformer", "options": {}}, "seed": 1, "inputs": {}, "text": READ}
    first = search_cell(0, 3)
    place_spec = spec | {"cell": first.axes(), "point": point, "hyperparameters": {"epochs": 2}}
    assert worker("search", arguments(folders, place_spec, tmp_path / "first")) == 0
    found = json.loads((tmp_path / "first" / "result.json").read_text())["details"]
    assert (found["point"], found["rung"], found["place"], found["from"]) == (point, 0, 3, None)
    write_record(tmp_path / "first" / "record.json", bare_record(first, details=found))
    second = search_cell(1, 0)
    place_spec = spec | {"cell": second.axes(), "point": None, "hyperparameters": {"epochs": 4}}
    more = {"shorter": tmp_path / "first"}
    assert worker("search", arguments(folders, place_spec, tmp_path / "second", **more)) == 0
    details = json.loads((tmp_path / "second" / "result.json").read_text())["details"]
    assert (details["point"], details["from"]) == (point, first.id)
    assert details["history"][:2] == found["history"] and len(details["history"]) == 4
