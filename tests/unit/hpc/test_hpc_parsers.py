"""What the parsers make of logs of HPL, HPCC, STREAM and our probes, whole and contradictory."""

from __future__ import annotations

import re

import pytest
from compute_logs import STREAM_MICROSOFT
from hpc_logs import HPCC, HPL, MEMORY, STREAM
from log_scan import results, scan

from transect.hpc.base import PARSERS


def test_values_keep_the_digits_of_the_log() -> None:
    (run,) = scan(STREAM)
    copy = run.metric("copy")
    assert copy is not None and copy.printed == "20000.0" and copy.unit == "MB/s"
    assert copy.normalised is not None and copy.normalised.value == 2e10 and copy.normalised.unit == "B/s"


def test_line_numbers_are_those_of_an_editor() -> None:
    (run,) = scan("a\rb\rc\n\n" + HPL)
    assert ("a\rb\rc\n\n" + HPL).split("\n")[run.line - 1].startswith("WR")


def test_hpl_rows_of_amd_and_nvidia_and_a_rewritten_n() -> None:
    residual = "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   0.0036928 ...... PASSED\n"
    nvidia = (
        "HPL-NVIDIA 23.5.0  -- NVIDIA accelerated HPL benchmark -- NVIDIA\nHPLinpack 2.1  --  x\n"
        "N      :  100000 \nNB     :  1024\nP      :  1\nQ      :  2\n"
        "[WARNING] Change Input N from 100000 to 99328\n"
        "T/V                N    NB     P     Q         Time          Gflops (   per GPU)\n"
        "WC0            99328  1024     1     2        10.00       6.533e+04 ( 3.267e+04)\n"
        + residual
        + "End of Tests.\n"
    )
    amd = (
        "T/V            SWP       N    NB     P     Q          Time          Gflops\n"
        "WRC11C2R4o     Mix  100000   384     1     2        100.00      6.6668e+03\n" + residual
    )
    first, second = scan(nvidia + "HPLinpack 2.3  --  x\n" + amd)
    assert (first.variant, first.version, first.parameters["N"], first.status) == ("nvidia", "23.5.0", 99328, "ok")
    assert first.metric("gflops_per_gpu") is not None and any("rewritten" in w for w in first.warnings)
    assert (second.variant, second.version, second.parameters["SWP"], second.status) == ("amd", "2.3", "Mix", "ok")


def test_hpl_names_the_tests_of_a_sweep_that_never_came() -> None:
    cut = HPL.replace("NB     :      80", "NB     :      80      160")
    runs = scan(cut[: cut.index("Finished")])
    assert [r.status for r in runs] == ["ok", "truncated"] and "1 of 2 results" in runs[1].reason


def test_stream_tables_without_labels_are_all_found_and_warned_about() -> None:
    text = "".join(f"{line}\n" * 8 for line in STREAM.splitlines())
    runs = scan(text)
    assert len(runs) == 8 and {r.status for r in runs} == {"ok"}
    assert all("interleave" in r.warnings[0] for r in runs)


def test_a_cut_run_before_a_whole_one_does_not_take_its_rows() -> None:
    runs = scan(STREAM[: STREAM.index("Scale")] + STREAM)
    assert [r.status for r in runs] == ["truncated", "ok"]


def test_stream_in_binary_units() -> None:
    text = STREAM.replace("Best Rate MB/s", "Rate (GiB/s)").replace("20000.0", "18.626").replace("16000.0", "14.901")
    (run,) = scan(text.replace("24000.0", "22.352"))
    copy = run.metric("copy")
    assert run.status == "ok" and copy is not None and copy.normalised is not None
    assert copy.normalised.value == pytest.approx(2e10, rel=1e-4)


def test_stream_of_microsoft_has_rates_and_no_times() -> None:
    (run,) = scan(STREAM_MICROSOFT)
    assert (run.status, run.variant, run.line) == ("ok", "microsoft", 8), run.reason
    assert [(m.name, m.printed) for m in run.metrics] == [
        ("read", "244"),
        ("copy", "377"),
        ("scale", "375"),
        ("add", "519"),
        ("triad", "515"),
        ("write", "228"),
    ]
    parameters = {"cores": 2, "threads_requested": 4, "repetitions": 6, "vector_megabytes": "64.0"}
    assert run.parameters == parameters
    (cut,) = scan(STREAM_MICROSOFT[: STREAM_MICROSOFT.index("Write:")])
    assert (cut.status, "no row for write" in cut.reason) == ("truncated", True)
    assert [r.status for r in scan(STREAM_MICROSOFT * 2)] == ["ok", "ok"]


def test_stream_rows_whose_columns_are_no_times_are_no_result() -> None:
    (run,) = scan(STREAM.replace("0.008100     0.008000     0.009000", "19000 18000 15000 14000 12000"))
    assert run.status == "invalid" and "is not between" in run.reason


def test_stream_of_mpi_counts_the_arrays_of_all_ranks() -> None:
    text = STREAM.replace("Array size = 10000000", "Total Aggregate Array size = 10000000")
    (run,) = scan(text.replace("Offset", " Array size per MPI rank = 5000000, Offset"))
    assert run.status == "ok" and run.parameters["array_size"] == 10_000_000


def test_old_versions_of_hpcc_that_misspell_their_name() -> None:
    old = HPCC.replace("Challenge", "Challange").replace("Success=1\n", "")
    assert results(scan(old)) == results(scan(HPCC))


def test_probe_below_cache_size_claims_no_memory_bandwidth() -> None:
    (run,) = scan(MEMORY)
    assert run.parameters["beyond_cache"] == "no"
    assert any("main memory" in w for w in run.warnings)
    assert len(run.samples["copy"].values) == MEMORY.count("sample copy ")


@pytest.mark.parametrize("name", list(PARSERS))
def test_every_parser_is_described_and_has_usable_patterns(name: str) -> None:
    parser = PARSERS.get(name)
    assert parser.benchmark == name and parser.description
    for pattern in (*parser.start_patterns, *(parser.line_patterns or ())):
        assert re.compile(pattern).groups == 0, "no capturing groups"
        assert not re.compile(pattern).match("")
