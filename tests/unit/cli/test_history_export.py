"""`transect history --export otava`: what Apache Otava reads, by the rules of its reader."""

from __future__ import annotations

import csv
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from test_history import write_runs

from factories import write_records
from result_runs import START, noisy, run_record, write_run
from transect.domain.cell import Cell
from transect.domain.record import MetricValue

# Otava takes a column of this name for what parts the rows.
BRANCH = "branch"


def read_otava(folder: Path) -> dict[str, dict[str, list[Any]]]:
    """Return the tests, with the columns of each, as Otava's reader takes them."""
    tests = {}
    config = YAML(typ="safe").load((folder / "otava.yaml").read_text())
    for name, test in config["tests"].items():
        assert test["type"] == "csv"
        with (folder / test["file"]).open(newline="") as stream:
            header, *rows = csv.reader(stream)
        assert len(set(header)) == len(header) and BRANCH not in header
        assert all(len(row) == len(header) for row in rows)
        columns = {column: [row[place] for row in rows] for place, column in enumerate(header)}
        times = [datetime.fromisoformat(text) for text in columns[test["time_column"]]]
        assert times == sorted(times) and all(time.tzinfo for time in times)
        assert {*test["attributes"]} <= columns.keys()
        found: dict[str, list[Any]] = {"commit": columns["commit"], "folder": columns["folder"]}
        for metric, how in test["metrics"].items():
            assert how["direction"] in (1, -1)
            found[metric] = [how["direction"], *map(float, columns[how["column"]])]
            assert "nan" not in columns[how["column"]]
        tests[name] = found
    assert config.get("test_groups", {}).get("all", []) == [*tests]
    return tests


def test_series_become_tests_with_a_row_for_each_run(tmp_path: Path, transect: Any) -> None:
    write_runs(tmp_path / "runs", 4, torch=(2, 0.5))
    code, _, err = transect("history", tmp_path / "runs", "--export", "otava", "--into", tmp_path / "out")
    assert code == 0 and "otava analyze --config-file otava.yaml --since 2026-02-28 all" in err
    tests = read_otava(tmp_path / "out")
    assert len(tests) == 5 and "train/all cells" in tests
    (torch,) = (test for name, test in tests.items() if ".torch." in name)
    direction, *values = torch["samples_per_second"]
    assert direction == 1 and values[1] > 1.8 * values[2]
    assert torch["commit"] == ["0" * 12] * 2 + ["1" * 12] * 2
    assert torch["folder"][0].endswith("runs/day-00/quick")


def test_metrics_of_other_runs_stand_in_a_table_of_their_own(tmp_path: Path, transect: Any) -> None:
    for day in range(4):
        rates = {"torch": noisy(100, day, 3)}
        accuracy = {"torch": noisy(0.9, day, 3, 0.001)} if day != 1 else None
        write_run(tmp_path / f"runs/{day}", rates, day=day, accuracy=accuracy)
    assert transect("history", tmp_path / "runs", "--export", "otava", "--into", tmp_path / "out")[0] == 0
    by_metric = {metric: test for test in read_otava(tmp_path / "out").values() for metric in test}
    assert [len(by_metric[name][name]) - 1 for name in ("samples_per_second", "accuracy")] == [4, 3]


def test_names_of_logs_break_neither_table_nor_description(tmp_path: Path, transect: Any) -> None:
    labels = ['a, "b"', "line\nbreak: {x}", "\U0001f40e", "branch"]
    for day in range(3):
        cell = Cell.of(stage="nobodys", kind="it's: [odd]")
        record = run_record(cell, {}, at=START + timedelta(days=day))
        metrics = [MetricValue.of("latency", 1.0 + day, label=label) for label in labels]
        write_records(tmp_path / f"runs/{day}", record.model_copy(update={"metrics": metrics}))
    assert transect("history", tmp_path / "runs", "--export", "otava", "--into", tmp_path / "out")[0] == 0
    (test,) = read_otava(tmp_path / "out").values()
    assert [name for name in test if name.startswith("latency: ")] == [
        'latency: a, "b"',
        "latency: branch",
        "latency: line\\nbreak: {x}",
        "latency: \U0001f40e",
    ]
    assert test["latency: branch"] == [-1, 1.0, 2.0, 3.0]


def test_an_export_again_removes_what_is_no_longer_made_and_nothing_of_others(tmp_path: Path, transect: Any) -> None:
    write_runs(tmp_path / "runs", 2)
    out = tmp_path / "out"
    export = ("--export", "otava", "--into", out)
    assert transect("history", tmp_path / "runs", *export)[0] == 0
    before = {path.name for path in out.iterdir()}
    (out / "notes.txt").write_text("mine")
    assert transect("history", tmp_path / "runs", "--metric", "samples_per_second", *export)[0] == 0
    write_run(tmp_path / "one/a", {"torch": noisy(1, 1)})
    write_run(tmp_path / "one/b", {"torch": noisy(1, 2)}, day=1)
    assert transect("history", tmp_path / "one", *export)[0] == 0
    assert {path.name for path in out.iterdir()} < {*before, "notes.txt"} and (out / "notes.txt").exists()
    (out / "otava.yaml").write_text("tests: {}")
    code, _, err = transect("history", tmp_path / "runs", *export)
    assert code == 2 and "otava.yaml would be overwritten" in err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--export", "hunter"), "--export 'hunter': expected otava"),
        (("--into", "somewhere"), "--into somewhere: nothing is exported there"),
        (("--export", "otava", "--into", "RUNS/day-00/quick"), "is among the results that are read"),
    ],
)
def test_what_cannot_be_exported_is_refused(tmp_path: Path, transect: Any, options: tuple[str, ...], said: str) -> None:
    write_runs(tmp_path, 2)
    code, _, err = transect("history", tmp_path, *(option.replace("RUNS", str(tmp_path)) for option in options))
    assert code == 2 and said in err


def test_one_run_leaves_nothing_to_export_and_says_so(tmp_path: Path, transect: Any) -> None:
    write_runs(tmp_path / "runs", 1)
    code, _, err = transect("history", tmp_path / "runs", "--export", "otava", "--into", tmp_path / "out")
    assert code == 5 and "left out: 5 series of one run" in err
    assert read_otava(tmp_path / "out") == {}
