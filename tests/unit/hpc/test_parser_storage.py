"""Logs of benchmarks of storage: what they state."""

from __future__ import annotations

import re

import pytest
from log_scan import results, scan
from storage_logs import LOGS, long_summary, maxima


def test_io500_scores_phases_and_units() -> None:
    (run,) = scan(LOGS["io500 extended"])
    assert (run.version, run.parameters["mode"]) == ("io500-sc23_v1", "extended")
    score, easy, find = (run.metric("score"), run.metric("bandwidth", "ior-easy-write"), run.metric("rate", "find"))
    assert score and easy and find and easy.normalised and find.normalised and score.normalised
    assert (easy.printed, easy.unit, easy.normalised.value) == ("4.000000", "GiB/s", 4 * 2.0**30)
    assert (find.unit, find.normalised.value, find.normalised.unit) == ("kIOPS", 640_000.0, "1/s")
    assert score.normalised.name == "io500_score"
    assert run.parameters["unscored"] == ["timestamp", "ior-rnd4K-easy-read"]
    assert run.metric("bandwidth", "ior-rnd4K-easy-read") and not run.metric("rate", "timestamp")


def test_io500_result_txt_keeps_what_stands_before_the_version() -> None:
    (run,) = scan(LOGS["io500 result.txt"])
    assert run.parameters == {
        "procs": 96,
        "config-hash": "1A2B3C4D",
        "result-dir": "./results/x",
        "mode": "standard",
        "hash": "5E6F7A8B",
    }


def test_io500_in_bash_lists_results_twice_and_mislabels_the_score() -> None:
    (run,) = scan(LOGS["io500 bash"])
    assert len([m for m in run.metrics if m.name in ("bandwidth", "rate")]) == 12
    score = run.metric("score_bandwidth")
    assert score and score.unit == "GB/s" and score.normalised
    assert score.normalised.value == pytest.approx(2 * 2.0**30)
    assert any("GB/s" in warning for warning in run.warnings)


def test_an_invalid_optional_phase_does_not_spoil_the_official_score() -> None:
    text = re.sub(r"(ior-rnd4K-easy-read .*)", r"\1 [INVALID]", LOGS["io500 summary"])
    text = text.replace("[      ]  ior-rnd", "ERROR INVALID (main.c:443) Runtime is smaller\n[      ]  ior-rnd")
    (run,) = scan(text)
    assert run.status == "ok" and "ior-rnd4K-easy-read" in run.warnings[0]


@pytest.mark.parametrize(
    ("line", "version", "mode"),
    [
        ("IO500 version  (standard)", "", "standard"),
        ("IO500 version (extended)", "", "extended"),
        ("IO500 version v1.2-3-gabc (standard)", "v1.2-3-gabc", "standard"),
        ("IO500 version io500-sc20_v3", "io500-sc20_v3", None),
    ],
)
def test_io500_built_outside_git_has_no_version(line: str, version: str, mode: str | None) -> None:
    extended = LOGS["io500 extended" if mode == "extended" else "io500 summary"]
    (run,) = scan(re.sub(r"IO500 version .*", line, extended))
    assert (run.status, run.version, run.parameters.get("mode")) == ("ok", version, mode)


@pytest.mark.parametrize(("tasks", "status"), [(4096, "ok"), (4, "invalid")])
def test_mdtest_of_many_equal_tasks_has_no_deviation(tasks: int, status: str) -> None:
    # One of 4096 tasks is 0.03 slower: the deviation is 0.03 / 64.
    text = LOGS["mdtest 1.9.3"].replace("launched with 4 ", f"launched with {tasks} ")
    text = text.replace("4 tasks, 400 files", f"{tasks} tasks, {tasks * 100} files")
    text = re.sub(r"(Directory creation *: ).*", r"\1 2000.030 2000.000 2000.029 0.000", text)
    (run,) = scan(text)
    assert run.status == status, run.reason


def test_a_score_line_alone_is_a_result_with_a_warning() -> None:
    (run,) = scan(LOGS["io500 summary"].splitlines()[-1] + "\n")
    assert run.status == "ok" and "cannot be recomputed" in run.warnings[0]


def test_ior_repetitions_are_samples_and_the_summary_is_the_result() -> None:
    for name in ("ior 3.0.1", "ior 3.2.1", "ior 3.3.0", "ior 4.1.0", "ior json"):
        (run,) = scan(LOGS[name])
        assert run.samples["write"].values == [1024.0, 800.0, 1280.0]
        assert run.samples["read_total_time"].values == [0.125, 0.1, 0.16]
        best = run.metric("bandwidth_max", "write")
        assert best and best.normalised and best.normalised.value == 1280 * 2.0**20
        assert float(best.printed) == 1280 and best.unit == "MiB/s"
        assert run.parameters["tasks"] == 4 and run.parameters["repetitions"] == 3
        assert (run.parameters["api"], run.parameters["xfersize"]) == ("POSIX", "1 MiB")
        assert (run.parameters["xsize"], run.parameters["blksiz"]) == (1048576, 67108864)


def test_ior_2_with_values_of_all_columns() -> None:
    (run,) = scan(LOGS["ior 2.10.3"])
    assert (run.version, run.parameters["clients_per_node"]) == ("2.10.3", 2)
    printed = {m.name: m.printed for m in run.metrics if m.phase == "read"}
    assert printed["bandwidth_max"] == "5120.00" and printed["bandwidth_min"] == "3200.00"
    assert printed["time_mean"] == "0.12833"


