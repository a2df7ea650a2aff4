"""OSU, IMB, Graph500 and NPB: what their logs state, and what each says of its end."""

from __future__ import annotations

import re

import pytest
from log_scan import scan
from network_logs import (
    GRAPH500,
    IMB_ALLREDUCE,
    IMB_END,
    IMB_HEAD,
    IMB_PINGPONG,
    NCCL,
    NPB,
    OSU_BW,
    OSU_IALLREDUCE,
    OSU_LATENCY,
    first,
    imb_p2p,
    imb_rows,
    table,
)

from transect.hpc.parsers.npb import npb_mop


def test_osu_tests_variants_versions_and_comments() -> None:
    titles = {
        "# OSU MPI-ROCM Bi-Directional Bandwidth Test v7.1": ("bibw", "mpi-rocm", "7.1"),
        "# OSU MPI Multi Latency Test v5.3.2": ("multi_lat", "mpi", "5.3.2"),
        "# OSU MPI Bandwidth Test (Version 2.3)": ("bw", "mpi", "2.3"),
        "# OSU NCCL-CUDA Allreduce Latency Test v7.5": ("allreduce", "nccl-cuda", "7.5"),
        "# OMB Python MPI Latency Test": ("latency", "python-mpi", ""),
        "# OSU MPI_Put-CUDA Latency Test v5.8": ("put_latency", "mpi-cuda", "5.8"),
        "# OSU MPI_Accumulate latency Test v5.6.3": ("acc_latency", "mpi", "5.6.3"),
        "# OSU MPI All-to-Allv Personalized Exchange Latency Test v7.2": ("alltoallv", "mpi", "7.2"),
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
    crash = OSU_IALLREDUCE[: OSU_IALLREDUCE.index("\n4 ")] + "\n[n1:99] *** Process received signal ***\n"
    crashed, two = scan(crash + OSU_LATENCY)
    assert (crashed.status, two.status) == ("failed", "ok") and "signal" in crashed.reason


def test_osu_ranks_with_labels_are_kept_apart() -> None:
    lines = OSU_LATENCY.splitlines()
    runs = scan("".join(f"{rank}: {line}\n" for line in lines for rank in range(4)))
    assert [r.status for r in runs] == ["ok"] * 4
    assert {len(r.metrics) for r in runs} == {len(first(OSU_LATENCY).metrics)}
    killed = "".join(f"0: {line}\n" for line in lines[:8]) + "3: Killed\n"
    assert first(killed).status == "failed"


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
            [(0, 1024, 100, "2.00", "2.00", "2.00", "2048.00"), (1, 1024, 100, "4.00", "4.00", "4.00", "1024.00")]
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

    run = first(IMB_HEAD + re.sub(r"(?m)^(\s+[1-9]\d* .*?)( *[\d.]+)\n", binary, IMB_PINGPONG) + IMB_END)
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
    assert rate is not None and rate.normalised is not None and rate.normalised.name == "storage_bandwidth"
    uni = (
        "# Benchmarking Uniband \n# #processes = 2 \n       #bytes #repetitions   Mbytes/sec      Msg/sec\n"
        + imb_rows([(0, 1000, "0.00", "2189915"), (1, 1000, "2.19", "2189915")])
        + IMB_END
    )
    assert first(uni).metric("message_rate") is not None and first(uni).status == "ok"


def test_a_heading_that_looks_like_imb_is_not_taken() -> None:
    assert first("# Benchmarking Results\n1 2 3\n").benchmark == "unknown"


@pytest.mark.parametrize("processes", [2, 4, 6, 64])
def test_imb_p2p_rates_are_those_of_all_pairs(processes: int) -> None:
    rows = [(0, 1.5), (1, 1.51), (4096, 20.25), (4194304, 741.5)]
    run = first(imb_p2p(rows, processes))
    assert (run.status, run.parameters["processes"]) == ("ok", processes)
    bandwidth = next(m for m in run.metrics if m.name == "bandwidth" and m.size == 4096)
    assert bandwidth.unit == "MB/s"
    # A pair more than there are, and a bandwidth that is not that of its messages.
    fast = imb_p2p(rows, processes, slowest=0.98 * processes / (processes + 2))
    assert "processes that take 1.50 us" in first(fast).reason
    halved = re.sub(r"(?m)^( +4096 .* )(\S+)( +\S+)$", r"\g<1>9.99\g<3>", imb_p2p(rows, processes))
    assert "but its messages are" in first(halved).reason


def test_imb_p2p_is_whole_at_the_lengths_that_its_command_line_names() -> None:
    text = imb_p2p([(1, 1.5), (65536, 40.25)])
    assert first(text).status == "truncated"
    assert first("$ mpirun -np 4 ./IMB-P2P -msglen list PingPong\n" + text).status == "ok"
    assert first("$ mpirun -np 4 ./IMB-P2P PingPong\n" + text).status == "truncated"


@pytest.mark.parametrize("old", [False, True])
def test_graph500_without_validation_is_a_result_and_says_so(old: bool) -> None:
    skipped = re.sub(r"((?:min|max|mean|median|\w+quartile)_validate:\s*)\S+", r"\g<1>-1", GRAPH500)
    skipped = re.sub(r"(stddev_validate:\s*)\S+", r"\g<1>0", skipped)
    assert skipped != GRAPH500
    (run,) = scan(skipped.replace("bfs  ", "") if old else skipped)
    assert (run.status, [s.split(":")[0] for s in run.suspicions]) == ("ok", ["validation was skipped"])
    assert not [m for m in run.metrics if "validate" in m.name]
    # -1 for some of them is no way to skip it.
    (mixed,) = scan(re.sub(r"(min_validate:\s*)", r"\1-", GRAPH500))
    assert mixed.status == "invalid"


def test_graph500_old_keys_both_kernels_and_several_runs() -> None:
    old = GRAPH500.replace("bfs  ", "").replace("!  ", "")
    runs = scan(GRAPH500 + old)
    assert [(r.variant, r.status) for r in runs] == [("bfs", "ok")] * 2
    both = GRAPH500 + "".join(
        line.replace("bfs ", "sssp") + "\n" for line in GRAPH500.splitlines() if line.startswith("bfs")
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
        ("NAS Parallel Benchmarks (NPB3.4-MZ MPI+OpenMP) - BT-MZ Benchmark", "mz-mpi-openmp", "3.4.2"),
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
    assert first(NPB.replace("0.80", "0.00").replace("4865.39", "999999").replace("1216.35", "249999")).status == "ok"
    run = first(NPB[NPB.index(" MG Benchmark Completed") :])
    assert (run.status, run.variant, run.parameters["class"]) == ("ok", "mpi", "A")
    assert [r.status for r in scan(NPB + NPB[: NPB.index("VERIF")] + NPB)] == ["ok", "truncated", "ok"]


def test_rows_of_two_programs_in_one_table_are_doubted() -> None:
    for whole, benchmark in ((IMB_HEAD + IMB_ALLREDUCE + IMB_END, "imb"), (NCCL, "nccl-tests")):
        assert not first(whole).suspicions
        runs = scan("".join(line * 2 for line in whole.splitlines(keepends=True)))
        valid = [run for run in runs if run.status == "ok"]
        assert valid and {run.benchmark for run in valid} == {benchmark}
        assert all("two programs" in run.suspicions[0] for run in valid)
