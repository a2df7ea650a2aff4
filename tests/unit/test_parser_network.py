"""OSU, IMB, nccl-tests, Graph500 and NPB: whole, broken, interleaved and contradictory logs."""

from __future__ import annotations

import io
import random
import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transect.hpc.base import PARSERS, Run
from transect.hpc.parsers.npb import npb_mop
from transect.hpc.scan import Scanner


def table(header: str, rows: list[tuple[object, ...]], first: int = 10, width: int = 18) -> str:
    """Lay rows out as the programs do: fixed width, to the right."""
    body = "".join(
        f"{row[0]!s:<{first}}" + "".join(f"{cell!s:>{width}}" for cell in row[1:]) + "\n"
        for row in rows
    )
    return header + "\n" + body


SIZES = [2**k for k in range(23)]
OSU_LATENCY = "# OSU MPI Latency Test v5.9\n" + table(
    "# Size          Latency (us)", [(0, "1.21"), *((s, f"{1.2 + s / 9000:.2f}") for s in SIZES)]
)
OSU_BW = (
    "# OSU MPI-CUDA Bandwidth Test v5.9\n# Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)\n"
    + table("# Size      Bandwidth (MB/s)", [(s, f"{9000 * s / (s + 5000):.2f}") for s in SIZES])
)
OSU_ALLREDUCE = "\n# OSU MPI Allreduce Latency Test v7.3\n# Datatype: MPI_INT.\n" + table(
    "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations",
    [
        (s, f"{3 + s / 500:.2f}", f"{2 + s / 500:.2f}", f"{4 + s / 500:.2f}", "1000")
        for s in SIZES[2:21]
    ],
).replace("        1000\n", "  1000\n")
OSU_IALLREDUCE = (
    "# OSU MPI Non-blocking Allreduce Latency Test v7.0\n"
    "# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait\n\n"
    + table(
        "# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)",
        [(s, "15.00", "10.00", "10.00", "50.00") for s in SIZES[2:21]],
    )
)
OSU_MBW_MR = (
    "# OSU MPI Multiple Bandwidth / Message Rate Test v5.6\n# [ pairs: 4 ] [ window size: 64 ]\n"
    + table(
        "# Size                  MB/s        Messages/s",
        [(s, f"{7.25 * s:.2f}", "7250000.00") for s in SIZES],
    )
)
OSU_BARRIER = "# OSU MPI Barrier Latency Test v6.1\n# Avg Latency(us)\n             12.34\n"
OSU = OSU_LATENCY + OSU_BW + OSU_ALLREDUCE + OSU_IALLREDUCE + OSU_MBW_MR + OSU_BARRIER


def imb_rows(rows: list[tuple[object, ...]]) -> str:
    return "".join("".join(f"{cell!s:>13}" for cell in row) + "\n" for row in rows)


IMB_HEAD = """\
#----------------------------------------------------------------
#    Intel(R) MPI Benchmarks 2021.3, MPI-1 part
#----------------------------------------------------------------
# Date                  : Tue Mar  1 10:00:00 2022
# MPI Version           : 3.1
# Calling sequence was:
# ./IMB-MPI1 PingPong Allreduce Barrier
# Minimum message length in bytes:   0
# Maximum message length in bytes:   65536
# List of Benchmarks to run:

# PingPong
# Allreduce
# Barrier

"""
IMB_PINGPONG = (
    "#---------------------------------------------------\n# Benchmarking PingPong \n"
    "# #processes = 2 \n# ( 2 additional processes waiting in MPI_Barrier)\n"
    "#---------------------------------------------------\n"
    "       #bytes #repetitions      t[usec]   Mbytes/sec\n"
    + imb_rows(
        [(0, 1000, "1.50", "0.00")]
        + [
            (s, 1000, f"{1.5 + s / 5000:.2f}", f"{s / float(f'{1.5 + s / 5000:.2f}'):.2f}")
            for s in SIZES[:17]
        ]
    )
    + "\n"
)
IMB_ALLREDUCE = (
    "#----------------------------------------------------------------\n# Benchmarking Allreduce \n"
    "# #processes = 4 \n#----------------------------------------------------------------\n"
    "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
    + imb_rows(
        [(0, 1000, "0.05", "0.06", "0.05")]
        + [(s, 640, "4.00", "4.20", "4.10") for s in SIZES[2:17]]
    )
    + "\n"
)
IMB_BARRIER = (
    "#---------------------------------------------------\n# Benchmarking Barrier \n"
    "# #processes = 4 \n#---------------------------------------------------\n"
    " #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
    + imb_rows([(1000, "3.10", "3.30", "3.20")])
)
IMB_END = "\n\n# All processes entering MPI_Finalize\n\n"
IMB = IMB_HEAD + IMB_PINGPONG + IMB_ALLREDUCE + IMB_BARRIER + IMB_END


