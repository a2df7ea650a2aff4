"""Logs of nccl-tests and rccl-tests: what they state."""

from __future__ import annotations

import re

import pytest
from log_scan import scan
from network_logs import NCCL, NCCL_INFO, NCCL_ROW, first, nccl


def test_nccl_rows_with_an_empty_redop_and_short_times() -> None:
    run = first(nccl(op="hypercube", redop="").replace("hypercube", "unknown_op"))
    assert run.status == "ok" and run.parameters["redop"] == "" and run.parameters["root"] == "-1"
    assert {m.phase for m in run.metrics[1:]} == {"out-of-place", "in-place"}
    text = NCCL.replace(f"{8388608 / 50e3:.2f}", "1.7e+02")
    assert "1.7e+02" in text and first(text).status == "ok"


def test_nccl_old_headers_units_and_devices() -> None:
    old = """\
# nThread 1 nGpus 2 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
#
# Using devices
#   Rank  0 Pid  12979 on     host1 device  0 [0x45] GeForce X
#   Rank  1 Pid  12979 on     host1 device  1 [0xc4] GeForce X
#
#                                             out-of-place                       in-place
#       size         count    type     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)             (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           8             1   float    21.03    0.00    0.00  0e+00    20.68    0.00    0.00  0e+00
          16             2   float    22.51    0.00    0.00  0e+00    21.68    0.00    0.00  0e+00
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.00031
#
"""
    run = first(old)
    assert run.status == "ok" and run.parameters["ranks"] == 2 and run.parameters["type"] == "float"
    oldest = re.sub(
        r"#  +size.*\n.*\n",
        "#      bytes             N    type     time  algbw  busbw      res     time  algbw  busbw      res\n",
        old,
    )
    assert {m.unit for m in first(oldest).metrics if m.name == "time"} == {"ms"}


def test_rccl_and_per_iteration_columns_and_time_stamps() -> None:
    rccl = (
        NCCL.replace("NVIDIA X100", "AMD Instinct X")
        .replace("# nccl-tests version 2.17.1 nccl-headers=22703 nccl-library=22703\n", "")
        .replace("# Using devices", "rccl-tests: Version develop:abc123\n# Using devices")
    )
    run = first(rccl)
    assert (run.variant, run.version, run.status) == ("rccl", "develop:abc123", "ok"), run.reason
    more = NCCL.replace("  #wrong", "  #wrong   i_min   i_max   i_p99   i_cv%")
    more = re.sub(
        r"(?m)^( +\d+ .*?       0)(.*?       0)$", r"\1 1.0 2.0 1.9 3.0\2 1.0 2.0 1.9 3.0 2026-01-31 12:00:00", more
    )
    run = first(more.replace("i_cv%\n", "i_cv%           timestamp\n"))
    assert run.status == "ok" and run.metric("i_cv%") is not None, run.reason


def test_nccl_programs_without_mpi_print_at_once() -> None:
    head = NCCL[: NCCL.index("#  Rank")]
    ranks = "".join(
        f"#  Rank  0 Group  0 Pid {90 + i:6d} on      node1 device  0 [0000:03:00] NVIDIA X\n" for i in range(4)
    )
    fails = "".join(f"n1: Test NCCL failure x.cu:7 'y'\n .. n1 pid {i}: Test failure x.cu:9\n" for i in (91, 92, 93))
    log = nccl(n=1)
    runs = scan(head * 4 + ranks + fails + log[log.index("#\n#     ") :])
    assert [r.status for r in runs] == ["invalid", "failed", "failed", "failed"]


def test_nccl_several_types_are_told_apart_by_phase() -> None:
    rows = NCCL[NCCL.index("     1048576") : NCCL.index("# Out of")]
    run = first(NCCL.replace(rows, rows + rows.replace("  float", "double ")))
    phases = {m.phase for m in run.metrics if m.name == "busbw"}
    assert phases == {f"{w}-place {t} sum -1" for w in ("in", "out-of") for t in ("float", "double")}


