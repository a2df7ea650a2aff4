"""Logs of benchmarks of storage: what they state."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from log_scan import results, scan
from storage_logs import LOGS, long_summary, maxima


def change(pattern: str, new: str) -> Callable[[str], str]:
    return lambda text: re.sub(pattern, new, text)


def until(word: str, more: str = "") -> Callable[[str], str]:
    return lambda text: text[: text.index(word)] + more


CANCELLED = "slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED DUE TO TIME LIMIT ***\n"


CASES = [
    # log, how it is changed, status of the last run, part of its reason
    ("io500 summary", change(r"(write .*time) 320.125", r"\1 299.900"), "ok", "took 299.900 s"),
    ("io500 result.txt", change(r"(t_delta +=) 320.1250", r"\1 30.1"), "ok", "took 30.1 s"),
    ("io500 summary", change(r"TOTAL \S+", "TOTAL 99.000000"), "invalid", "the total 99.000000"),
    ("io500 summary", change(r"Bandwidth \S+", "Bandwidth 3.0"), "invalid", "geometric mean is 2"),
    ("io500 summary", change(r"IOPS \d\S+ kiops", "IOPS 25.5 kiops"), "invalid", "IOPS 25.5"),
    ("io500 result.txt", change(r"(?m)^BW +=.*", "BW = 2.3"), "invalid", "bandwidth 2.3"),
    ("io500 bash", change(r"TOTAL \S+", "TOTAL 1.5"), "invalid", "the total 1.5"),
    ("io500 extended", change(r"(SCOREX. Bandwidth) \S+", r"\1 9.9"), "invalid", "[SCOREX]"),
    ("io500 summary", change(r"(TOTAL \S+)", r"\1 [INVALID]"), "invalid", "[INVALID]"),
    ("io500 summary", change(r"(find .*seconds)", r"\1 [INVALID]"), "invalid", "find: the log"),
    ("io500 summary", change(r"RESULT\]( +find)", r"RESULT-invalid]\1"), "invalid", "find"),
    ("io500 summary", change(r"SCORE \]", "SCORE-invalid]"), "invalid", "SCORE-invalid"),
    (
        "io500 result.txt",
        change(r"(; START.*)", r"\1\n; ERROR INVALID stonewall-time < 30s"),
        "invalid",
        "stonewall-time",
    ),
    ("io500 result.txt", change(r"(?m)^(SCORE +=.*)", r"\1 [INVALID]"), "invalid", "[INVALID]"),
    ("io500 summary", change(r"(\[RESULT\])", r"ERROR INVALID (main.c:1) DRY RUN MODE\n\1"), "invalid", "DRY RUN"),
    ("io500 summary", change(r"640\.0+", "0.000000"), "invalid", "find: the result is 0"),
    ("io500 summary", change(r"640\.0+", "-640.0"), "invalid", "negative"),
    ("io500 summary", change(r"640\.0+", "nan"), "invalid", "find: the result is nan"),
    ("io500 summary", change(r".*ior-hard-read.*\n", ""), "invalid", "no result of the phases ior-hard-read"),
    (
        "io500 bash",
        change(r"(\[Summary\].*\n\S+ BW .* )4.000", r"\g<1>5.000"),
        "invalid",
        "printed as 4.000 and as 5.000",
    ),
    ("io500 summary", until("[SCORE"), "truncated", "before the score"),
    ("io500 summary", until("[SCORE", CANCELLED), "failed", "TIME LIMIT"),
    ("io500 summary", until("[SCORE", "FATAL (main.c:3) Cannot open\n"), "failed", "FATAL"),
    ("io500 extended", until("[SCOREX]"), "truncated", "[SCOREX]"),
    ("io500 result.txt", until("[SCORE]"), "truncated", "after 12 phases"),
    ("io500 bash", until("[Summary]", "Error: the benchmark returned 1\n"), "failed", "returned 1"),
    ("ior 3.3.0", change(r"1280\.00", "2560.00"), "invalid", "2560.00"),
    ("ior 3.3.0", change(r"(?m)^(write +)1024\.00( .*0   )$", r"\g<1>1111.00\2"), "invalid", "1111.00 MiB/s, but"),
    ("ior 3.0.1", change(r"(?m)^(write +)1024\.00( .*0   )$", r"\g<1>1111.00\2"), "invalid", "1111.00 MiB/s, but"),
    ("ior json", change(r'"bwMiB": 1024.0000', '"bwMiB": 1111.0000'), "invalid", "1111.0000 MiB/s, but"),
    ("ior 4.1.0", change(r"(?m)^(write +1280.00 +800.00 +)1034.67", r"\g<1>1134.67"), "invalid", "mean 1134.67"),
    ("ior 4.1.0", change(r"(?m)^(write +)1280.00( +800.00 +1034.67)", r"\g<1>1380.00\2"), "invalid", "max 1380.00"),
    ("ior 3.2.1", change(r"0\.51333", "0.91333"), "invalid", "over 0.91333 s"),
    ("ior 3.2.1", change(r"\(1342.18 MB", "(1999.99 MB"), "invalid", "1999.99 MB/sec"),
    ("ior 2.10.3", change(r"Max Write: \S+", "Max Write: 1300.00"), "invalid", "1300.00"),
    ("ior 3.3.0", change(r"(?m)^(write +)1024\.00", r"\g<1>nan    "), "invalid", "nan"),
    ("ior 3.3.0", change(r"(?m)^(read +)4096\s", r"\g<1>-      "), "invalid", "a bandwidth is -"),
    ("ior 4.1.0", change(r"(\d\d\d\d)\.\d\d( .*NA)", r"\g<1>9e13\2"), "invalid", ""),
    (
        "ior 3.3.0",
        change(r"(Max Write)", r"ior WARNING: Incorrect data on write (3 errors found).\n\1"),
        "invalid",
        "3 errors found",
    ),
    ("ior 3.3.0", until("Summary of"), "truncated", "no summary of write and read"),
    ("ior 3.3.0", until("Summary of", CANCELLED), "failed", "TIME LIMIT"),
    ("ior 3.3.0", until("Options"), "truncated", "before the first result"),
    (
        "ior 3.3.0",
        until("write  ", "ior ERROR: open64(x) failed, errno 2\nMPI_ABORT was invoked on rank 0\n"),
        "failed",
        "errno 2",
    ),
    (
        "ior 2.10.3",
        until("Operation", "\n** error **\nERROR in aiori-POSIX.c (line 1): cannot open\n"),
        "failed",
        "cannot open",
    ),
    ("ior json", until('"summary"'), "truncated", "no summary"),
    ("ior json", until('"Results"'), "truncated", "before the first result"),
    ("mdtest 3.3.0", change(r"2750\.000", "nan"), "invalid", "max is nan"),
    ("mdtest 3.3.0", change(r"2750\.000", "-2750.0"), "invalid", "negative"),
    ("mdtest 3.3.0", change(r"2750\.000", "2300.000"), "invalid", "not between"),
    ("mdtest 3.3.0", change(r"2500\.000", "9500.000"), "invalid", "not between"),
    ("mdtest 4.1.0", change(r" 160\.000", " 0.000"), "invalid", "Std Dev 0.000 is less than"),
    ("mdtest 4.1.0", change(r" 160\.000", " 900.000"), "invalid", "Std Dev 900.000 is more"),
    ("mdtest 3.3.0 times", change(r"2500\.000", "9500.000"), "invalid", "File creation: the log prints 9500.000"),
    ("mdtest 4.1.0 times", change(r"2500\.000", "9500.000"), "invalid", "its 400 items"),
    ("mdtest 3.3.0", change(r"(File stat +:).*", r"\1 9e13 9e13 9e13 0.000"), "ok", "outside"),
    (
        "mdtest 3.3.0",
        change(r"(-- finished)", r"ERROR: verifying the data read! Take care!\n\1"),
        "invalid",
        "verifying",
    ),
    ("mdtest 3.3.0", change(r"\d+\.\d{3}", "0.000"), "no-result", "no operation ran"),
    ("mdtest 3.3.0", until("SUMMARY"), "truncated", "before its table"),
    ("mdtest 3.3.0", until("mdtest-"), "truncated", "before its table"),
    ("mdtest 3.3.0", until("   Tree removal"), "truncated", "within its table"),
    ("mdtest 3.3.0", until("SUMMARY", CANCELLED), "failed", "TIME LIMIT"),
    (
        "mdtest 1.9.3",
        until("SUMMARY", "01/15/2024 12:02:09: Process 0(n1): FAILED in main, Unable to create: No space\n"),
        "failed",
        "No space",
    ),
    (
        "mdtest 4.0.0",
        until("SUMMARY", "ERROR: unable to create directory, (mdtest.c:9)\n"),
        "failed",
        "unable to create",
    ),
]


@pytest.mark.parametrize(
    ("name", "how", "status", "reason"), CASES, ids=[f"{i}-{c[0]}-{c[2]}" for i, c in enumerate(CASES)]
)
def test_status_and_reason(name: str, how: Callable[[str], str], status: str, reason: str) -> None:
    changed = how(LOGS[name])
    assert changed != LOGS[name]
    run = scan(changed)[-1]
    assert run.status == status, run.reason
    assert reason in "; ".join((run.reason, *run.suspicions))


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
    one = LOGS["ior 3.2.1"]
    begin, end = one.index("TestID"), one.index("Summary of")
    second = one[begin:end].replace(": 0\n", ": 1\n", 1).replace("POSIX", "MPIIO")
    rows_of_second = long_summary("3.2.1", 1).replace("POSIX", "MPIIO").split("\n", 2)[2]
    text = one[:end] + second + long_summary("3.2.1") + rows_of_second + "Finished : x\n"
    first, other = scan(text)
    assert [first.status, other.status] == ["ok", "ok"]
    assert (first.parameters["api"], other.parameters["api"]) == ("POSIX", "MPIIO")
    assert first.line < other.line
    # The second test never came to its end: the first one did.
    cut = scan(one[:end] + second[: second.index("read  ")] + CANCELLED)
    assert [run.status for run in cut] == ["ok", "failed"]


def test_ior_csv_of_3_3_0_has_no_results() -> None:
    text = "3.3.0Fri Jan  2 20:28:45 2026ior -w -O summaryFormat=CSVLinux n10POSIX/fs/fsingle-shared-fileindependent1"
    (run,) = scan(text)
    assert (run.benchmark, run.variant, run.version, run.status) == ("ior", "csv", "3.3.0", "no-result")
    (other,) = scan("3.3.0Fri Jan  2 20:28:45 2026 something else\n")
    assert other.benchmark == "unknown"


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
    one, two = scan(again)
    assert (one.parameters["tasks"], two.parameters["tasks"], two.version) == (4, 2, "3.3.0")
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
