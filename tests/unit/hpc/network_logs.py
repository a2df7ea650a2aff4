"""Logs of benchmarks of networks as the tests of their parsers need them."""

from __future__ import annotations

import re

from log_scan import made, scan

from transect.hpc.base import Run


def table(header: str, rows: list[tuple[object, ...]], first: int = 10, width: int = 18) -> str:
    """Lay rows out as the programs do: fixed width, to the right."""
    body = "".join(f"{row[0]!s:<{first}}" + "".join(f"{cell!s:>{width}}" for cell in row[1:]) + "\n" for row in rows)
    return header + "\n" + body


SIZES = [2**k for k in range(23)]


OSU_LATENCY = "# OSU MPI Latency Test v5.9\n" + table(
    "# Size          Latency (us)", [(0, "1.21"), *((s, f"{1.2 + s / 9000:.2f}") for s in SIZES)]
)


OSU_BW = "# OSU MPI-CUDA Bandwidth Test v5.9\n# Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)\n" + table(
    "# Size      Bandwidth (MB/s)", [(s, f"{9000 * s / (s + 5000):.2f}") for s in SIZES]
)


OSU_ALLREDUCE = "\n# OSU MPI Allreduce Latency Test v7.3\n# Datatype: MPI_INT.\n" + table(
    "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations",
    [(s, f"{3 + s / 500:.2f}", f"{2 + s / 500:.2f}", f"{4 + s / 500:.2f}", "1000") for s in SIZES[2:21]],
).replace("        1000\n", "  1000\n")


OSU_IALLREDUCE = (
    "# OSU MPI Non-blocking Allreduce Latency Test v7.0\n"
    "# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait\n\n"
    + table(
        "# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)",
        [(s, "15.00", "10.00", "10.00", "50.00") for s in SIZES[2:21]],
    )
)


OSU_MBW_MR = "# OSU MPI Multiple Bandwidth / Message Rate Test v5.6\n# [ pairs: 4 ] [ window size: 64 ]\n" + table(
    "# Size                  MB/s        Messages/s", [(s, f"{7.25 * s:.2f}", "7250000.00") for s in SIZES]
)


OSU_BARRIER = "# OSU MPI Barrier Latency Test v6.1\n# Avg Latency(us)\n             12.34\n"


def imb_rows(rows: list[tuple[object, ...]]) -> str:
    return "".join("".join(f"{cell!s:>13}" for cell in row) + "\n" for row in rows)


IMB_HEAD = made("imb-head")


IMB_PINGPONG = (
    "#---------------------------------------------------\n# Benchmarking PingPong \n"
    "# #processes = 2 \n# ( 2 additional processes waiting in MPI_Barrier)\n"
    "#---------------------------------------------------\n"
    "       #bytes #repetitions      t[usec]   Mbytes/sec\n"
    + imb_rows(
        [(0, 1000, "1.50", "0.00")]
        + [(s, 1000, f"{1.5 + s / 5000:.2f}", f"{s / float(f'{1.5 + s / 5000:.2f}'):.2f}") for s in SIZES[:17]]
    )
    + "\n"
)


IMB_ALLREDUCE = (
    "#----------------------------------------------------------------\n# Benchmarking Allreduce \n"
    "# #processes = 4 \n#----------------------------------------------------------------\n"
    "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
    + imb_rows([(0, 1000, "0.05", "0.06", "0.05")] + [(s, 640, "4.00", "4.20", "4.10") for s in SIZES[2:17]])
    + "\n"
)


def imb_p2p(rows: list[tuple[int, float]], processes: int = 4, slowest: float = 1.004) -> str:
    """PingPong of IMB-P2P: sizes and mean times in microseconds, and the rates of all pairs by the slowest process."""
    text = f"#-----\n# Benchmarking PingPong\n# #processes = {processes}\n#-----\n"
    text += f" {'#bytes':>12} {'#repetitions':>12} {'t[usec]':>12} {'Mbytes/sec':>12} {'Msg/sec':>12}\n"
    for size, time in rows:
        rate = processes / 2 / (time * slowest * 1e-6)
        text += f" {size:>12} {1000:>12} {time:>12.2f} {size * rate / 1e6:>12.2f} {rate:>12.0f}\n"
    return text


IMB_END = "\n\n# All processes entering MPI_Finalize\n\n"


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
# NCCL_DEBUG=INFO: NCCL writes lines of its own while a row is not over.
NCCL_INFO = "node1:64:70 [1] NCCL INFO AllReduce: opCount 3f sendbuff 0x72 count 262144 datatype 7 op 0 root 0\n"
NCCL_ROW = re.compile(r"(?m)^( +\d{7} +\d+ +float +sum +-1)(( +[\d.]+){4})(( +[\d.]+){4})$")
NCCL_PIECES = NCCL_ROW.sub(rf"\1{NCCL_INFO}\2{NCCL_INFO * 2}\4", NCCL)


GRAPH500 = "".join(
    f"{key + ':':<32}{value}\n"
    for key, value in {
        "SCALE": "20",
        "edgefactor": "16",
        "NBFS": "64",
        "graph_generation": "1.25",
        "num_mpi_processes": "8",
        "construction_time": "0.5",
        "bfs  min_time": "0.02",
        "bfs  firstquartile_time": "0.022",
        "bfs  median_time": "0.025",
        "bfs  thirdquartile_time": "0.03",
        "bfs  max_time": "0.04",
        "bfs  mean_time": "0.0256",
        "bfs  stddev_time": "0.003",
        "min_nedge": "16000000",
        "firstquartile_nedge": "16000000",
        "median_nedge": "16000000",
        "thirdquartile_nedge": "16000000",
        "max_nedge": "16000000",
        "mean_nedge": "16000000",
        "stddev_nedge": "0",
        "bfs  min_TEPS": "4e+08",
        "bfs  firstquartile_TEPS": "5.33333e+08",
        "bfs  median_TEPS": "6.4e+08",
        "bfs  thirdquartile_TEPS": "7.27273e+08",
        "bfs  max_TEPS": "8e+08",
        "bfs  harmonic_mean_TEPS": "!  6.25e+08",
        "bfs  harmonic_stddev_TEPS": "1e+07",
        "bfs  min_validate": "0.1",
        "bfs  max_validate": "0.3",
        "bfs  mean_validate": "0.2",
        "bfs  stddev_validate": "0.05",
    }.items()
)


NPB = made("npb")


OSU = OSU_LATENCY + OSU_BW + OSU_ALLREDUCE + OSU_IALLREDUCE + OSU_MBW_MR + OSU_BARRIER


IMB_BARRIER = (
    "#---------------------------------------------------\n# Benchmarking Barrier \n"
    "# #processes = 4 \n#---------------------------------------------------\n"
    " #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n" + imb_rows([(1000, "3.10", "3.30", "3.20")])
)


IMB = IMB_HEAD + IMB_PINGPONG + IMB_ALLREDUCE + IMB_BARRIER + IMB_END


def first(text: str) -> Run:
    return scan(text)[0]
