"""Matrix multiplication as numpy's BLAS reaches it, in double and single precision.

A probe of transect, not HPL. Run with `python -m transect.hpc.probes.matrix_multiply`. The number
of BLAS threads comes from the environment, set before numpy is imported, and from threadpoolctl
where that is installed.
"""

from __future__ import annotations

import argparse
import importlib
import os
import time
from collections.abc import Sequence
from typing import Any

from transect.hpc.probes.common import available_memory, head, say, say_result, say_samples, tail

SIZES = (256, 512, 1024, 2048)
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
COUNTING = "operations per run = 2 n^3 (n^3 multiplications and n^3 additions)"
_NOTE = "a transect probe, not HPL: numpy.matmul of square matrices; do not compare with HPL results"
_SEED = 20260101
_VECTORS = 4


def freivalds(np: Any, a: Any, b: Any, product: Any, rng: Any) -> tuple[float, float]:
    """Test `product` = `a` @ `b` with random vectors in O(n^2): return deviation and tolerance.

    Freivalds, "Probabilistic machines can use less running time", IFIP 1977: a wrong product passes
    one vector of signs with probability at most 1/2; here rounding sets a tolerance. The deviation
    is the largest entry of |P x - A (B x)| over that of |A| (|B| 1), computed in double precision,
    and the tolerance n eps of the product's precision.
    """
    n = a.shape[0]
    x = rng.choice(np.array([-1.0, 1.0]), size=(n, _VECTORS))
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    difference = np.abs(product.astype(np.float64) @ x - wide_a @ (wide_b @ x)).max()
    scale = (np.abs(wide_a) @ (np.abs(wide_b) @ np.ones(n))).max()
    return float(difference / scale), float(n * np.finfo(product.dtype).eps)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns 0, or 1 when a product is wrong."""
    parser = argparse.ArgumentParser(prog="transect.hpc.probes.matrix_multiply", description=__doc__)
    parser.add_argument("--threads", type=int, default=1, help="BLAS threads")
    parser.add_argument("--seconds", type=float, default=5.0, help="budget over all sizes and precisions")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="orders of the matrices")
    parser.add_argument("--min-runs", type=int, default=3, help="runs per size, whatever the budget")
    given = parser.parse_args(arguments)
    if given.threads < 1 or given.min_runs < 1 or min(given.sizes) < 1:
        parser.error("--threads, --min-runs and --sizes must be at least 1")
    threads = {name: os.environ.setdefault(name, str(given.threads)) for name in THREAD_VARIABLES}
    import numpy as np

    head("matrix-multiply", _NOTE, np.__version__)
    say("threads", given.threads)
    for name, value in threads.items():
        if value != str(given.threads):
            say("warning", f"{name}={value} was set, but {given.threads} threads were asked for")
    say("blas", blas_threads(given.threads))
    say("counting", COUNTING)
    sizes = [n for n in given.sizes if 6 * 8 * n * n < available_memory()]
    for n in sorted(set(given.sizes) - set(sizes)):
        say("warning", f"size {n} is left out: not enough memory")
    cases = [(kind, n) for kind in ("float64", "float32") for n in sizes]
    problems = []
    for kind, n in cases:
        problems += _case(np, kind, n, given.seconds / len(cases), given.min_runs)
    return tail("matrix-multiply", problems if cases else ["no size fits into memory"])


def _case(np: Any, kind: str, n: int, seconds: float, min_runs: int) -> list[str]:
    rng = np.random.default_rng([_SEED, n])
    a, b = (rng.standard_normal((n, n)).astype(kind) for _ in range(2))
    out = np.empty((n, n), dtype=kind)
    label = f"{'dgemm' if kind == 'float64' else 'sgemm'}-{n}"
    np.matmul(a, b, out=out)  # warm-up
    samples: list[float] = []
    began = time.monotonic()
    while len(samples) < min_runs or (time.monotonic() - began < seconds and len(samples) < 1000):
        out.fill(0)
        start = time.perf_counter()
        np.matmul(a, b, out=out)
        samples.append(time.perf_counter() - start)
    deviation, tolerance = freivalds(np, a, b, out, rng)
    passed = deviation <= tolerance
    say_samples(label, samples)
    say_result(label, samples, "FLOP/s", 2.0 * n**3)
    verdict = "passed" if passed else "FAILED"
    print(f"verify {label} deviation {deviation:.3e} tolerance {tolerance:.3e} {verdict}", flush=True)
    return [] if passed else [f"{label} is wrong"]


def blas_threads(threads: int) -> str:
    """Name the BLAS and set its threads where threadpoolctl can; say so where it cannot."""
    try:
        threadpoolctl: Any = importlib.import_module("threadpoolctl")
    except ImportError:
        return "threads set by environment only: threadpoolctl is not installed"
    threadpoolctl.threadpool_limits(threads, user_api="blas")
    pools = [p for p in threadpoolctl.threadpool_info() if p.get("user_api") == "blas"]
    return ", ".join(f"{p['internal_api']} {p['version']} threads {p['num_threads']}" for p in pools) or "none found"


if __name__ == "__main__":
    raise SystemExit(main())