def nccl_row(size: int, bw: float, n: int, redop: str = "sum", wrong: str = "0") -> str:
    time_us = f"{size / bw / 1e3:.2f}"
    alg = f"{bw:.2f}"
    bus = f"{bw * 2 * (n - 1) / n:.2f}"
    half = f"{time_us:>9}{alg:>8}{bus:>8}{wrong:>8}"
    return f"{size:12d}{size // 4:14d}     float{redop:>8}      -1{half}{half}\n"


def nccl(op: str = "all_reduce", n: int = 4, redop: str = "sum", wrong: str = "0") -> str:
    factor = 2 * (n - 1) / n
    bandwidths = [10.0, 20.0, 40.0, 50.0]
    mean = sum(float(f"{b * factor:.2f}") for b in bandwidths) / 4
    failed = "OK" if wrong == "0" else "FAILED"
    return (
        "# nccl-tests version 2.17.1 nccl-headers=22703 nccl-library=22703\n"
        f"# Collective test starting: {op}_perf\n"
        "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 8388608 step: 2(factor) warmup iters: 1 "
        "iters: 20 agg iters: 1 validation: 1 graph: 0\n#\n# Using devices\n"
        + "".join(
            f"#  Rank {r:2d} Group  0 Pid {4000 + r:6d} on      node1 device {r:2d} [0000:0{r}:00] NVIDIA X100\n"
            for r in range(n)
        )
        + "#\n"
        "#                                                  out-of-place                     in-place\n"
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong\n"
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)\n"
        + "".join(nccl_row(2**20 << i, b, n, redop, wrong) for i, b in enumerate(bandwidths))
        + f"# Out of bounds values : {0 if wrong == '0' else 8} {failed}\n# Avg bus bandwidth    : {mean:.6g} \n"
        f"#\n# Collective test concluded: {op}_perf\n\n"
    )


NCCL = nccl()
GRAPH500 = "".join(
    f"{key + ':':<32}{value}\n"
    for key, value in {
        "SCALE": "20", "edgefactor": "16", "NBFS": "64", "graph_generation": "1.25",
        "num_mpi_processes": "8", "construction_time": "0.5",
        "bfs  min_time": "0.02", "bfs  firstquartile_time": "0.022", "bfs  median_time": "0.025",
        "bfs  thirdquartile_time": "0.03", "bfs  max_time": "0.04", "bfs  mean_time": "0.0256",
        "bfs  stddev_time": "0.003", "min_nedge": "16000000", "firstquartile_nedge": "16000000",
        "median_nedge": "16000000", "thirdquartile_nedge": "16000000", "max_nedge": "16000000",
        "mean_nedge": "16000000", "stddev_nedge": "0", "bfs  min_TEPS": "4e+08",
        "bfs  firstquartile_TEPS": "5.33333e+08", "bfs  median_TEPS": "6.4e+08",
        "bfs  thirdquartile_TEPS": "7.27273e+08", "bfs  max_TEPS": "8e+08",
        "bfs  harmonic_mean_TEPS": "!  6.25e+08", "bfs  harmonic_stddev_TEPS": "1e+07",
        "bfs  min_validate": "0.1", "bfs  max_validate": "0.3", "bfs  mean_validate": "0.2",
        "bfs  stddev_validate": "0.05",
    }.items()
)  # fmt: skip
NPB = """\


 NAS Parallel Benchmarks (NPB3.4-MPI) - MG Benchmark

 Size:  256x 256x 256  (class A)
 Iterations:                      4
 Total number of processes:       4

 VERIFICATION SUCCESSFUL


 MG Benchmark Completed.
 Class           =                        A
 Size            =            256x 256x 256
 Iterations      =                        4
 Time in seconds =                     0.80
 Total processes =                        4
 Active processes=                        4
 Mop/s total     =                  4865.39
 Mop/s/process   =                  1216.35
 Operation type  =           floating point
 Verification    =               SUCCESSFUL
 Version         =                    3.4.2
 Compile date    =              01 Mar 2022

 Please send all errors/feedbacks to:
 npb@nas.nasa.gov


"""
LOGS = {"osu": OSU, "imb": IMB, "nccl-tests": NCCL, "graph500": GRAPH500, "npb": NPB}
COUNT = {"osu": 6, "imb": 3, "nccl-tests": 1, "graph500": 1, "npb": 1}
SCANNER = Scanner()


