"""Lists of a study that grow with the machine, and what `check` says of larger ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from typer.testing import CliRunner

from factories import plan_study
from transect.cli.main import app
from transect.domain.counts import GrowingCounts, GrowingCountsOrNull, Machine, OptionChoices
from transect.domain.errors import BadInput
from transect.domain.strict_yaml import load_model, validate
from transect.domain.system import System
from transect.planning.larger import additions
from transect.planning.plan import make_plan

SIX = Machine(system="six", nodes=3, cores=6)


class Lists(BaseModel):
    """One list of each kind."""

    threads: GrowingCounts = Field(default=[1])
    batches: GrowingCountsOrNull = Field(default=[None])
    options: OptionChoices = Field(default=[{}])


def _read(machine: Machine | None = SIX, **content: Any) -> dict[str, Any]:
    return validate(Lists, content, "study.yaml", context=machine).model_dump()


@pytest.mark.parametrize(
    ("written", "on_six"),
    [
        ("up-to-cores", [1, 2, 4, 6]),
        ("up-to-nodes", [1, 2, 3]),
        ([1, 7, 5, 30, "up-to-cores"], [1, 5, 6]),
        ([2, 6, "up-to-cores"], [2, 6]),
        ([8, "powers-of-two", "up-to-cores"], [6]),
        ([1, 8, "powers-of-two", "up-to-cores"], [1, 6]),
        ([3, 8, "powers-of-two", 64, 4, "powers-of-two", "up-to-cores"], [3, 4, 6]),
        ([3, "powers-of-two", "up-to-cores"], [3, 6]),
        ([16, "powers-of-two", 100, 1000], [16, 32, 64, 100, 1000]),
        ([1, "powers-of-two", 4, "powers-of-two", 20], [1, 2, 4, 8, 16, 20]),
        (["up-to-cores"], [6]),
        ([4, 1], [4, 1]),
    ],
)
def test_words_become_numbers(written: Any, on_six: list[int]) -> None:
    assert _read(threads=written)["threads"] == on_six


def test_null_is_kept_and_a_word_of_one_axis_is_of_none_other() -> None:
    assert _read(batches=[None, 4, "powers-of-two", 16])["batches"] == [None, 4, 8, 16]
    assert _read(threads=[2])["threads"] == [2]


def test_without_a_machine_the_numbers_are_left() -> None:
    found = _read(None, threads=[2, 64, "up-to-cores"], batches=[4, "powers-of-two", 16])
    assert found["threads"] == [2, 64]
    assert found["batches"] == [4, 8, 16]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("up-to-core", "expected up-to-cores, up-to-nodes or a list such as"),
        ("powers-of-two", "or [16, powers-of-two, 256], found 'powers-of-two'"),
        ([1, "up-to-core", "up-to-cores"], "'up-to-core': expected whole numbers, powers-of-two"),
        (["up-to-cores", 4], "as the last one"),
        (["powers-of-two", 8], "between a number and a larger one"),
        ([1, "powers-of-two"], "between a number and a larger one"),
        ([16, "powers-of-two", 4], "between a number and a larger one"),
        ([1, "powers-of-two", "powers-of-two", 8], "between a number and a larger one"),
        ([[1], "powers-of-two", 8], "expected whole numbers"),
        ([0, "powers-of-two", 8], "greater than or equal to 1"),
        ([], "at least 1 item"),
    ],
)
def test_a_word_in_the_wrong_place_is_refused(written: Any, said: str) -> None:
    with pytest.raises(BadInput, match="key 'threads") as caught:
        _read(threads=written)
    assert said in str(caught.value)


def test_a_cluster_that_does_not_say_its_cores_is_named() -> None:
    with pytest.raises(BadInput, match=r"cores_per_node.*'big'"):
        _read(Machine(system="big", nodes=2, cores=None), threads="up-to-cores")


@given(st.integers(1, 300), st.integers(1, 300))
def test_what_grew_is_sorted_within_the_cores_and_ends_with_them(first: int, cores: int) -> None:
    found = _read(Machine(system="any", nodes=1, cores=cores), threads=[first, "powers-of-two", "up-to-cores"])[
        "threads"
    ]
    assert found == sorted(set(found))
    assert found[-1] == cores
    assert all(value == cores or (value % first == 0 and (value // first).bit_count() == 1) for value in found)


def test_a_list_of_an_option_is_a_cell_for_each_value() -> None:
    found = _read(
        options=[{"deck": "small", "poses": [512, "powers-of-two", 2048]}, {"deck": ["a", "b"], "n": [1, 2]}, {}]
    )
    assert found["options"] == [
        *({"deck": "small", "poses": poses} for poses in (512, 1024, 2048)),
        *({"deck": deck, "n": n} for deck in "ab" for n in (1, 2)),
        {},
    ]
    assert [one["n"] for one in _read(options=[{"n": "up-to-cores"}])["options"]] == [1, 2, 4, 6]
    with pytest.raises(BadInput, match="poses: expected at least one value"):
        _read(options=[{"poses": []}])


STUDY = """
name: grows
bench:
  grids:
    - {benchmarks: [memory-bandwidth-probe], threads: up-to-cores}
    - {benchmarks: [network-probe], ranks: [2, 30], nodes: [1, powers-of-two, up-to-nodes], where_it_fits: true}
    - {benchmarks: [docking-probe], device: cuda, where_it_fits: true, options: [{implementation: cuda}]}
