"""`transect query`: SQL over the tables of many studies, which it never changes."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from factories import bare_record, train_cell
from transect.analysis.records_schema import VERSION, VERSION_KEY
from transect.analysis.table import write_parquet
from transect.domain.cell import Cell
from transect.domain.paths import ROOT
from transect.domain.record import Record


def write(folder: Path, *records: Record) -> Path:
    folder.mkdir(parents=True)
    with (folder / "records.parquet").open("wb") as stream:
        write_parquet(records, stream)
    return folder


def trained(framework: str, seconds: float) -> Record:
    return bare_record(train_cell(framework, batch=64), {"step_time": seconds})


@pytest.fixture
def studies(tmp_path: Path) -> Path:
    write(tmp_path / "2026-01/quick", trained("torch", 0.5), trained("numpy", 2.0))
    write(tmp_path / "2026-02/quick", trained("torch", 0.25))
    return tmp_path


@pytest.fixture
def asked(transect: Any) -> Any:
    def call(sql: str, *folders: Path) -> list[dict[str, Any]]:
        code, out, err = transect("query", sql, *folders, "--json")
        assert code == 0, err
        return json.loads(out)

    return call


@pytest.fixture
def refused(transect: Any) -> Any:
    def call(sql: str, *folders: Path, options: tuple[str, ...] = ()) -> str:
        code, out, err = transect("query", sql, *folders, *options)
        assert (code, out) == (2, "")
        return err

    return call


ALL = "SELECT study_folder, framework, value FROM records ORDER BY ALL"


def test_rows_of_all_studies_say_which_folder_they_are_from(asked: Any, studies: Path) -> None:
    old, new = f"{studies}/2026-01/quick", f"{studies}/2026-02/quick"
    assert [tuple(row.values()) for row in asked(ALL, studies)] == [
        (old, "numpy", 2.0),
        (old, "torch", 0.5),
        (new, "torch", 0.25),
    ]


def test_a_folder_that_is_met_twice_counts_once(asked: Any, studies: Path) -> None:
    (studies / "latest").symlink_to("2026-02")
    (studies / "2026-01/round").symlink_to("..")
    (studies / "2026-02/copy").mkdir()
    (studies / "2026-02/copy/records.parquet").symlink_to("../quick/records.parquet")
    rows = asked("SELECT count(*) AS n FROM records", studies, studies / "2026-01/quick", studies / "latest/../2026-02")
    assert rows == [{"n": 3}]


def test_a_copy_is_counted_and_said_to_be_one(transect: Any, studies: Path) -> None:
    shutil.copytree(studies / "2026-02", studies / "backup")
    code, out, err = transect("query", "SELECT count(*) FROM records", studies, "--csv")
    assert (code, out.split()) == (0, ["count_star()", "4"])
    (line,) = err.splitlines()
    assert "backup/quick/records.parquet: the same as" in line or "2026-02/quick/records.parquet: the same as" in line
    assert transect("query", "SELECT 1", studies / "2026-01", studies / "2026-02")[2] == ""


def test_a_study_without_a_table_is_said_to_be_left_out(transect: Any, refused: Any, studies: Path) -> None:
    (studies / "2026-03/quick/train").mkdir(parents=True)
    (studies / "2026-03/quick/plan.json").write_text("{}")
    code, out, err = transect("query", "SELECT count(*) FROM records", studies, "--csv")
    assert (code, out.split()) == (0, ["count_star()", "3"])
    assert err.startswith(f"{studies}/2026-03/quick: is left out") and err.count("\n") == 1
    assert "no records.parquet there or below" in refused("SELECT 1", studies / "2026-03")


def test_table_csv_and_json_say_the_same(transect: Any, studies: Path) -> None:
    sql = "SELECT framework, value, cause, 'nan'::DOUBLE AS odd FROM records ORDER BY value LIMIT 1"
    code, out, _ = transect("query", sql, studies)
    assert (code, [line.split() for line in out.splitlines()]) == (
        0,
        [["framework", "value", "cause", "odd"], ["torch", "0.25", "–", "nan"]],
    )
    _, out, _ = transect("query", sql, studies, "--csv")
    assert list(csv.reader(out.splitlines())) == [["framework", "value", "cause", "odd"], ["torch", "0.25", "", "nan"]]
    _, out, _ = transect("query", sql, studies, "--json")
    assert json.loads(out) == [{"framework": "torch", "value": 0.25, "cause": None, "odd": None}]


def test_values_that_json_has_no_type_for(asked: Any, studies: Path) -> None:
    (row,) = asked(
        "SELECT 1.5::DECIMAL(3, 1) AS d, [1, NULL] AS l, {'a': DATE '2026-01-02'} AS s, MAP {1: 2} AS m", studies
    )
    assert row == {"d": 1.5, "l": [1, None], "s": {"a": "2026-01-02"}, "m": {"1": 2}}


def test_a_list_is_json_in_csv(transect: Any, studies: Path) -> None:
    _, out, _ = transect("query", "SELECT [1.5, NULL] AS l, {'é': 'a\"b'} AS s, 2 * 0.5 AS d", studies, "--csv")
    assert list(csv.reader(out.splitlines())) == [["l", "s", "d"], ["[1.5, null]", '{"é": "a\\"b"}', "1.0"]]


def test_a_folder_that_is_called_like_a_cell_is_looked_into(asked: Any, studies: Path) -> None:
    shutil.copytree(studies / "2026-02", studies / "backup~20260801")
    write(studies / "2026-02/quick/train/cell~0123abcd", trained("torch", 9.0))
    assert asked("SELECT count(*) AS n FROM records", studies) == [{"n": 4}]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DELETE FROM records", "DELETE is no query: expected a SELECT"),
        ("CREATE TABLE t AS SELECT * FROM records", "CREATE is no query"),
        ("COPY records TO 'FOLDER/made.csv'", "COPY is no query"),
        ("EXPORT DATABASE 'FOLDER/made'", "EXPORT is no query"),
        ("ATTACH 'FOLDER/made.db'", "ATTACH is no query"),
        ("INSTALL httpfs", "LOAD is no query"),
        ("LOAD httpfs", "LOAD is no query"),
        ("SET enable_external_access = true", "SET is no query"),
        ("PRAGMA database_list", "PRAGMA is no query"),
        ("SELECT 1; DROP VIEW records", "2 statements: expected one SELECT"),
        ("", "0 statements: expected one SELECT"),
        (
            "WITH made AS (COPY records TO 'FOLDER/made.csv') SELECT * FROM made",
            "the table `records`, and nothing else",
        ),
        ("WITH made AS (INSERT INTO records SELECT * FROM records) SELECT 1", "records is not a"),
        ("SELECT * FROM read_text('FOLDER/other.txt')", "the table `records`, and nothing else"),
        ("SELECT * FROM glob('FOLDER/*')", "the table `records`, and nothing else"),
        ("SELECT * FROM read_parquet('FOLDER/2026-01/quick/records.parquet')", "the table `records`, and nothing else"),
        ("SELECT * FROM 'FOLDER/other.txt'", "other.txt does not exist"),
        ("SELECT * FROM query('SELECT * FROM read_text(''FOLDER/other.txt'')')", "and nothing else"),
        (
            "SELECT * FROM enable_logging(storage = 'file', storage_path = 'FOLDER/made')",
            "the configuration has been locked",
        ),
    ],
)
def test_a_query_neither_writes_nor_reads_anything_else(refused: Any, studies: Path, sql: str, said: str) -> None:
    (studies / "other.txt").write_text("secret")
    before = {path: path.stat().st_mtime_ns for path in studies.rglob("*")}
    error = refused(sql.replace("FOLDER", str(studies)), studies)
    assert said in error and "secret" not in error
    assert {path: path.stat().st_mtime_ns for path in studies.rglob("*")} == before


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELEC 1", 'syntax error at or near "SELEC"'),
        ("SELECT valeu FROM records", 'column "valeu" not found'),
        ("SELECT * FROM results", "name results does not exist"),
        ("SELECT cell::INTEGER FROM records", "Could not convert string"),
        ("SELECT ?", "Values were not provided"),
    ],
)
def test_wrong_sql_is_one_message(refused: Any, studies: Path, sql: str, said: str) -> None:
    error = refused(sql, studies)
    assert error.startswith("transect: ") and said in error and "Traceback" not in error


def test_folders_that_cannot_be_asked(refused: Any, studies: Path) -> None:
    (studies / "empty").mkdir()
    assert f"{studies}/gone: cannot be read: No such file" in refused(ALL, studies, studies / "gone")
    assert f"{studies}/empty: no records.parquet there or below" in refused(ALL, studies, studies / "empty")
    assert "several columns are called value" in refused(
        "SELECT value, value FROM records", studies, options=("--json",)
    )
    assert "--json and --csv" in refused(ALL, studies, options=("--json", "--csv"))


def changed(path: Path, table: pa.Table, version: bytes | None) -> None:
    """Write a table as another version of transect would."""
    pq.write_table(table.replace_schema_metadata({VERSION_KEY: version} if version is not None else None), path)


def test_a_table_of_an_earlier_version_is_read(asked: Any, studies: Path) -> None:
    path = studies / "2026-01/quick/records.parquet"
    changed(path, pq.read_table(path).drop_columns(["memory_budget", "container"]), None)
    assert len(asked("SELECT * FROM records WHERE memory_budget IS NULL", studies)) == 3


def test_each_table_that_cannot_be_read_is_named(refused: Any, studies: Path) -> None:
    old, new = (studies / month / "quick/records.parquet" for month in ("2026-01", "2026-02"))
    other = studies / "others/records.parquet"
    other.parent.mkdir()
    pq.write_table(pa.table({"cell": ["a"], "value": [1.0]}), other)
    changed(old, pq.read_table(old), str(VERSION + 1).encode())
    new.write_bytes(new.read_bytes()[:-20])
    lines = refused(ALL, studies).splitlines()
    assert len(lines) == 3
    assert f"{old}: version {VERSION + 1} of the table" in lines[0]
    assert f"{new}: damaged" in lines[1]
    assert f"{other}: no table of records: it has no column study, stage, metric" in lines[2]


def test_damage_in_the_middle_of_a_table_names_it(refused: Any, tmp_path: Path) -> None:
    write(tmp_path / "whole", trained("torch", 1.0))
    write(tmp_path / "hurt", *(trained(f"framework-{number}", number) for number in range(2000)))
    path = tmp_path / "hurt/records.parquet"
    content = bytearray(path.read_bytes())
    content[1000:9000] = bytes(8000)
    path.write_bytes(content)
    assert f"{path}: damaged" in refused("SELECT count(DISTINCT columns(*)) FROM records", tmp_path)


def test_a_column_that_is_empty_in_one_study_keeps_the_type_of_the_others(asked: Any, tmp_path: Path) -> None:
    write(tmp_path / "a", bare_record(Cell.of(stage="nobodys", size=3)))
    write(tmp_path / "b", bare_record(Cell.of(stage="nobodys", size=None)))
    assert asked("SELECT size + 1 AS s FROM records WHERE size > 2", tmp_path) == [{"s": 4}]


def test_a_column_of_several_types_is_text(asked: Any, tmp_path: Path) -> None:
    write(tmp_path / "a", bare_record(Cell.of(stage="nobodys", steps=3)))
    write(tmp_path / "b", bare_record(Cell.of(stage="nobodys", steps="few")))
    assert [row["steps"] for row in asked("SELECT steps FROM records ORDER BY 1", tmp_path)] == ["3", "few"]


@pytest.mark.parametrize("name", ['it\'s a "folder"; DROP', "línea\nnueva", os.fsdecode(b"not-\xff-text")])
def test_folders_with_odd_names(asked: Any, tmp_path: Path, name: str) -> None:
    write(tmp_path / name, trained("torch", 1.0))
    (row,) = asked(ALL, tmp_path)
    shown = {"línea\nnueva": "línea\\nnueva"}.get(name, name.replace("\udcff", "\\xff"))
    assert row["study_folder"] == f"{tmp_path}/{shown}"


def test_ctrl_c_ends_a_query_that_computes(transect: Any, studies: Path) -> None:
    endless = "SELECT count(*) FROM range(1000000000000) AS numbers(n) WHERE n % 7 = 3"
    # It is ignored where the tests were started in the background.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT)).start()
        assert transect("query", endless, studies) == (130, "", "")
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_examples_of_the_page_work(transect: Any, studies: Path) -> None:
    page = (ROOT / "docs/query.md").read_text()
    examples = re.findall(r'^transect query "([^"]+)"', page, re.MULTILINE)
    assert len(examples) == 3
    for sql in examples:
        code, out, err = transect("query", sql, studies)
        assert code == 0 and len(out.splitlines()) > 1, err