def scan(text: str | bytes, scanner: Scanner = SCANNER) -> list[Run]:
    raw = text.encode() if isinstance(text, str) else text
    runs = list(scanner.scan(io.BytesIO(raw), "log"))
    assert runs, "nothing may be lost"
    for run in runs:
        assert "fault of the parser" not in run.reason, run.reason
        assert bool(run.reason) == (run.status != "ok")
    return runs


def results(runs: list[Run]) -> list[object]:
    return [
        (r.benchmark, r.status, [(m.name, m.size, m.phase, m.printed) for m in r.metrics])
        for r in runs
    ]


@pytest.mark.parametrize("name", LOGS)
def test_a_whole_log_is_ok(name: str) -> None:
    runs = scan(LOGS[name])
    assert {(r.benchmark, r.status.value) for r in runs} == {(name, "ok")}, [r.reason for r in runs]
    assert len(runs) == COUNT[name]
    assert all(any(m.normalised for m in r.metrics) for r in runs)


DISGUISES: dict[str, Callable[[str], bytes]] = {
    "CRLF": lambda t: t.replace("\n", "\r\n").encode(),
    "colours": lambda t: re.sub(r"(?m)^", "\x1b[0;31m", t).replace("\n", "\x1b[0m\n").encode(),
    "srun -l": lambda t: re.sub(r"(?m)^", "3: ", t).encode(),
    "Open MPI tags": lambda t: re.sub(r"(?m)^", "[1,0]<stdout>:", t).encode(),
    "noise": lambda t: re.sub(
        r"(?m)^", "srun: job 1 queued\nn1:12:12 [0] NCCL INFO x=1\n", t
    ).encode(),
    "a long line": lambda t: b"x" * 1_000_000 + b"\n" + t.encode() + b"y" * 1_000_000,
    "no line end": lambda t: t.rstrip("\n").encode(),
    "an error before": lambda t: b"srun: error: n1: task 0: Killed\n" + t.encode(),
}


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("name", LOGS)
def test_a_disguised_log_yields_the_same_results(name: str, disguise: str) -> None:
    assert results(scan(DISGUISES[disguise](LOGS[name]))) == results(scan(LOGS[name]))


