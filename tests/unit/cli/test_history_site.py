"""`transect history --site`: an index of what changed in all studies, and a page for each, without a script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from test_history import write_runs

from factories import train_cell, write_records
from result_runs import noisy, run_record, stream_run, write_logs, write_run


def soup(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def rows(page: BeautifulSoup, section: str) -> list[list[str]]:
    part = page.find(id=section)
    return [[cell.get_text() for cell in row.find_all("td")] for row in part.select("tbody tr")] if part else []


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Fourteen runs of a study in which one cell gets slower, and as many of one in which nothing does."""
    folder = tmp_path / "archive"
    write_runs(folder, 14, torch=(7, 0.8))
    for day in range(14):
        rates = {"numpy": noisy(50, 500 + day, 3)}
        write_run(folder / f"day-{day:02}" / "steady", rates, day=day, study="steady <b>study</b>")
    return folder


def test_the_index_names_what_changed_and_each_study_has_a_page(archive: Path, tmp_path: Path, transect: Any) -> None:
    code, out, err = transect("history", archive, "--site", tmp_path / "site")
    assert code == 0 and "site/index.html: 3 pages" in err
    assert "History of made-up, 14 runs: 1 change: 1 worse" in out
    index = soup(tmp_path / "site/index.html")
    (changed,) = rows(index, "changes")
    assert changed[:4] == ["made-up", "worse", "confirmed", "samples per second"]
    assert "torch" in changed[4] and changed[5].startswith("2026-03-08") and changed[6].startswith("−20")
    assert "git commit" in changed[7]
    assert [(row[0], row[1], row[5]) for row in rows(index, "studies")] == [
        ("made-up", "14", "1 change: 1 worse"),
        ("steady <b>study</b>", "14", "no changes"),
    ]
    links = {link.get_text(): link["href"] for link in index.select("td a")}
    assert {*links} == {"made-up", "steady <b>study</b>"} and not index.select("td b")
    for name, target in links.items():
        page = soup(tmp_path / "site" / target)
        assert name in page.h1.get_text() and page.select_one('p a[href="index.html"]')
        assert page.select("svg.plot") or name != "made-up"


def test_pages_ask_for_nothing_and_need_no_script(archive: Path, tmp_path: Path, transect: Any) -> None:
    transect("history", archive, "--site", tmp_path / "site")
    for path in (tmp_path / "site").glob("*.html"):
        page = soup(path)
        for tag in page.find_all(True):
            for name in ("src", "href", "xlink:href"):
                target = str(tag.get(name) or "#")
                local = target.startswith(("#", "data:,")) or (tmp_path / "site" / target).is_file()
                assert local, f"{path.name}: {target}"
        for script in page.find_all("script"):
            script.decompose()
        assert rows(page, "changes") or rows(page, "runs")


def test_trends_of_logs_that_were_read(tmp_path: Path, transect: Any) -> None:
    for month in range(14):
        logs = {
            f"2026-{1 + month // 28:02}-{1 + month:02}/alpha/stream-{number}.out": stream_run(rate)
            for number, rate in enumerate(noisy(1000 * (0.7 if month >= 7 else 1), month, 3))
        }
        write_logs(tmp_path / f"read/{month:02}", f"month-{month}", logs, read=month)
    code, _, err = transect("history", tmp_path / "read", "--site", tmp_path / "site")
    assert code == 0, err
    index = soup(tmp_path / "site/index.html")
    assert any(row[0] == "logs" and row[1] == "worse" and "stream" in row[4] for row in rows(index, "changes"))
    assert (tmp_path / "site/study-logs.html").is_file()


def test_a_site_again_takes_away_pages_of_studies_that_are_gone(archive: Path, tmp_path: Path, transect: Any) -> None:
    site = tmp_path / "site"
    transect("history", archive, "--site", site)
    (site / "mine.html").write_text("mine")
    code, _, _ = transect("history", archive, "--site", site, "--study", "made-up")
    assert code == 0
    assert {path.name for path in site.glob("*.html")} == {"index.html", "study-made-up.html", "mine.html"}
    (site / "index.html").write_text("changed by hand")
    code, _, err = transect("history", archive, "--site", site)
    assert code == 2 and "index.html would be overwritten" in err


def test_data_of_all_studies_and_the_exit_code(archive: Path, tmp_path: Path, transect: Any) -> None:
    code, out, _ = transect("history", archive, "--site", tmp_path / "site", "--format", "json", "--fail")
    facts = json.loads(out)
    assert (code, facts["exit_code"]) == (4, 4)
    assert [one["study"] for one in facts["studies"]] == ["made-up", "steady <b>study</b>"]


def test_a_study_without_a_date_and_a_folder_given_twice_stand_in_the_index(tmp_path: Path, transect: Any) -> None:
    write_runs(tmp_path / "runs", 2)
    undated = run_record(train_cell("torch", 0), {"samples_per_second": 1.0}, study="undated")
    write_records(tmp_path / "runs/odd", undated.model_copy(update={"started": "", "ended": ""}))
    code, _, _ = transect("history", tmp_path / "runs", tmp_path / "runs/day-00", "--site", tmp_path / "site")
    assert code == 0
    said = {row[0].rsplit("/", 2)[-2:][0]: row[1] for row in rows(soup(tmp_path / "site/index.html"), "left-out")}
    assert said == {"undated": "no run has a record with a date", "day-00": "given twice"}


@pytest.mark.parametrize("options", [("--html", "page.html"), ("--markdown", "page.md"), ("--export", "otava")])
def test_what_is_of_one_study_wants_its_name_beside_a_site(
    archive: Path, tmp_path: Path, transect: Any, options: tuple[str, ...]
) -> None:
    code, _, err = transect("history", archive, "--site", tmp_path / "site", *options)
    assert code == 2 and "expected --study as well" in err and not (tmp_path / "site").exists()


def test_a_site_is_not_written_among_results(archive: Path, transect: Any) -> None:
    code, _, err = transect("history", archive, "--site", archive / "day-00/steady")
    assert code == 2 and "is among the results that are read" in err
