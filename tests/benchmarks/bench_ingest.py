"""Speed and memory of log ingestion, on generated logs: prints MB/s and peak resident memory.

Run by hand: `python tests/benchmarks/bench_ingest.py [megabytes]`. Each case runs in a process of
its own, so that its peak memory is its own.
"""

from __future__ import annotations

import multiprocessing
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from transect.hpc.ingest import ingest

HEAD = "HPLinpack 2.3  --  High-Performance Linpack benchmark\nN      :   10000\n"
ROW = (
    "T/V                N    NB     P     Q               Time                 Gflops\n"
    "WR11C2R4       10000   192     1     1              10.00             6.6682e+01\n"
    "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   1.13100920e-03 ...... PASSED\n"
    "End of Tests.\n"
)


def training_lines(rng: random.Random) -> str:
    return "".join(
        f"[{rng.randrange(8)}] step {i} loss {rng.random():.6f} "
        f"images/sec {rng.random() * 1e4:.1f} lr 0.1\n"
        for i in range(10_000)
    )


def progress_lines(rng: random.Random) -> str:
    return "".join(
        f"Column={i:09d} Fraction={rng.random() * 100:4.1f}% Gflops={rng.random() * 1e4:.3e}\n"
        for i in range(10_000)
    )


def noisy_lines(rng: random.Random) -> str:
    colours = ("\x1b[0;31m", "\x1b[0m")
    return "".join(
        f"{rng.randrange(64)}: {colours[0]} Prog= {rng.random() * 100:.2f}% N_left= {i} "
        f"GF= {rng.random():.4f} {colours[1]}\r\n"
        for i in range(10_000)
    )


CASES: dict[str, tuple[str, Callable[[random.Random], str], str]] = {
    "unknown": ("", training_lines, ""),
    "hpl progress": (HEAD, progress_lines, ROW),
    "ranks, colours, CRLF": (HEAD, noisy_lines, ROW),
    "one line": ("", lambda rng: training_lines(rng).replace("\n", " "), ""),
}


def measure(name: str, path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    runs = ingest([path])
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = path.stat().st_size / 1e6
    found = ", ".join(f"{run.benchmark} {run.status}" for run in runs[:3])
    print(
        f"{name:22s} {size:7.0f} MB {size / seconds:8.0f} MB/s  peak {peak / 1024:.0f} MiB "
        f"(before {before / 1024:.0f})  {found}",
        flush=True,
    )


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


if __name__ == "__main__":
    main()
