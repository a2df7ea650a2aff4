"""Conjugate gradients on a 27-point stencil, preconditioned by four grids: what memory allows sparse solvers.

A probe of transect, not HPCG: its problem, its algorithm and its counts, in another program. Started on any number of
ranks, one thread each: `mpiexec -n 2 python -m mpi4py -m transect.hpc.probes.cg`. Rank 0 prints. Each rank has a box
of points of its own; a smoother takes from other ranks what they had before it began, as HPCG's reference does.

Its bound is the memory: between sets, the product, the smoother and a triad as large as the matrix take turns on all ranks at
once, and the log tells what share of the triad's bytes per second each reaches. A product reads a value and a column
for each two operations, so it cannot be faster than these come. A smoother besides waits for itself: each row needs what
the row before it has just become, an addition, a division and a read of what was just written.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from transect.hpc.probes.common import head, last_level_cache, require_world, say, say_result, say_samples, tail

if TYPE_CHECKING:
    from transect.hpc.probes._cg_grid import Level
    from transect.hpc.probes._cg_solver import Solution

SIDE, LEAST, MULTIPLE = 80, 16, 8
COUNTING = (
    "operations of a set of k iterations, by HPCG's rule: 2 (2 (3k+1) rows + (k+1) entries) of vectors and products, "
    "k (10 entries of each grid + 4 of the coarsest) of the preconditioner; bytes: every array once for each kernel"
)
_NOTE = "a transect probe, not HPCG: its problem and its counts in another program; name it so when you compare"
_ROW = 27 * 12  # bytes of the matrix
_BYTES_PER_ROW = 2 * _ROW * 8 // 7 + 15 * 8  # matrices of all grids, as much for the triad, vectors
_ROUNDS = 7
_AGREE, _ROUNDING = 1e-3, 1e-13
_BEYOND = 4  # times the cache, as for the probe of memory bandwidth


def side_for(memory: int, cache: int, ranks: int) -> int:
    """Return the side of the cube of each of the ranks that share a memory and a cache, in bytes: a multiple of 8.

    80, or as much more as it takes to be beyond the cache; less where that does not fit into the memory.

    >>> side_for(16 << 30, 32 << 20, 2), side_for(16 << 30, 512 << 20, 1), side_for(1 << 30, 32 << 20, 8)
    (80, 192, 48)
    """
    wanted = math.ceil((_BEYOND * cache / ranks / _ROW) ** (1 / 3) / MULTIPLE) * MULTIPLE
    most = math.floor((memory / ranks / _BYTES_PER_ROW) ** (1 / 3)) // MULTIPLE * MULTIPLE
    return int(max(LEAST, min(max(SIDE, wanted), most)))


def residual_bound(points: Sequence[int]) -> float:
    """Return the relative residual that 50 iterations have to reach on a grid of so many points along each axis.

    The iterations needed grow with the length of the domain over the coarsest step: exp(-1430 / n) to exp(-1780 / n) was
    seen on cubes of n = 24 to 120 points, on one to eight ranks, where n^-2 is the mean of the axes'; exp(-890 / n) at the
    slowest on boxes 8 to 64 times as long as wide, such as those of a prime number of ranks. 800 leaves room. Less than
    rounding leaves is not asked for.

    >>> residual_bound([104, 104, 104]) < 1e-3
    True
    """
    return max(_ROUNDING, math.exp(-800 * math.sqrt(sum(n**-2 for n in points) / 3)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; rank 0 returns 1 when a check failed or the ranks are not those of the cell."""
    parser = argparse.ArgumentParser(prog="transect.hpc.probes.cg", description=__doc__)
    parser.add_argument("--ranks", type=int, help="how many ranks the cell has")
    parser.add_argument("--ranks-per-node", type=int, default=1, help="how many share a memory")
    for axis in ("nx", "ny", "nz"):
        parser.add_argument(
            f"--{axis}", type=int, default=0, help="points of a rank, a multiple of 8; 0: by the memory"
        )
    parser.add_argument("--memory-fraction", type=float, default=0.2, help="of a node's memory")
    parser.add_argument("--seconds", type=float, default=10.0, help="budget of all sets; one runs at least")
    given = parser.parse_args(arguments)
    shape = (given.nz, given.ny, given.nx)
    if any(size and (size < LEAST or size % MULTIPLE) for size in shape):
        parser.error(f"--nx, --ny and --nz must be multiples of {MULTIPLE} from {LEAST} on")
    if given.ranks_per_node < 1 or not 0 < given.memory_fraction < 1:
        parser.error("--ranks-per-node must be at least 1, --memory-fraction between 0 and 1")
    import mpi4py
    import numpy
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    if world.rank == 0:
        head("cg", _NOTE, numpy.__version__)
        say("mpi", f"{MPI.Get_library_version().split(',')[0].strip()}, mpi4py {mpi4py.__version__}")
        say("ranks", world.size)
    if problems := require_world(world.size, given.ranks):
        return 0 if world.rank else tail("cg", problems)
    probe = _Probe(world, shape, given.memory_fraction, given.ranks_per_node, MPI)
    problems = probe.check()
    probe.measure(given.seconds)
    problems += probe.tell()
    # A launcher may end all ranks at the first failure: rank 0 alone tells.
    return 0 if world.rank else tail("cg", problems)


