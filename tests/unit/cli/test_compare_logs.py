"""`transect compare` and `history` on runs that logs tell: pairs are of one system, benchmark, variant and settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from result_runs import noisy, stream_run, write_logs


def month(
    folder: Path, source: str, *, seed: int, read: int = 0, runs: int = 4, **rates: float
) -> Path:
    """Write a month's logs: each system's runs of STREAM about a rate."""
    told = {
        f"{system}/stream-{number:02}.out": stream_run(rate)
        for place, (system, middle) in enumerate(rates.items())
        for number, rate in enumerate(noisy(middle, 10 * seed + place, runs), start=1)
    }
    return write_logs(folder, source, told, read=read)


def lines_of(facts: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {
        one["cell"].partition("~")[0]: (one["outcome"], one["sureness"])
        for one in facts["others"][0]["lines"]
    }


def test_months_of_logs_pair_by_system_and_settings_however_they_were_named(tmp_path, compared):
    month(tmp_path / "a", "2026-08", seed=1, alpha=1000, beta=800)
    month(tmp_path / "b", "2026-10", seed=2, alpha=900, beta=800)
    code, facts = compared()
    assert code == 4
    assert lines_of(facts) == {
        "alpha.stream.mccalpin": ("worse", "firm"),
        "beta.stream.mccalpin": ("same", "firm"),
    }


def test_two_clusters_of_one_folder_each_are_compared_as_the_folders_are(tmp_path, compared):
    month(tmp_path / "a", "logs", seed=1, alpha=1000)
    month(tmp_path / "b", "logs", seed=2, beta=1200)
    code, facts = compared()
    assert (code, lines_of(facts)) == (0, {"stream.mccalpin": ("better", "firm")})
    (named,) = (one for one in facts["others"][0]["differences"] if one["fact"] == "system name")
    assert (named["base"], named["other"]) == (["alpha"], ["beta"])


def test_other_settings_are_no_pair_and_are_named(tmp_path, compared):
    for name, size in (("a", 1000), ("b", 2000)):
        runs = {f"x/{n}.out": stream_run(100 + n, array_size=size) for n in range(3)}
        write_logs(tmp_path / name, "logs", runs)
    code, facts = compared()
    assert code == 5 and not facts["others"][0]["lines"]
    (lone,) = facts["others"][0]["only_base"]
    assert "settings" in lone["differs_in"] and "1000" in str(lone["differs_in"])


def test_where_and_when_it_ran_and_what_came_of_it_are_no_settings(tmp_path, compared):
    for place, name in enumerate(("a", "b")):
        own = {"device": f"GPU {place}", "date": f"{place}", "residual_checks": [f"{place}"]}
        runs = {f"x/{n}.out": stream_run(r, **own) for n, r in enumerate(noisy(100, place, 4))}
        write_logs(tmp_path / name, "logs", runs)
    assert compared()[1]["others"][0]["pairs"] == 1


def test_which_kind_of_device_was_asked_for_is_a_setting(tmp_path, compared):
    for name, device in (("a", "CPU"), ("b", "GPU")):
        runs = {f"x/{n}.out": stream_run(100 + n, device=device) for n in range(3)}
        write_logs(tmp_path / name, "logs", runs)
    assert compared()[1]["others"][0]["pairs"] == 0


def test_of_an_archive_that_grew_only_what_is_new_is_held_beside_the_base(tmp_path, compared):
    old = {f"x/{n}.out": stream_run(rate) for n, rate in enumerate(noisy(1000, 1, 4))}
    new = {f"x/{n}.out": stream_run(rate) for n, rate in enumerate(noisy(800, 2, 4), start=4)}
    write_logs(tmp_path / "a", "logs", old)
    write_logs(tmp_path / "b", "logs", old | new, read=1)
    code, facts = compared()
    (line,) = facts["others"][0]["lines"]
    assert (
        code == 4 and line["other"]["runs"] == 4 and line["ratio"] == pytest.approx(0.8, rel=0.03)
    )


def test_refused_runs_are_failures_of_their_cell_and_no_numbers(tmp_path, compared):
    good = {f"x/{n}.out": stream_run(rate) for n, rate in enumerate(noisy(1000, 1, 4))}
    bad = {"x/9.out": stream_run(9e9, status="invalid", reason="its time gives another rate")}
    write_logs(tmp_path / "a", "logs", good)
    again = {f"x/{n}.out": stream_run(rate) for n, rate in enumerate(noisy(1000, 2, 4))}
    write_logs(tmp_path / "b", "logs", again | bad)
    code, facts = compared()
    told = {one["metric"]: one["outcome"] for one in facts["others"][0]["lines"]}
    assert code == 4 and told == {None: "worse", "memory_bandwidth": "same"}


def followed(transect: Any, *folders: Path) -> tuple[int, dict[str, Any]]:
    code, out, err = transect("history", *folders, "--format", "json")
    assert out, err
    return code, json.loads(out)


def test_a_history_has_a_run_for_each_day_that_an_archive_tells(tmp_path, transect):
    rates = [*noisy(1000, 1, 7), *noisy(800, 2, 7)]
    runs = {
        f"2026-{8 + day // 5:02}/alpha/stream-2026{8 + day // 5:02}{1 + 5 * (day % 5):02}.out": stream_run(rate)
        for day, rate in enumerate(rates)
    }  # fmt: skip
    code, facts = followed(transect, write_logs(tmp_path / "all", "archive", runs))
    assert code == 0 and len(facts["runs"]) == 14
    (change,) = facts["changes"]
    assert (change["run"], change["outcome"], change["sureness"]) == (7, "worse", "firm")


def test_folders_of_logs_are_one_history_whatever_study_read_them_and_in_what_order(
    tmp_path, transect
):
    for read, name in enumerate(("2026-10", "2026-08", "2026-09")):
        month(tmp_path / name, name, seed=read, read=read, alpha=1000)
    code, facts = followed(transect, tmp_path)
    assert code == 0 and [one["at"][:7] for one in facts["runs"]] == [
        "2026-08",
        "2026-09",
        "2026-10",
    ]
    assert [len([v for v in one["values"] if v is not None]) for one in facts["series"]] == [3]


def test_runs_that_share_no_cell_are_no_history(tmp_path, transect):
    for name in ("2026-08", "2026-09"):
        runs = {f"x/{n}.out": stream_run(100, array_size=int(name[-2:])) for n in range(3)}
        write_logs(tmp_path / name, name, runs)
    code, facts = followed(transect, tmp_path)
    assert code == 5 and len(facts["runs"]) == 2
