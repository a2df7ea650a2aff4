"""`transect compare` and `history` on runs that logs tell: pairs are of one system, benchmark, variant and settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from factories import write_records
from result_runs import noisy, run_record, stream_run, write_logs
from transect.domain.cell import Cell


def month(folder: Path, source: str, *, seed: int, read: int = 0, runs: int = 4, **rates: float) -> Path:
    """Write a month's logs: each system's runs of STREAM about a rate."""
    logs = {
        f"{system}/stream-{number:02}.out": stream_run(rate)
        for place, (system, middle) in enumerate(rates.items())
        for number, rate in enumerate(noisy(middle, 10 * seed + place, runs), start=1)
    }
    return write_logs(folder, source, logs, read=read)


def lines_of(facts: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {row["cell"].partition("~")[0]: (row["outcome"], row["confidence"]) for row in facts["others"][0]["lines"]}


def test_months_of_logs_pair_by_system_and_settings_however_they_were_named(tmp_path, compared):
    month(tmp_path / "a", "2026-08", seed=1, alpha=1000, beta=800)
    month(tmp_path / "b", "2026-10", seed=2, alpha=900, beta=800)
    code, facts = compared()
    assert code == 4
    assert lines_of(facts) == {
        "alpha.stream.mccalpin": ("worse", "confirmed"),
        "beta.stream.mccalpin": ("same", "confirmed"),
    }


def test_two_clusters_of_one_folder_each_are_compared_as_the_folders_are(tmp_path, compared):
    month(tmp_path / "a", "logs", seed=1, alpha=1000)
    month(tmp_path / "b", "logs", seed=2, beta=1200)
    code, facts = compared()
    assert (code, lines_of(facts)) == (0, {"stream.mccalpin": ("better", "confirmed")})
    (named,) = (difference for difference in facts["others"][0]["differences"] if difference["fact"] == "system name")
    assert (named["base"], named["other"]) == (["alpha"], ["beta"])


# What differs between two folders, and whether their runs pair.
PARAMETERS = {
    "the problem": ({"array_size": 1000}, {"array_size": 2000}, 0),
    "the kind of device": ({"device": "CPU"}, {"device": "GPU"}, 0),
    "a name with a word of tasks": (
        {"ordering_inter_file": "constant task offset"},
        {"ordering_inter_file": "no tasks offsets"},
        0,
    ),
    "a name with a word of hosts": ({"use-host-mpi": "0"}, {"use-host-mpi": "1"}, 0),
    "an option of a command": ({"command": "mdtest -w 0 -d /a"}, {"command": "mdtest -w 4096 -d /a"}, 0),
    "where a command ran": (
        {"command": "/a/mdtest -n 10 -d /a -o out-2026-08-01"},
        {"command": "/b/mdtest -n 10 -d /b -o out-2026-08-02"},
        1,
    ),
    "where and when it ran, and what came of it": (
        {"device": "GPU 0", "date": "0", "residual_checks": ["0"]},
        {"device": "GPU 1", "date": "1", "residual_checks": ["1"]},
        1,
    ),
}


@pytest.mark.parametrize("what", PARAMETERS)
def test_what_was_asked_for_is_a_setting_and_what_came_of_it_is_none(tmp_path, compared, what):
    *both, pairs = PARAMETERS[what]
    for place, (name, parameters) in enumerate(zip("ab", both, strict=True)):
        runs = {f"x/{n}.out": stream_run(r, **parameters) for n, r in enumerate(noisy(100, place, 3))}
        write_logs(tmp_path / name, "logs", runs)
    compared_set = compared()[1]["others"][0]
    assert compared_set["pairs"] == pairs
    assert pairs or "settings" in compared_set["only_base"][0]["differs_in"]


def test_of_an_archive_that_grew_only_what_is_new_is_held_beside_the_base(tmp_path, compared):
    old = {f"x/{n}.out": stream_run(rate) for n, rate in enumerate(noisy(1000, 1, 4))}
    new = {f"x/{n}.out": stream_run(rate) for n, rate in enumerate(noisy(800, 2, 4), start=4)}
    write_logs(tmp_path / "a", "logs", old)
    write_logs(tmp_path / "b", "logs", old | new, read=1)
    code, facts = compared()
    (line,) = facts["others"][0]["lines"]
    assert code == 4 and line["other"]["runs"] == 4 and line["ratio"] == pytest.approx(0.8, rel=0.03)


def test_refused_runs_are_failures_of_their_cell_and_no_numbers(tmp_path, compared):
    good = {f"x/{n}.out": stream_run(rate) for n, rate in enumerate(noisy(1000, 1, 4))}
    bad = {"x/9.out": stream_run(9e9, status="invalid", reason="its time gives another rate")}
    write_logs(tmp_path / "a", "logs", good)
    again = {f"x/{n}.out": stream_run(rate) for n, rate in enumerate(noisy(1000, 2, 4))}
    write_logs(tmp_path / "b", "logs", again | bad)
    code, facts = compared()
    lines = {line["metric"]: (line["outcome"], line["confidence"]) for line in facts["others"][0]["lines"]}
    assert code == 0
    assert lines == {None: ("worse", "provisional"), "memory_bandwidth": ("same", "confirmed")}


@pytest.mark.parametrize(("amount", "code"), [(1, 5), (3, 4)])
def test_that_all_runs_failed_is_confirmed_where_there_are_several(tmp_path, compared, amount, code):
    for name, how in (("a", {}), ("b", {"status": "failed", "reason": "killed"})):
        runs = {f"x/{n}.out": stream_run(1000 + n, **how) for n in range(amount)}
        write_logs(tmp_path / name, "logs", runs)
    assert compared()[0] == code


@pytest.mark.parametrize("name", ["new/stream-9.out", "y/renamed.log"])
def test_a_copy_of_a_log_by_another_name_is_no_further_run(tmp_path, compared, name):
    runs = {f"x/{n}.out": stream_run(rate) for n, rate in enumerate(noisy(1000, 1, 4))}
    copies = {f"{n}/{name}": run for n, run in enumerate(runs.values())}
    write_logs(tmp_path / "a", "logs", runs)
    write_logs(tmp_path / "b", "logs", copies)
    assert compared()[1]["others"][0]["same_measurement"]


@pytest.mark.parametrize("benchmark", ["osu", "slurm-accounting", "mlperf-inference", "io500", "dl-training"])
def test_logs_that_do_not_tell_ranks_or_what_was_run_are_never_confirmed(tmp_path, compared, benchmark):
    for place, name in enumerate("ab"):
        runs = {
            f"x/{n}.out": stream_run(r, benchmark=benchmark, date=f"{n}")
            for n, r in enumerate(noisy(1000 - 300 * place, place, 4))
        }
        write_logs(tmp_path / name, "logs", runs)
    code, facts = compared()
    assert code == 5 and set(lines_of(facts).values()) == {("worse", "provisional")}


def followed(transect: Any, *folders: Path) -> tuple[int, dict[str, Any]]:
    code, out, err = transect("history", *folders, "--format", "json")
    assert out, err
    return code, json.loads(out)


@pytest.mark.parametrize(("benchmark", "confidence"), [("stream", "confirmed"), ("osu", "provisional")])
def test_a_history_has_a_run_for_each_day_that_an_archive_tells(tmp_path, transect, benchmark, confidence):
    rates = [*noisy(1000, 1, 7), *noisy(800, 2, 7)]
    runs = {
        f"2026-{8 + day // 5:02}/alpha/stream-2026{8 + day // 5:02}{1 + 5 * (day % 5):02}.out": stream_run(
            rate, benchmark=benchmark
        )
        for day, rate in enumerate(rates)
    }
    code, facts = followed(transect, write_logs(tmp_path / "all", "archive", runs))
    assert code == 0 and len(facts["runs"]) == 14
    (change,) = facts["changes"]
    assert (change["run"], change["outcome"], change["confidence"]) == (7, "worse", confidence)


def test_folders_of_logs_are_one_history_whatever_study_read_them_and_in_what_order(tmp_path, transect):
    for read, name in enumerate(("2026-10", "2026-08", "2026-09")):
        month(tmp_path / name, name, seed=read, read=read, alpha=1000)
    code, facts = followed(transect, tmp_path)
    assert code == 0 and [run["at"][:7] for run in facts["runs"]] == ["2026-08", "2026-09", "2026-10"]
    assert [len([v for v in series["values"] if v is not None]) for series in facts["series"]] == [3]


@pytest.mark.parametrize("source", ["x-archive", "archive", "link"])
def test_folders_of_a_path_by_any_name_tell_days_and_systems(tmp_path, transect, source):
    runs = {
        f"2026-08-0{day}/{system}/archive/{day}.out": stream_run(rate)
        for system, seed in (("alpha", 1), ("beta", 2))
        for day, rate in enumerate(noisy(1000, seed, 3), start=1)
    }
    listed = [{"file": f"/archive/x/archive/{name}", **run} for name, run in runs.items()]
    record = run_record(Cell.of(stage="ingest", source=source), {}, details={"runs": listed})
    code, facts = followed(transect, write_records(tmp_path / "all", record))
    assert code == 0 and len(facts["runs"]) == 3
    assert {series["cell"].partition(".")[0] for series in facts["series"] if series["cell"]} == {"alpha", "beta"}


@pytest.mark.parametrize("second_month", ["2026-08", "2026-10"])
def test_two_systems_are_not_followed_as_one(tmp_path, transect, second_month):
    days = {"alpha": "2026-08", "beta": second_month} | ({"alpha.2": "2026-09"} if second_month > "2026-09" else {})
    for place, (name, date) in enumerate(days.items()):
        runs = {
            f"{date}-{1 + 3 * n:02}/{name.partition('.')[0]}/{n}.out": stream_run(r)
            for n, r in enumerate(noisy(1000 - 300 * (name == "beta"), place, 3))
        }
        write_logs(tmp_path / "all" / name, "archive", runs)
    code, facts = followed(transect, tmp_path / "all")
    assert code == 0 and not facts["changes"]
    assert {series["cell"].partition(".")[0] for series in facts["series"] if series["cell"]} == {"alpha", "beta"}


@pytest.mark.parametrize(
    "names",
    [
        ["tool-2022.10/1.out", "tool-2022.11/2.out", "tool-2023.10/3.out"],
        ["slurm-20260801.out", "slurm-20260802.out", "slurm-20260803.out"],
        ["202608.out", "202609.out", "202610.out"],
    ],
    ids=["versions", "jobs", "six digits"],
)
def test_versions_and_numbers_of_jobs_are_no_days(tmp_path, transect, names):
    runs = {f"alpha/{name}": stream_run(r) for name, r in zip(names, noisy(1000, 1, 3), strict=True)}
    code, facts = followed(transect, write_logs(tmp_path / "all", "archive", runs))
    assert code == 5 and len(facts["runs"]) == 1