class _Probe:
    """The problem on this rank, and what was measured of it."""

    def __init__(self, world: Any, shape: tuple[int, int, int], fraction: float, sharing: int, mpi: Any) -> None:
        from transect.hpc.probes._cg_grid import LEVELS, Level
        from transect.hpc.probes._cg_kernels import Kernels
        from transect.hpc.probes._cg_solver import right_side
        from transect.measure.memory import node_memory

        self.world, self._mpi = world, mpi
        self.cache, self.sharing = last_level_cache(), sharing
        side = side_for(int(node_memory() * fraction), self.cache or 0, sharing)
        side = int(world.allreduce(side, op=mpi.MIN))
        self.shape = (shape[0] or side, shape[1] or side, shape[2] or side)
        z, y, x = mpi.Compute_dims(world.size, 3)
        begin = time.monotonic()
        self.level: Level = Level(Kernels(), world, (z, y, x), self.shape, LEVELS - 1)
        self.dims, self.b = (x, y, z), right_side(self.level)
        self.setup = time.monotonic() - begin
        self._solutions: list[Solution] = []
        self.times: dict[str, list[float]] = {name: [] for name in ("cg", "product", "sweep", "triad")}

    def _slowest(self, work: Callable[[], object]) -> float:
        self.world.Barrier()
        begin = time.perf_counter()
        work()
        return float(self.world.allreduce(time.perf_counter() - begin, op=self._mpi.MAX))

    def _say(self, key: str, value: object) -> None:
        if self.world.rank == 0:
            say(key, value)

    def _verify(self, label: str, what: str, right: bool) -> list[str]:
        if self.world.rank == 0:
            print(f"verify {label} {what} {'passed' if right else 'FAILED'}", flush=True)
        return [] if right else [f"{label}: {what}"]

    def check(self) -> list[str]:
        """Test symmetry and the spectrum before anything is measured; return what is wrong."""
        from transect.hpc.probes._cg_solver import PLAIN, PRECONDITIONED, departures, spectral_steps

        problems = []
        for label, value in zip(("product-symmetry", "preconditioner-symmetry"), departures(self.level), strict=True):
            problems += self._verify(label, f"departure {value:.3e} at most 1", value <= 1)
        for label, steps, most in zip(
            ("plain-iterations", "preconditioned-iterations"),
            spectral_steps(self.level),
            (PLAIN, PRECONDITIONED),
            strict=True,
        ):
            problems += self._verify(label, f"{steps} at most {most}", steps <= most)
        return problems

    def measure(self, seconds: float) -> None:
        """Run sets until the time is used up, with the kernels alone before them."""
        from transect.hpc.probes._cg_solver import ITERATIONS, solve

        self._kernels()
        end = time.monotonic() + seconds
        while True:
            took = self._slowest(lambda: self._solutions.append(solve(self.level, self.b, ITERATIONS)))
            self.times["cg"].append(took)
            if self.world.bcast(time.monotonic() + took > end):
                return

    def _kernels(self) -> None:
        import numpy as np

        matrix, kernels = self.level.matrix, self.level.kernels
        a, b, c = (np.ones(matrix.values.size * 12 // 24) for _ in range(3))
        x, out = self.level.vector(), np.zeros(matrix.rows)
        for turn in range(_ROUNDS + 1):
            for name, work in (
                ("triad", lambda: kernels.triad(a, b, c)),
                ("product", lambda: matrix.multiply(x, out)),
                ("sweep", lambda: matrix.sweep(self.b, x)),
            ):
                took = self._slowest(work)
                if turn:  # the first is warm-up
                    self.times[name].append(took)
        self.triad_bytes = 3 * a.nbytes

    def tell(self) -> list[str]:
        """Print what was measured, on rank 0; return what is wrong with the solutions."""
        from transect.hpc.probes._cg_solver import ITERATIONS, iteration_bytes, operations, true_residual

        levels = self.level.below()
        world, matrix = self.world, self.level.matrix
        entries = [float(world.allreduce(each.matrix.entries)) for each in levels]
        rows = float(world.allreduce(matrix.rows))
        x, residuals = self._solutions[-1].x, [each.residual for each in self._solutions]
        again, last = true_residual(self.level, x, self.b), residuals[-1]
        error = float(world.allreduce(abs(x[: matrix.rows] - 1.0).max(), op=self._mpi.MAX))
        nz, ny, nx = self.shape
        cache = self.cache
        beyond = cache is not None and self.sharing * matrix.rows * _ROW >= _BEYOND * cache
        # Of each turn, since neighbours come and go.
        per_turn = {
            name: statistics.median(
                size / took / (self.triad_bytes / triad)
                for took, triad in zip(self.times[name], self.times["triad"], strict=True)
            )
            for name, size in (("product", matrix.product_bytes), ("sweep", matrix.sweep_bytes))
        }
        moved, best = iteration_bytes(self.level), min(self.times["cg"]) / ITERATIONS
        bound = self.triad_bytes / min(self.times["triad"])
        for key, value in (
            ("nx", nx),
            ("ny", ny),
            ("nz", nz),
            ("process_grid", "{} x {} x {}".format(*self.dims)),
            ("grids", len(levels)),
            ("iterations", ITERATIONS),
            ("rows", int(rows)),
            ("entries", " ".join(str(int(each)) for each in entries)),
            ("cache_bytes", "unknown" if cache is None else cache),
            ("beyond_cache", "yes" if beyond else "no"),
            ("level", "dram" if beyond else "cache or dram: the matrices are not 4 times the last-level cache"),
            ("counting", COUNTING),
            ("kernels", self.level.kernels.name),
            ("setup_s", f"{self.setup:.3f}"),
            ("bytes_per_iteration", moved),
            ("bytes_per_product", matrix.product_bytes),
            ("bytes_per_sweep", matrix.sweep_bytes),
            ("bytes_per_triad", self.triad_bytes),
            ("bound", f"memory: the triad moves {bound:.4e} B/s on each rank"),
            ("product_share", f"{per_turn['product']:.3f}"),
            ("sweep_share", f"{per_turn['sweep']:.3f}"),
            ("cg_share", f"{moved / best / bound:.3f}"),
            ("residual", f"{last:.6e}"),
            ("true_residual", f"{again:.6e}"),
            ("largest_error", f"{error:.3e}"),
        ):
            self._say(key, value)
        most = residual_bound([nodes * points for nodes, points in zip(self.dims, (nx, ny, nz), strict=True)])
        problems = self._verify("residual", f"{last:.3e} after {ITERATIONS} at most {most:.3e}", last <= most)
        agrees = math.isclose(again, last, rel_tol=_AGREE, abs_tol=_ROUNDING)
        problems += self._verify("true-residual", f"{again:.6e} where the recurrence has {last:.6e}", agrees)
        whole = all(each.iterations == ITERATIONS for each in self._solutions)
        alike = whole and math.isclose(max(residuals), min(residuals), rel_tol=1e-6, abs_tol=1e-12)
        problems += self._verify("sets", f"{len(residuals)} of {ITERATIONS} iterations, the same residual", alike)
        if world.rank == 0:
            for name, samples in self.times.items():
                say_samples(name, samples)
                if name != "cg":
                    say_result(name, samples)
            say_result("cg", self.times["cg"], "FLOP/s", operations(ITERATIONS, rows, entries))
        return problems


if __name__ == "__main__":
    raise SystemExit(main())