"""


@pytest.fixture
def no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine that runs the tests may have some."""
    for module in ("context", "larger"):
        monkeypatch.setattr(f"transect.planning.{module}.find_gpus", list)


def _files(folder: Path, system: str) -> tuple[Path, Path]:
    study, file = folder / "grows.yaml", folder / "system.yaml"
    study.write_text(STUDY, encoding="utf-8")
    file.write_text(f"name: system\n{system}", encoding="utf-8")
    return study, file


@pytest.mark.usefixtures("no_gpus")
def test_one_file_has_the_cells_of_each_machine(tmp_path: Path) -> None:
    sizes = {}
    for cores, nodes in ((2, 1), (16, 1), (32, 4)):
        study, system = _files(tmp_path, f"cores_per_node: {cores}\nnodes: {nodes}\n")
        cells = [planned.cell for planned in make_plan(study, system, tmp_path / "results")]
        sizes[cores] = sorted((cell.get("threads"), cell.get("ranks_per_node"), cell.nodes) for cell in cells)
    assert sizes[2] == [(1, 1, 1), (1, 2, 1), (2, 1, 1)]
    assert sizes[16] == [(1, 1, 1), (1, 2, 1), *((threads, 1, 1) for threads in (2, 4, 8, 16))]
    assert {(ranks, nodes) for _, ranks, nodes in sizes[32]} >= {(30, 1), (30, 2), (30, 4), (2, 4)}


@pytest.mark.usefixtures("no_gpus")
def test_check_says_what_a_larger_machine_would_add(tmp_path: Path) -> None:
    study, system = _files(tmp_path, "cores_per_node: 16\n")
    found = {one.what: one for one in additions(study, load_model(system, System))}
    assert list(found)[:2] == ["32 cores on a node", "64 cores on a node"]
    assert found["32 cores on a node"].cells == 2
    assert found["32 cores on a node"].new == {"ranks": [30], "threads": [32]}
    assert found["a GPU"].cells == 1
    assert found["4 nodes"].new == {"nodes": [2, 4]}
    command = ["check", str(study), "--system", str(system)]
    assert "with 32 cores on a node: 2 more cells (ranks 30; threads 32)" in CliRunner().invoke(app, command).output
    larger = json.loads(CliRunner().invoke(app, [*command, "--json"]).output)["larger"]
    assert {"what": "32 cores on a node", "cells": 2, "new": {"ranks": [30], "threads": [32]}} in larger


def test_a_study_of_which_nothing_fits_says_so(tmp_path: Path) -> None:
    grid = "{benchmarks: [network-probe], ranks: [30], where_it_fits: true}"
    with pytest.raises(BadInput, match="no cells on system small: 1 would need a larger one"):
        plan_study(tmp_path, f"name: s\nbench:\n  grids: [{grid}]\n", system="name: small\ncores_per_node: 4\n")


def test_an_option_of_a_strategy_takes_a_list_too(tmp_path: Path) -> None:
    grid = "workloads: [digits-cnn], frameworks: [torch], strategies: [mpi-pipeline], ranks: [2]"
    made = plan_study(
        tmp_path,
        f"name: s\ntrain:\n  repeats: 1\n  grids:\n    - {{{grid}, options: [{{micro_batches: [1, powers-of-two, 8]}}]}}\n",
    )
    cells = [planned.cell for planned in made.stage("train").values()]
    # 4 is what the option is anyway.
    assert sorted(dict(cell.get("options")).get("micro_batches", 4) for cell in cells) == [1, 2, 4, 8]
