"""Speed and memory of log ingestion, on generated logs: prints MB/s and peak resident memory.

The last rows are no ingestion but what Python itself takes for the same lines of results: what no parser in it
can be faster than.

Run by hand: `python tests/benchmarks/bench_ingest.py [megabytes]`. Each case runs in a process of
its own, so that its peak memory is its own.
"""

from __future__ import annotations

import multiprocessing
import random
import re
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from transect.domain.metrics import Direction
from transect.hpc.ingest import ingest
from transect.hpc.values import NUMBER, log_metric

HEAD = "HPLinpack 2.3  --  High-Performance Linpack benchmark\nN      :   10000\n"
ROW = (
    "T/V                N    NB     P     Q               Time                 Gflops\n"
    "WR11C2R4       10000   192     1     1              10.00             6.6682e+01\n"
    "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   1.13100920e-03 ...... PASSED\n"
    "End of Tests.\n"
)


def training_lines(rng: random.Random) -> str:
    return "".join(
        f"[{rng.randrange(8)}] step {i} loss {rng.random():.6f} images/sec {rng.random() * 1e4:.1f} lr 0.1\n"
        for i in range(10_000)
    )


def progress_lines(rng: random.Random) -> str:
    return "".join(
        f"Column={i:09d} Fraction={rng.random() * 100:4.1f}% Gflops={rng.random() * 1e4:.3e}\n" for i in range(10_000)
    )


def noisy_lines(rng: random.Random) -> str:
    colours = ("\x1b[0;31m", "\x1b[0m")
    return "".join(
        f"{rng.randrange(64)}: {colours[0]} Prog= {rng.random() * 100:.2f}% N_left= {i} "
        f"GF= {rng.random():.4f} {colours[1]}\r\n"
        for i in range(10_000)
    )


OSU = "# OSU MPI Allreduce Latency Test v7.3\n# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n"
STREAM = """This system uses 8 bytes per array element.
Array size = 10000000 (elements), Offset = 0 (elements)
Function    Best Rate MB/s  Avg time     Min time     Max time
Copy:           20000.0     0.008100     0.008000     0.009000
Scale:          16000.0     0.010100     0.010000     0.011000
Add:            24000.0     0.010100     0.010000     0.011000
Triad:          24000.0     0.010100     0.010000     0.011000
Solution Validates: avg error less than 1.000000e-13 on all three arrays
"""


def osu_tables(rng: random.Random) -> str:
    """Every line is a result with four numbers."""
    row = "{:<10d}{:18.2f}{:18.2f}{:18.2f}{:12d}\n"
    tables = []
    for _ in range(400):
        time = rng.random() + 1
        rows = (row.format(2**k, time * 2**k, time * 2**k - 0.5, time * 2**k + 0.5, 1000) for k in range(20))
        tables.append(OSU + "".join(rows))
    return "".join(tables)


def hpl_results(rng: random.Random) -> str:
    return (HEAD + ROW) * 2000


def stream_tables(rng: random.Random) -> str:
    return STREAM * 1000


CASES: dict[str, tuple[str, Callable[[random.Random], str], str]] = {
    "unknown": ("", training_lines, ""),
    "hpl progress": (HEAD, progress_lines, ROW),
    "ranks, colours, CRLF": (HEAD, noisy_lines, ROW),
    "one line": ("", lambda rng: training_lines(rng).replace("\n", " "), ""),
    "dense: OSU": ("", osu_tables, ""),
    "dense: HPL": ("", hpl_results, ""),
    "dense: STREAM": ("", stream_tables, ""),
}


def measure(name: str, path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    runs = ingest([path])
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = path.stat().st_size / 1e6
    found = ", ".join(f"{run.benchmark} {run.status}" for run in runs[:3])
    # Of the processor, which nobody else's work changes: reading is done by one thread.
    print(
        f"{name:22s} {size:7.0f} MB {size / seconds:8.0f} MB/s  peak {peak / 1024:.0f} MiB "
        f"(before {before / 1024:.0f})  {found}",
        flush=True,
    )


def limits() -> None:
    """Print how fast Python itself goes over lines of results, one more step at a time."""
    raw = osu_tables(random.Random(1)).encode() * 10
    row = re.compile(rf"(\d+)((?:\s+{NUMBER})+)$")

    def metrics() -> None:
        for line in raw.decode().split("\n"):
            for cell in line.split()[1:] if line[:1].isdigit() else ():
                log_metric("latency", cell, "us", Direction.LOWER, registered="collective_time")

    steps: dict[str, Callable[[], object]] = {
        "split into lines": lambda: raw.decode().split("\n"),
        "one pattern on a line": lambda: [row.match(line) for line in raw.decode().split("\n")],
        "cells of a line": lambda: [line.split() for line in raw.decode().split("\n")],
        "a metric of a cell": metrics,
    }
    for name, step in steps.items():
        start = time.process_time()
        step()
        print(f"{name:22s} {len(raw) / 1e6:7.0f} MB {len(raw) / 1e6 / (time.process_time() - start):8.0f} MB/s")


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    context = multiprocessing.get_context("spawn")
    for name, (head, body, tail) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.txt"
            piece = body(random.Random(1))
            with path.open("w", encoding="utf-8", newline="") as stream:
                stream.write(head)
                for _ in range(max(1, megabytes * 1_000_000 // len(piece))):
                    stream.write(piece)
                stream.write(tail)
            process = context.Process(target=measure, args=(name, path))
            process.start()
            process.join()
    limits()


if __name__ == "__main__":
    main()
