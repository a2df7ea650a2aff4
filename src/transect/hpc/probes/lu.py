"""Dense linear equations by LU over ranks: what the cores' arithmetic allows a whole solver.

A probe of transect, not HPL: its problem, its count of operations and its check of the residual, in another program. Started on
any number of ranks: `mpiexec -n 2 python -m mpi4py -m transect.hpc.probes.lu`. Rank 0 prints. How the matrix is dealt
out, and what bounds that, stands in `_lu_solver`.

The order of the matrix is given, or as large as its share of the memory of all nodes and the time allow; the time is
estimated from two small runs.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from transect.hpc.probes.common import head, require_world, say, say_result, say_samples, tail
from transect.hpc.probes.matrix_multiply import THREAD_VARIABLES, blas_threads

if TYPE_CHECKING:
    from transect.hpc.probes._lu_blas import Blas

THRESHOLD = 16.0  # HPL's
COUNTING = "operations per run = 2/3 n^3 + 3/2 n^2, by HPL's rule, n the order; time: the slowest rank's, factoring and solving"
_NOTE = "a transect probe, not HPL: its problem and its count in another program; name it so when you compare"
_TRIAL = 1024  # order of the small runs on one rank, as many numbers a rank on more
_GEMM = 2048  # order of the products that are the bound


def order_for(rate: float, seconds: float, memory: int, nb: int) -> int:
    """Return the order whose operations take the seconds at that rate, in 1/s, and whose matrix fits into the memory.

    A multiple of four blocks where it can be, so that repeats have the same.

    >>> order_for(1e11, 6.0, 1 << 40, 256), order_for(1e11, 6.0, 1 << 27, 256)
    (9216, 4096)
    """
    most = min((1.5 * rate * seconds) ** (1 / 3), math.sqrt(memory / 8))
    step = 4 * nb if most >= 4 * nb else nb
    return int(max(nb, math.floor(most) // step * step))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; rank 0 returns 1 when a residual is too large or the ranks are not those of the cell."""
    parser = argparse.ArgumentParser(prog="transect.hpc.probes.lu", description=__doc__)
    parser.add_argument("--ranks", type=int, help="how many ranks the cell has")
    parser.add_argument("--nodes", type=int, default=1, help="nodes whose memory the matrix may take")
    parser.add_argument("--threads", type=int, default=1, help="BLAS threads of a rank")
    parser.add_argument("--order", type=int, default=0, help="order of the matrix; 0: by the memory and the time")
    parser.add_argument("--memory-fraction", type=float, default=0.2, help="of the memory of all nodes")
    parser.add_argument("--seconds", type=float, default=18.0, help="budget of all runs, where no order is given")
    parser.add_argument("--block", type=int, default=256, help="columns of a block")
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args(arguments)
    if min(given.nodes, given.threads, given.block, given.runs) < 1 or given.order < 0:
        parser.error("--nodes, --threads, --block and --runs must be at least 1, --order at least 0")
    if given.seconds <= 0 or not 0 < given.memory_fraction < 1:
        parser.error("--seconds must be more than 0, --memory-fraction between 0 and 1")
    for name in THREAD_VARIABLES:
        os.environ.setdefault(name, str(given.threads))
    import mpi4py
    import numpy as np
    from mpi4py import MPI

    from transect.hpc.probes._lu_blas import Blas

    world = MPI.COMM_WORLD
    if world.rank == 0:
        head("lu", _NOTE, np.__version__)
        say("mpi", f"{MPI.Get_library_version().split(',')[0].strip()}, mpi4py {mpi4py.__version__}")
        say("ranks", world.size)
    if problems := require_world(world.size, given.ranks):
        return 0 if world.rank else tail("lu", problems)
    blas = Blas()
    library = blas_threads(given.threads)
    order = given.order or _order(world, blas, given)
    bound = _bound(world, blas)
    times, residuals = _runs(world, blas, order, given)
    if world.rank:
        return 0  # rank 0 alone tells: a launcher may end all ranks at the first failure
    return _report(order, bound, times, residuals, library, given)


def _runs(world: Any, blas: Blas, order: int, given: argparse.Namespace) -> tuple[list[float], list[float]]:
    from transect.hpc.probes._lu_solver import Solver

    solver = Solver(world, blas, order, min(given.block, order))
    times, residuals = [], []
    for _ in range(given.runs):
        solver.fill()
        x, seconds = solver.solve()
        times.append(seconds)
        residuals.append(solver.residual(x))
    return times, residuals


def _order(world: Any, blas: Blas, given: argparse.Namespace) -> int:
    """Return the order that the memory and the time allow, the same on all ranks."""
    from transect.hpc.probes._lu_solver import Solver, operations
    from transect.measure.memory import node_memory

    least = _TRIAL * math.isqrt(world.size)
    trial = Solver(world, blas, least, min(given.block, least))
    rates = []
    for _ in range(2):  # the first makes connections and starts threads
        trial.fill()
        rates.append(operations(least) / trial.solve()[1])
    memory = min(world.allgather(node_memory()))
    share = int(memory * given.nodes * given.memory_fraction)
    return int(world.bcast(order_for(max(rates), given.seconds / given.runs, share, given.block)))


def _bound(world: Any, blas: Blas) -> float:
    """Return operations per second of products that fit, on all ranks at once: no solver of this library is faster."""
    import numpy as np

    a, b, c = (np.ones((_GEMM, _GEMM), order="F") for _ in range(3))
    best = math.inf
    for _ in range(3):
        world.Barrier()
        begin = time.perf_counter()
        blas.subtract_product(c, a, b)
        best = min(best, time.perf_counter() - begin)
    return float(world.allreduce(2.0 * _GEMM**3 / best))


def _report(
    order: int, bound: float, times: list[float], residuals: list[float], library: str, given: argparse.Namespace
) -> int:
    from transect.hpc.probes._lu_solver import operations

    for key, value in (
        ("threads", given.threads),
        ("blas", library),
        ("order", order),
        ("block", min(given.block, order)),
        ("memory_fraction", given.memory_fraction),
        ("chosen_by", "the order that was given" if given.order else "the memory and the time"),
        ("counting", COUNTING),
        ("bound", f"products of order {_GEMM} on all ranks at once: {bound:.4e} FLOP/s"),
        ("share_of_bound", f"{operations(order) / min(times) / bound:.3f}"),
        ("residual", f"{max(residuals):.6e}"),
    ):
        say(key, value)
    problems = []
    for run, residual in enumerate(residuals):
        right = residual < THRESHOLD
        print(f"verify run-{run} scaled residual {residual:.3e} below {THRESHOLD} {'passed' if right else 'FAILED'}")
        problems += [] if right else [f"run {run} has a residual of {residual:.3e}, expected one below {THRESHOLD}"]
    say_samples("lu", times)
    say_result("lu", times, "FLOP/s", operations(order))
    return tail("lu", problems)


if __name__ == "__main__":
    raise SystemExit(main())