@pytest.mark.parametrize(
    "info",
    [
        NCCL_INFO,
        NCCL_INFO * 3 + "[2026-01-31 12:00:00] node1:64:70 [0] NCCL WARN something else\n",
        "[1,3]<stdout>:" + NCCL_INFO,
    ],
)
def test_nccl_rows_cut_by_what_nccl_itself_says(info: str) -> None:
    whole = first(NCCL)
    for cut in (rf"\1{info}\2{info}\4", rf"\1{info}\2\4", rf"\1\2{info}\4", rf"\1\2\4{info}"):
        text = NCCL_ROW.sub(cut, NCCL)
        assert text.count("NCCL INFO") >= 4
        run = first(text)
        assert (run.status, run.warnings, run.metrics) == ("ok", [], whole.metrics), run.reason


def test_a_nccl_row_of_which_a_piece_is_missing_is_no_row() -> None:
    text = NCCL_ROW.sub(rf"\1{NCCL_INFO}\2{NCCL_INFO}\4", NCCL)
    halves = [line for line in text.splitlines(keepends=True) if re.match(r" +[\d.]+ +[\d.]+ +[\d.]+ +0\n", line)]
    run = first(text.replace(halves[1], "", 1))
    assert {m.size for m in run.metrics if m.size} == {1048576, 4194304, 8388608}
    assert any("1 lines of the table" in warning for warning in run.warnings)
    # Two halves with nothing before them are nobody's, and the cut end of a file is no row.
    stray = NCCL.replace("# Out of bounds", halves[0] * 2 + "# Out of bounds")
    assert len(first(stray).metrics) == len(first(NCCL).metrics)
    assert first(text[: text.index(halves[-1]) + 20]).status == "truncated"


def test_pieces_of_rows_that_two_programs_print_at_once_are_not_put_together() -> None:
    text = NCCL_ROW.sub(rf"\1{NCCL_INFO}\2{NCCL_INFO}\4", NCCL)
    twice = "".join(line * 2 for line in text.splitlines(keepends=True))
    whole = {(m.size, m.phase, m.printed) for m in first(NCCL).metrics}
    assert all({(m.size, m.phase, m.printed) for m in run.metrics} <= whole for run in scan(twice))
    slower = text.replace("0.00 ", "0.01 ")
    pairs = zip(text.splitlines(keepends=True), slower.splitlines(keepends=True), strict=True)
    assert not [m for run in scan("".join(a + b for a, b in pairs)) for m in run.metrics if m.size]
    # Numbers of something else within a table are nothing.
    noisy = NCCL.replace("# Out of", f"1 2 3 4\n1.5 2 nan 3\n1.5 x y z\n{'9' * 5000} 2 nan x\n# Out of")
    assert (first(noisy).status, first(noisy).warnings) == ("ok", [])


def test_labels_of_ranks_within_a_nccl_row() -> None:
    label = "[1,0]<stdout>:"
    text = "".join(label + line for line in NCCL_ROW.sub(rf"\1{label}\2{label}\4", NCCL).splitlines(keepends=True))
    run = first(text)
    assert (run.status, run.metrics) == ("ok", first(NCCL).metrics), run.reason
    # Indented, as a page quotes it.
    assert first("".join(f"   {line}" for line in text.splitlines(keepends=True))).status == "ok"


def test_nccl_tables_of_two_machines_on_one_page_are_two_runs() -> None:
    table = NCCL[NCCL.index("#       size") :]
    cut = table[: table.index("# Out of bounds")]
    runs = scan(f"On one machine:\n```\n{cut}```\nOn the other:\n```\n{cut}```\nOn a third:\n{table}")
    assert [r.status for r in runs] == ["truncated", "truncated", "ok"]
    assert len({tuple(m.printed for m in r.metrics if m.name == "busbw") for r in runs}) == 1