def test_ior_with_a_deadline_counts_the_bytes_that_it_says_it_used() -> None:
    used = 300 * 2**20
    text = LOGS["ior 3.2.1"]
    assert "1024.00" in text
    first = text.index("write     1024")
    moved = f"WARNING: Using actual aggregate bytes moved = {used}.\n"
    text = text[:first] + moved + text[first:]
    text = text.replace("aggregate filesize", "stonewallingTime    : 300\naggregate filesize", 1)
    text = text.replace("write     1024.00", "write     600.00 ", 1)
    run = scan(text)[0]
    assert "over its time" not in run.reason  # 300 MiB in 0.5 s
    assert run.parameters["stonewallingTime"] == 300


def test_ior_tests_of_one_script_are_runs_of_their_own() -> None:
    log = LOGS["ior 3.2.1"]
    begin, end = log.index("TestID"), log.index("Summary of")
    second = log[begin:end].replace(": 0\n", ": 1\n", 1).replace("POSIX", "MPIIO")
    rows_of_second = long_summary("3.2.1", 1).replace("POSIX", "MPIIO").split("\n", 2)[2]
    text = log[:end] + second + long_summary("3.2.1") + rows_of_second + "Finished : x\n"
    first, second_run = scan(text)
    assert [first.status, second_run.status] == ["ok", "ok"]
    assert (first.parameters["api"], second_run.parameters["api"]) == ("POSIX", "MPIIO")
    assert first.line < second_run.line
    # The second test never came to its end: the first one did.
    end_of_it = "slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED DUE TO TIME LIMIT ***\n"
    cut = scan(log[:end] + second[: second.index("read  ")] + end_of_it)
    assert [run.status for run in cut] == ["ok", "failed"]


def test_ior_csv_of_3_3_0_has_no_results() -> None:
    text = "3.3.0Fri Jan  2 20:28:45 2026ior -w -O summaryFormat=CSVLinux n10POSIX/fs/fsingle-shared-fileindependent1"
    (run,) = scan(text)
    assert (run.benchmark, run.variant, run.version, run.status) == ("ior", "csv", "3.3.0", "no-result")
    (stranger,) = scan("3.3.0Fri Jan  2 20:28:45 2026 something else\n")
    assert stranger.benchmark == "unknown"


@pytest.mark.parametrize("name", ["ior 3.3.0", "ior 3.0.1"])
def test_ior_without_its_head(name: str) -> None:
    text = LOGS[name]
    (run,) = scan(text[text.index("access    bw") :])
    assert run.status == "ok" and run.metric("bandwidth_max", "read")
    (run,) = scan(text[text.index("Operation ") :])
    assert run.status == "ok" and run.parameters["tasks"] == 4
    (run,) = scan(maxima())
    assert run.status == "ok" and run.version == ""


@pytest.mark.parametrize("form", ["1.9.3", "3.3.0", "4.0.0", "4.1.0"])
def test_mdtest_rates_and_what_was_not_run(form: str) -> None:
    (run,) = scan(LOGS[f"mdtest {form}"])
    assert (run.version, run.variant) == (form, "rates")
    assert run.parameters["not_run"] == ["File read"] and not run.metric("rate_max", "File read")
    assert (run.parameters["tasks"], run.parameters["nodes"], run.parameters["files"]) == (4, 2, 400)
    best = run.metric("rate_max", "File creation")
    assert best and best.printed == "2750.000" and best.normalised
    assert (best.normalised.name, best.normalised.value) == ("metadata_rate", 2750.0)


@pytest.mark.parametrize("form", ["3.3.0", "4.1.0"])
def test_mdtest_takes_the_second_table_for_times_whatever_its_label(form: str) -> None:
    (run,) = scan(LOGS[f"mdtest {form} times"])
    assert run.variant == "rates and times"
    time = run.metric("time_mean", "File creation")
    assert time and (time.printed, time.unit, time.direction) == ("0.160", "s", "lower")
    assert ("labelled" in " ".join(run.warnings)) == (form == "4.1.0")
    in_ms = LOGS["mdtest 4.1.0 times"].replace(
        "rate (in ops/sec): (of 1 iterations)", "time (in ms/op): (of 1 iterations)"
    )
    in_ms = in_ms.replace("time (in ms/op)", "rate (in ops/sec)", 1)
    (run,) = scan(in_ms)
    time = run.metric("time_mean", "File creation")
    assert time and time.unit == "s"


def test_mdtest_headers_alone_with_other_numbers_of_tasks_and_statistics_of_ranks() -> None:
    text = LOGS["mdtest 3.3.0"]
    (run,) = scan(text[text.index("SUMMARY") :])
    assert run.status == "ok" and run.version == "" and run.metric("rate_mean", "Tree removal")
    begin, end = text.index("4 tasks"), text.index("-- finished")
    again = text[:end] + text[begin:end].replace("4 tasks, 400", "2 tasks, 200") + text[end:]
    first, two = scan(again)
    assert (first.parameters["tasks"], two.parameters["tasks"], two.version) == (4, 2, "3.3.0")
    ranks = re.sub(r"(File stat +:)", r"\1 9.000 8.000 8.500    ", text)
    assert results(scan(ranks)) == results(scan(text))


def test_mdtest_lines_of_single_iterations_are_samples() -> None:
    once = "V-1: Rank   0 Line  1223   File creation     :          0.160 sec,       2500.000 ops/sec\n"
    wall = "V-1:   File creation (stonewall):          0.160 sec,       99.000 ops/sec\n"
    (run,) = scan(LOGS["mdtest 3.3.0"].replace("\nSUMMARY", once + wall + "\nSUMMARY"))
    assert run.samples["File creation"].values == [2500.0]
    assert results([run]) == results(scan(LOGS["mdtest 3.3.0"]))


def test_a_deviation_of_one_iteration_may_be_nan() -> None:
    text = LOGS["mdtest 4.1.0 times"].replace("        0.000\n", "         -nan\n")
    (run,) = scan(text)
    assert run.status == "ok"