@pytest.mark.parametrize("name", LOGS)
def test_a_log_cut_at_any_byte_never_yields_a_wrong_number(name: str) -> None:
    text = LOGS[name]
    full = {m.printed for run in scan(text) for m in run.metrics}
    for end in range(20, len(text), max(1, len(text) // 500)):
        for run in scan(text[:end]):
            if run.benchmark == name:
                assert {m.printed for m in run.metrics} <= full, text[:end][-60:]


@pytest.mark.parametrize("name", ["nccl-tests", "npb", "graph500"])
def test_a_log_cut_after_any_line_is_ok_only_when_its_result_is_complete(name: str) -> None:
    lines = LOGS[name].splitlines(keepends=True)
    whole = results(scan(LOGS[name]))
    for end in range(1, len(lines)):
        runs = scan("".join(lines[:end]))
        if any(r.status == "ok" for r in runs) and "stddev_TEPS" not in lines[end - 1]:
            assert results(runs) == whole, lines[end - 1]


def first(text: str) -> Run:
    return scan(text)[0]


CASES: list[tuple[str, str, str, str]] = [
    # log, status of the last run, part of its reason, id
    (OSU_LATENCY.replace("1.21", "-1.2"), "invalid", "outside", "osu negative"),
    (OSU_LATENCY.replace("1.21", " nan"), "invalid", "nan", "osu nan"),
    (OSU_LATENCY[: OSU_LATENCY.index("0  ")], "truncated", "before the first row", "osu header only"),
    (OSU_LATENCY[:-4], "truncated", "within a row", "osu cut row"),
    (OSU_LATENCY + OSU_LATENCY[: OSU_LATENCY.index("\n64 ")] + "\n", "truncated", "earlier table", "osu shorter than before"),
    (OSU_LATENCY[: OSU_LATENCY.index("\n64 ")] + "\nslurmstepd: error: *** STEP 1.0 CANCELLED ***\n", "failed", "CANCELLED", "osu cancelled"),
    (OSU_ALLREDUCE.replace("3.01", "9.01"), "invalid", "not between", "osu mean"),
    (OSU_IALLREDUCE.replace("50.00\n", "95.00\n", 1), "invalid", "95.00 % overlap, but", "osu overlap"),
    (OSU_MBW_MR.replace("29.00 ", "99.00 "), "invalid", "99.00 MB/s, but", "osu message rate"),
    (OSU_LATENCY + "DATA VALIDATION ERROR: osu_latency exited with status 1 on message size 4.\n", "invalid", "VALIDATION", "osu validation"),
    (OSU_BARRIER.replace("12.34", "0.00"), "invalid", "zero", "osu zero"),
    (IMB_HEAD + IMB_PINGPONG.replace("1.50", "9.99e12") + IMB_END, "invalid", "outside", "imb impossible"),
    (IMB_HEAD + IMB_PINGPONG + IMB_ALLREDUCE[: IMB_ALLREDUCE.index("         1024")], "truncated", "ends after size 512 of 65536", "imb truncated"),
    (IMB_HEAD + IMB_PINGPONG, "truncated", "before Allreduce, Barrier", "imb rest missing"),
    (IMB_HEAD + IMB_PINGPONG + "MPI_ABORT was invoked on rank 1\n", "failed", "MPI_ABORT", "imb abort"),
    (IMB_HEAD, "truncated", "before PingPong", "imb header only"),
    (IMB_HEAD + IMB_ALLREDUCE.replace("4.10", "5.10") + IMB_END, "invalid", "not between", "imb mean"),
    (NCCL.replace("# Avg bus bandwidth    : 45", "# Avg bus bandwidth    : 99"), "invalid", "mean of its", "nccl average"),
    (nccl(wrong="12"), "invalid", "8 values out of bounds", "nccl wrong"),
    (nccl(n=1), "invalid", "one rank only", "nccl single rank"),
    (NCCL.replace("75.00", "85.00", 1), "invalid", "bus bandwidth of 85.00, but", "nccl busbw"),
    (NCCL.replace("15.00       0", "-1.00       0", 1), "invalid", "outside", "nccl negative"),
    (NCCL[: NCCL.index("     4194304")], "truncated", "after 2 rows", "nccl truncated"),
    (NCCL[: NCCL.index("     1048576")] + "n1: Test NCCL failure common.cu:401 'x / '\n .. n1 pid 4001: Test failure common.cu:5\n", "failed", "Test NCCL failure", "nccl failed"),
    (NCCL[: NCCL.index("     1048576")], "truncated", "before the first row", "nccl header only"),
    (GRAPH500.replace("6.25e+08", "9.25e+08"), "invalid", "9.25e+08, but", "graph500 harmonic mean"),
    (GRAPH500.replace("0.022", "0.001"), "invalid", "not in order", "graph500 quartiles"),
    (GRAPH500.replace("4e+08", "-4e+08"), "invalid", "outside", "graph500 negative"),
    (GRAPH500.replace("16000000", "99000000"), "invalid", "", "graph500 edges"),
    ("graph_generation:  1.5 s\nRunning BFS 0\nValidation failed for this BFS root; skipping rest.\nNo results printed for invalid run.\n", "invalid", "Validation failed", "graph500 validation"),
    ("graph_generation:  1.5 s\nRunning BFS 0\nsrun: error: n1: task 3: Killed\n", "failed", "Killed", "graph500 killed"),
    ("graph_generation:  1.5 s\nRunning BFS 0\nTime for BFS 0 is 0.5\n", "truncated", "", "graph500 truncated"),
    (NPB.replace("  SUCCESSFUL\n Version", "UNSUCCESSFUL\n Version"), "invalid", "UNSUCCESSFUL", "npb unsuccessful"),
    (NPB.replace("4865.39", "9865.39").replace("1216.35", "2466.35"), "invalid", "9865.39 Mop/s, but", "npb rate"),
    (NPB.replace("1216.35", "1516.35"), "invalid", "in total, but 1516.35", "npb per process"),
    (NPB.replace("4865.39", "    NaN"), "invalid", "NaN", "npb nan"),
    (NPB[: NPB.index(" MG Benchmark Completed")], "truncated", "before the results", "npb truncated"),
    (NPB[: NPB.index(" Verification")] + "mpirun noticed that process rank 1 exited on signal 9\n", "failed", "within the results", "npb killed"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("log", "status", "reason"), [c[:3] for c in CASES], ids=[c[3] for c in CASES]
)
def test_status_and_reason(log: str, status: str, reason: str) -> None:
    run = scan(log)[-1]
    assert (run.status, reason in run.reason) == (status, True), run.reason


def test_osu_tests_variants_versions_and_comments() -> None:
    titles = {
        "# OSU MPI-ROCM Bi-Directional Bandwidth Test v7.1": ("bibw", "mpi-rocm", "7.1"),
        "# OSU MPI Multi Latency Test v5.3.2": ("multi_lat", "mpi", "5.3.2"),
        "# OSU MPI Bandwidth Test (Version 2.3)": ("bw", "mpi", "2.3"),
        "# OSU NCCL-CUDA Allreduce Latency Test v7.5": ("allreduce", "nccl-cuda", "7.5"),
        "# OMB Python MPI Latency Test": ("latency", "python-mpi", ""),
        "# OSU MPI_Put-CUDA Latency Test v5.8": ("put_latency", "mpi-cuda", "5.8"),
        "# OSU MPI_Accumulate latency Test v5.6.3": ("acc_latency", "mpi", "5.6.3"),
        "# OSU MPI All-to-Allv Personalized Exchange Latency Test v7.2": (
            "alltoallv",
            "mpi",
            "7.2",
        ),
        "# OSU MPI Non-blocking Broadcast Latency Test v6.1": ("ibcast", "mpi", "6.1"),
        "# OSU OpenSHMEM Put Test v5.9": ("put", "openshmem", "5.9"),
    }
    for title, (test, variant, version) in titles.items():
        run = first(title + OSU_BW[OSU_BW.index("\n") :])
        assert (run.parameters["test"], run.variant, run.version) == (test, variant, version)
        assert run.status == "ok" and run.parameters["receive_buffer"] == "HOST"
    late = first("# Number of Sender threads: 1 \n# Number of Receiver threads: 2\n" + OSU_LATENCY)
    assert late.parameters["receiver_threads"] == 2 and late.line == 1 and late.status == "ok"


def test_osu_startup_tests() -> None:
    init = first("# OSU MPI Init Test v5.6.3\nnprocs: 4, min: 12 ms, max: 15 ms, avg: 13 ms\n")
    mean = init.metric("avg_time")
    assert init.status == "ok" and mean is not None and mean.normalised is not None
    assert mean.normalised.value == 0.013
    hello = first("# OSU MPI Hello World Test v5.6.3\nThis is a test with 4 processes\n")
    assert hello.status == "no-result" and hello.parameters["nprocs"] == 4


def test_osu_table_without_a_title_and_columns_of_validation_and_tails() -> None:
    run = first(OSU_BW[OSU_BW.index("# Size") :])
    assert run.status == "ok" and "lost the title" in run.warnings[0]
    text = "# OSU MPI Latency Test v7.4\n# Datatype: MPI_CHAR.\n" + table(
        "# Size       Avg Latency(us)        Validation P50 Tail Lat(us)",
        [(1, "1.50", "Pass", "1.40"), (2, "1.60", "Fail", "1.40")],
    )
    run = first(text)
    assert run.status == "invalid" and "size 2: validation failed" in run.reason
    assert [m.name for m in run.metrics[:2]] == ["avg_latency", "p50_tail_lat"]
    assert run.parameters["datatype"] == "MPI_CHAR"


def test_osu_first_test_crashes_and_the_second_is_fine() -> None:
    crash = (
        OSU_IALLREDUCE[: OSU_IALLREDUCE.index("\n4 ")]
        + "\n[n1:99] *** Process received signal ***\n"
    )
    one, two = scan(crash + OSU_LATENCY)
    assert (one.status, two.status) == ("failed", "ok") and "signal" in one.reason


def test_osu_ranks_with_labels_are_kept_apart() -> None:
    lines = OSU_LATENCY.splitlines()
    runs = scan("".join(f"{rank}: {line}\n" for line in lines for rank in range(4)))
    assert [r.status for r in runs] == ["ok"] * 4
    assert {len(r.metrics) for r in runs} == {len(first(OSU_LATENCY).metrics)}
    other = "".join(f"0: {line}\n" for line in lines[:8]) + "3: Killed\n"
    assert first(other).status == "failed"


def test_a_printed_zero_is_kept_but_is_no_rate() -> None:
    run = first(OSU_BW.replace("1.80", "0.00"))
    assert run.status == "ok" and run.metrics[0].printed == "0.00"
    assert run.metrics[0].normalised is None and run.metrics[1].normalised is not None


def test_imb_groups_time_outs_and_several_process_counts() -> None:
    multi = (
        "# Benchmarking Multi-Exchange \n# ( 2 groups of 4 processes each running simultaneous ) \n"
        "# Group  0:     0    1    2    3\n"
        "        Group       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec\n"
        + imb_rows(
            [
                (0, 1024, 100, "2.00", "2.00", "2.00", "2048.00"),
                (1, 1024, 100, "4.00", "4.00", "4.00", "1024.00"),
            ]
        )
        + imb_rows([(0, 2048, 100, "4.00", "4.00", "4.00", "2048.00")])
        + "           0         4096 time-out.; Time limit (secs_per_sample * msg_sizes_list_len) is over\n"
        + IMB_END
    )
    run = first(IMB_HEAD.replace("Barrier\n\n", "Exchange\n\n") + multi)
    assert run.parameters["test"] == "Multi-Exchange" and run.parameters["groups"] == 2
    assert run.status == "ok" and "time-out" in run.warnings[0], (run.reason, run.warnings)
    assert {m.phase for m in run.metrics} == {"group 0", "group 1"}
    eight = IMB_ALLREDUCE.replace("#processes = 4", "#processes = 8")
    runs = scan(IMB_HEAD + IMB_ALLREDUCE + eight + IMB_END)
    assert [r.parameters["processes"] for r in runs] == [4, 8]


def test_imb_tells_decimal_from_binary_megabytes() -> None:
    def binary(found: re.Match[str]) -> str:
        return f"{found[1]}{float(found[2]) * 1e6 / 2**20:>{len(found[2])}.2f}\n"

    run = first(
        IMB_HEAD + re.sub(r"(?m)^(\s+[1-9]\d* .*?)( *[\d.]+)\n", binary, IMB_PINGPONG) + IMB_END
    )
    best = run.metrics[-2]
    assert run.status == "ok" and best.unit == "MiB/s", run.reason
    wrong = re.sub(r"(?m)^( +65536 .* )\S+$", r"\g<1>9999.99", IMB_PINGPONG)
    assert "9999.99 Mbytes/sec, but" in first(IMB_HEAD + wrong + IMB_END).reason


def test_imb_overlap_message_rate_and_io() -> None:
    nbc = (
        "# Benchmarking Iallreduce \n# #processes = 2 \n"
        "       #bytes #repetitions t_ovrl[usec] t_pure[usec]  t_CPU[usec]   overlap[%]\n"
        + imb_rows([(4, 100, "15.00", "10.00", "10.00", "50.00")])
        + IMB_END
    )
    run = first(nbc)
    assert run.status == "ok" and run.metric("overlap") is not None
    assert "overlap, but" in first(nbc.replace("50.00", "90.00")).reason
    io_ = (
        "#    Intel (R) MPI Benchmarks 2018, MPI-IO part\n# Benchmarking S_Write_indv \n# #processes = 1 \n"
        "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec\n"
        + imb_rows([(1048576, 10, "500.00", "500.00", "500.00", "2097.15")])
        + IMB_END
    )
    rate = first(io_).metric("bandwidth")
    assert (
        rate is not None
        and rate.normalised is not None
        and rate.normalised.name == "storage_bandwidth"
    )
    uni = (
        "# Benchmarking Uniband \n# #processes = 2 \n       #bytes #repetitions   Mbytes/sec      Msg/sec\n"
        + imb_rows([(0, 1000, "0.00", "2189915"), (1, 1000, "2.19", "2189915")])
        + IMB_END
    )
    assert first(uni).metric("message_rate") is not None and first(uni).status == "ok"


def test_a_heading_that_looks_like_imb_is_not_taken() -> None:
    assert first("# Benchmarking Results\n1 2 3\n").benchmark == "unknown"


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
        r"(?m)^( +\d+ .*?       0)(.*?       0)$",
        r"\1 1.0 2.0 1.9 3.0\2 1.0 2.0 1.9 3.0 2026-01-31 12:00:00",
        more,
    )
    run = first(more.replace("i_cv%\n", "i_cv%           timestamp\n"))
    assert run.status == "ok" and run.metric("i_cv%") is not None, run.reason


def test_nccl_programs_without_mpi_print_at_once() -> None:
    head = NCCL[: NCCL.index("#  Rank")]
    ranks = "".join(
        f"#  Rank  0 Group  0 Pid {90 + i:6d} on      node1 device  0 [0000:03:00] NVIDIA X\n"
        for i in range(4)
    )
    fails = "".join(
        f"n1: Test NCCL failure x.cu:7 'y'\n .. n1 pid {i}: Test failure x.cu:9\n"
        for i in (91, 92, 93)
    )
    rest = nccl(n=1)
    runs = scan(head * 4 + ranks + fails + rest[rest.index("#\n#     ") :])
    assert [r.status for r in runs] == ["invalid", "failed", "failed", "failed"]


def test_nccl_several_types_are_told_apart_by_phase() -> None:
    rows = NCCL[NCCL.index("     1048576") : NCCL.index("# Out of")]
    run = first(NCCL.replace(rows, rows + rows.replace("  float", "double ")))
    phases = {m.phase for m in run.metrics if m.name == "busbw"}
    assert phases == {
        f"{w}-place {t} sum -1" for w in ("in", "out-of") for t in ("float", "double")
    }


def test_graph500_old_keys_both_kernels_and_several_runs() -> None:
    old = GRAPH500.replace("bfs  ", "").replace("!  ", "")
    runs = scan(GRAPH500 + old)
    assert [(r.variant, r.status) for r in runs] == [("bfs", "ok")] * 2
    both = GRAPH500 + "".join(
        line.replace("bfs ", "sssp") + "\n"
        for line in GRAPH500.splitlines()
        if line.startswith("bfs")
    )
    (run,) = scan("graph_generation: 1.2 s\nconstruction_time: 0.5 s\nRunning BFS 0\n" + both)
    assert run.variant == "bfs-sssp" and run.status == "ok", run.reason
    assert run.metric("harmonic_mean_TEPS", "sssp") is not None
    spec = "SCALE: 20\nnvtx: 1048576\nnbfs: 64\nbfs_harmonic_mean_TEPS: 6.25000000000000000e+08\n"
    assert first(spec).metric("harmonic_mean_TEPS") is not None and first(spec).status == "ok"


def test_npb_titles_and_counts_of_operations() -> None:
    for title, variant, version in (
        ("NAS Parallel Benchmarks 3.3 -- MG Benchmark", "mpi", "3.4.2"),
        ("NAS Parallel Benchmarks (NPB3.3-SER-C) - MG Benchmark", "ser-c", "3.4.2"),
        (
            "NAS Parallel Benchmarks (NPB3.4-MZ MPI+OpenMP) - BT-MZ Benchmark",
            "mz-mpi-openmp",
            "3.4.2",
        ),
        ("NAS Parallel Benchmarks 4.1 CUDA C++ version - MG Benchmark", "cuda-c-version", "3.4.2"),
    ):
        run = first(NPB.replace("NAS Parallel Benchmarks (NPB3.4-MPI) - MG Benchmark", title))
        assert (run.variant, run.version, run.status) == (variant, version, "ok"), title
    # Class A: the tables of the NPB reports.
    assert npb_mop("EP", "A", "536870912", "0") == pytest.approx(536.87, rel=1e-3)
    assert npb_mop("FT", "A", "256x 256x 128", "6") == pytest.approx(7130, rel=0.01)
    assert npb_mop("BT", "A", "64x  64x  64", "200") == pytest.approx(168300, rel=0.01)
    assert npb_mop("LU", "A", "64x  64x  64", "250") == pytest.approx(119280, rel=0.01)
    assert npb_mop("SP", "A", "64x  64x  64", "400") == pytest.approx(85000, rel=0.01)
    assert npb_mop("CG", "A", "14000", "15") == pytest.approx(1496, rel=0.01)
    assert npb_mop("UA", "A", "x", "15") is None and npb_mop("BT", "A", "64", "x") is None


def test_npb_time_below_its_digits_and_results_without_a_title() -> None:
    assert (
        first(
            NPB.replace("0.80", "0.00").replace("4865.39", "999999").replace("1216.35", "249999")
        ).status
        == "ok"
    )
    run = first(NPB[NPB.index(" MG Benchmark Completed") :])
    assert (run.status, run.variant, run.parameters["class"]) == ("ok", "mpi", "A")
    assert [r.status for r in scan(NPB + NPB[: NPB.index("VERIF")] + NPB)] == [
        "ok",
        "truncated",
        "ok",
    ]


def test_several_benchmarks_in_one_file() -> None:
    runs = scan(NPB + OSU_BW + GRAPH500 + IMB + NCCL + OSU_LATENCY)
    assert [r.benchmark for r in runs] == [
        "npb",
        "osu",
        "graph500",
        *["imb"] * 3,
        "nccl-tests",
        "osu",
    ]
    assert {r.status for r in runs} == {"ok"}


@pytest.mark.parametrize("name", LOGS)
def test_patterns_are_specific(name: str) -> None:
    parser = PARSERS.get(name)
    for pattern in (*parser.starts, *(parser.wants or ())):
        assert re.compile(pattern).groups == 0 and not re.compile(pattern).match("")
    for other, text in LOGS.items():
        if other != name:
            assert name not in {r.benchmark for r in scan(text)}


NCCL_ROWS = NCCL[NCCL.index("     1048576") : NCCL.index("# Out of")]
FLOODS = {
    "osu": "# OSU MPI Latency Test v5.9\n# Size          Latency (us)\n" + "1 1.00\n2 1.10\n" * 40,
    "imb": "# Benchmarking PingPong\n       #bytes #repetitions      t[usec]   Mbytes/sec\n"
    + "1 2 3 4\n" * 80,
    "nccl-tests": "# Collective test starting: x_perf\n" * 40 + NCCL_ROWS,
    "graph500": "SCALE: 9\nRunning BFS 0\n" * 40,
    "npb": " MG Benchmark Completed.\n Class           =    A\n" * 40,
}


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_of_broken_output_is_streamed(name: str) -> None:
    for run in SCANNER.scan(io.BytesIO(FLOODS[name].encode() * 100), "log"):
        assert run.benchmark == name and "fault of the parser" not in run.reason
        assert len(run.metrics) < 20_000 and len(run.warnings) < 20


def test_labels_of_a_million_ranks_do_not_stay_open() -> None:
    noise = "".join(f"{i}: 12 3.5\n" for i in range(20_000))
    for name, log in (("osu", OSU_LATENCY), ("imb", IMB), ("nccl-tests", NCCL)):
        runs = [r for r in scan(log + noise) if r.benchmark == name]
        assert results(runs) == results(scan(log))


def test_a_table_of_a_million_rows_keeps_few() -> None:
    text = OSU_LATENCY + "".join(f"{s:<10}{'1.50':>18}\n" for s in range(5_000_000, 5_100_000))
    (run,) = scan(text)
    assert len(run.metrics) < 5000 and "not kept" in " ".join(run.warnings)


TOKENS = st.sampled_from(
    [w for t in LOGS.values() for w in re.findall(r"\S+|\n", t)]
    + [
        "\n",
        "\r",
        "\0",
        "9" * 400,
        "1e999",
        "-nan",
        "1e-9999",
        "é",
        "0: ",
        "², ½",
        "١٢",
        "-1 -1 -1",
    ]
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    text = LOGS[draw(st.sampled_from(sorted(LOGS)))]
    lines = text.splitlines(keepends=True)
    rng = random.Random(draw(st.integers(0, 2**32)))
    for _ in range(draw(st.integers(0, 6))):
        i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
        match rng.randrange(4):
            case 0:
                del lines[min(i, j) : min(i, j) + rng.randrange(1, 5)]
            case 1:
                lines.insert(i, lines[j])
            case 2:
                lines[i], lines[j] = lines[j], lines[i]
            case 3:
                lines[i] = lines[i][: rng.randrange(len(lines[i]) + 1)]
        if not lines:
            lines = ["\n"]
    raw = bytearray("".join(lines).encode())
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(raw)))
        raw[start : start + draw(st.integers(0, 30))] = draw(
            st.one_of(st.binary(max_size=15), TOKENS.map(str.encode))
        )
    return bytes(raw)


FORCED = {name: Scanner(name) for name in LOGS}


@settings(deadline=None, max_examples=200)
@given(
    st.one_of(mutated(), st.lists(TOKENS, max_size=60).map(lambda ws: " ".join(ws).encode())),
    st.sampled_from([None, *LOGS]),
)
def test_no_input_breaks_a_parser(raw: bytes, benchmark: str | None) -> None:
    for run in scan(raw, SCANNER if benchmark is None else FORCED[benchmark]):
        assert Run.model_validate_json(run.model_dump_json()) == run
