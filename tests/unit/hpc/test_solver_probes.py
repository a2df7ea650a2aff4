"""The probes of dense and of sparse equations: real ranks under a real MPI, their logs, and what they refuse."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from log_scan import scan
from probe_runs import prefix, start

from cell_jobs import make_job
from factories import bench_cell
from transect.domain.errors import WrongResult, error_facts
from transect.domain.record import Cause, Status
from transect.hpc.benchmarks._probes import Probe
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.hpc.ingest import ingest
from transect.hpc.probes.cg import residual_bound, side_for
from transect.hpc.probes.common import require_world
from transect.hpc.probes.lu import order_for
from transect.stages.bench.run import _ended
from transect.stages.ingest.result import result_of

LU = ["--order", "150", "--block", "32", "--runs", "2"]
CG = ["--nx", "16", "--ny", "16", "--nz", "16", "--seconds", "0"]
GIB = 1 << 30


def smoke(name: str, ranks: int, python: str, folder: Path) -> list[str]:
    """Return the command of a benchmark's run of seconds."""
    benchmark = BENCHMARKS.get(name)
    cell = bench_cell(name, benchmark.smoke, ranks_per_node=ranks)
    assert benchmark.supports(cell) is None
    return benchmark.command(cell, folder, python, prefix(python, ranks))


@pytest.mark.parametrize(("name", "metric"), [("lu-probe", "flops"), ("cg-probe", "sparse_flops")])
def test_two_ranks_measure_and_the_log_becomes_a_rate(name, metric, base_python, probes_python, tmp_path) -> None:
    python = base_python if name == "lu-probe" else probes_python
    done = start(smoke(name, 2, python, tmp_path))
    assert done.returncode == 0, done.stderr
    (tmp_path / "output.log").write_text(done.stdout)
    (run,) = ingest(BENCHMARKS.get(name).logs(tmp_path))
    assert (run.status, run.reason, run.parameters["ranks"]) == ("ok", "", 2)
    metrics = result_of([run], must_have=True).metrics
    assert {m.name for m in metrics} == {metric}
    assert all(math.isfinite(m.value) and m.value > 0 for m in metrics)
    assert {m.log.precision for m in metrics if m.log} == {"fp64"}


# Blocks that do not divide the order, more ranks than blocks, one block that is all.
@pytest.mark.parametrize(
    ("ranks", "order", "block"), [(1, 100, 33), (2, 97, 16), (3, 40, 32), (5, 129, 8), (2, 20, 64)]
)
def test_lu_solves_on_any_ranks_and_blocks(ranks: int, order: int, block: int, base_python: str) -> None:
    program = [base_python, "-m", "mpi4py", "-m", "transect.hpc.probes.lu", "--ranks", str(ranks)]
    done = start([*prefix(base_python, ranks), *program, "--order", str(order), "--block", str(block), "--runs", "1"])
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = scan(done.stdout)
    assert (run.status, run.parameters["order"]) == ("ok", order)


@pytest.mark.parametrize(
    ("ranks", "shape"), [(1, (16, 24, 16)), (3, (16, 16, 24)), (8, (16, 16, 16)), (1, (512, 16, 16))]
)
def test_cg_converges_on_any_ranks(ranks: int, shape: tuple[int, int, int], probes_python: str) -> None:
    sides = [word for axis, side in zip("xyz", shape, strict=True) for word in (f"--n{axis}", str(side))]
    program = [probes_python, "-m", "mpi4py", "-m", "transect.hpc.probes.cg", "--ranks", str(ranks)]
    done = start([*prefix(probes_python, ranks), *program, *sides, "--seconds", "0"])
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = scan(done.stdout)
    assert run.status == "ok"
    # What a box of so many points has: each axis (3 n - 2) neighbours, itself included.
    points = [
        side * int(ways) for side, ways in zip(shape, str(run.parameters["process_grid"]).split(" x "), strict=True)
    ]
    assert int(str(run.parameters["entries"]).split()[0]) == math.prod(3 * n - 2 for n in points)
    assert run.parameters["rows"] == math.prod(points)


MATRIX = """
import numpy as np
from mpi4py import MPI
from transect.hpc.probes._cg_grid import Level
from transect.hpc.probes._cg_kernels import Kernels

shape = (2, 3, 4)
level = Level(Kernels(), MPI.COMM_WORLD, (1, 1, 1), shape, 0)
points = [(z, y, x) for z in range(2) for y in range(3) for x in range(4)]
dense = np.array([[26.0 if a == b else -float(max(abs(i - j) for i, j in zip(a, b)) == 1) for b in points] for a in points])
x, out, r = np.arange(24.0), np.empty(24), np.linspace(-1, 2, 24)
level.multiply(x, out)
np.testing.assert_allclose(out, dense @ x, rtol=1e-14)
ours, theirs = x.copy(), x.copy()
level.smooth(r, ours)
for row in (*range(24), *reversed(range(24))):
    theirs[row] += (r[row] - dense[row] @ theirs) / dense[row, row]
np.testing.assert_allclose(ours, theirs, rtol=1e-12)
"""


def test_product_and_smoother_are_those_of_the_dense_matrix(probes_python: str) -> None:
    done = start([probes_python, "-c", MATRIX])
    assert done.returncode == 0, done.stderr


WRONG_PIVOT = """
import sys
import transect.hpc.probes._lu_solver as solver
from transect.hpc.probes import lu

right = solver.Solver.factor_panel

def wrong(self, panel):
    pivots = right(self, panel)
    if self.comm.rank == 1:
        pivots[0] = (pivots[0] + 1) % len(panel)
    return pivots

solver.Solver.factor_panel = wrong
sys.exit(lu.main(sys.argv[1:]))
"""
# One that does not sweep backwards, and one that takes what is the neighbour's for more than it is.
ONE_WAY = """
import sys
import transect.hpc.probes._cg_kernels as kernels
from transect.hpc.probes import cg

def sweep(self, r, x):
    for row in range(self.rows):
        used = self.count[row]
        x[row] += (r[row] - self.values[row, :used] @ x[self.columns[row, :used]]) / 26.0

kernels.Matrix.sweep = sweep
sys.exit(cg.main(sys.argv[1:]))
"""
TORN = """
import sys
import transect.hpc.probes._cg_grid as grid
from transect.hpc.probes import cg

right = grid.Level.exchange

def both(self, x):
    right(self, x)
    if self.comm.rank == 1:
        x[self.matrix.rows :] *= 1.001

grid.Level.exchange = both
sys.exit(cg.main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("name", "code", "options", "said"),
    [
        ("lu-probe", WRONG_PIVOT, LU, "run 0 has a residual of"),
        ("cg-probe", ONE_WAY, CG, "preconditioner-symmetry: departure"),
        ("cg-probe", TORN, CG, "product-symmetry: departure"),
    ],
)
def test_a_wrong_solver_is_a_wrong_result(name, code, options, said, base_python, probes_python, tmp_path) -> None:
    python = base_python if name == "lu-probe" else probes_python
    done = start([*prefix(python, 2), python, "-c", code, *options])
    assert done.returncode == 1, done.stderr
    (run,) = scan(done.stdout)
    assert run.status == "invalid" and said.split(":")[0] in done.stdout
    job = make_job(tmp_path, bench_cell(name, ranks_per_node=2))
    (job.folder / "output.log").write_text(done.stdout)
    result = _ended(job, BENCHMARKS.get(name), done.returncode)
    assert (result.status, result.cause) == (Status.FAILED, Cause.WRONG_RESULT)
    assert said in result.message


WORLD = "started as a world of 1, the cell has 2 ranks: its launcher may belong to another MPI"


@pytest.mark.parametrize("name", ["network-probe", "message-sweep", "lu-probe", "cg-probe"])
def test_ranks_that_are_worlds_of_their_own_are_a_wrong_result(name, base_python, probes_python, tmp_path) -> None:
    python = probes_python if name == "cg-probe" else base_python
    benchmark, cell = BENCHMARKS.get(name), bench_cell(name, BENCHMARKS.get(name).smoke, ranks_per_node=2)
    # As the mpiexec of another MPI starts them.
    done = [start(benchmark.command(cell, tmp_path, python, [])) for _ in range(2)]
    assert [each.returncode for each in done] == [1, 1], done[0].stderr
    (tmp_path / "output.log").write_text("".join(each.stdout for each in done))
    assert benchmark.verdict(tmp_path, 1) == (Cause.WRONG_RESULT, WORLD)


def test_who_expects_no_world_takes_any() -> None:
    assert require_world(3, None) == require_world(3, 3) == []
    assert require_world(1, 2) == [WORLD]
    assert require_world(2, 1) == ["started as a world of 2, the cell has 1 rank"]


def test_what_a_probe_says_of_its_end_is_the_cause(tmp_path: Path) -> None:
    probes = [name for name in BENCHMARKS if isinstance(BENCHMARKS.get(name), Probe)]
    assert {"memory-bandwidth-probe", "matrix-multiply-probe", "network-probe", "message-sweep-torch"} <= set(probes)
    for name in probes:
        benchmark = BENCHMARKS.get(name)
        assert benchmark.verdict(tmp_path / "nowhere", 1) is None
        (tmp_path / "output.log").write_text("status: invalid: array a is wrong\n")
        assert benchmark.verdict(tmp_path, 1) == (Cause.WRONG_RESULT, "array a is wrong")
        (tmp_path / "output.log").write_text("[0] # End of message sweep: invalid: it is wrong at 4 B\n")
        assert benchmark.verdict(tmp_path, 1) == (Cause.WRONG_RESULT, "it is wrong at 4 B")
        (tmp_path / "output.log").write_text("# End of message sweep: lacks: no module named torch\n")
        for code in (1, 3):  # which a launcher may have made of it
            assert benchmark.verdict(tmp_path, code) == (Cause.MISSING_DEPENDENCY, "no module named torch")
        (tmp_path / "output.log").write_text("status: ok\n")
        assert benchmark.verdict(tmp_path, 1) is None


def test_a_wrong_world_of_a_training_is_a_wrong_result() -> None:
    assert error_facts(WrongResult("started as a world of 1"))["cause"] == "wrong-result"


@pytest.mark.parametrize(
    ("name", "option", "value", "said"),
    [
        ("lu-probe", "N", -1, "a whole number from 0 on"),
        ("lu-probe", "NB", 0, "a whole number from 1 on"),
        ("lu-probe", "memory_fraction", 2.0, "a number between 0 and 1"),
        ("cg-probe", "nx", 20, "a multiple of 8 from 16 on, found 20"),
        ("cg-probe", "nz", 8, "a multiple of 8 from 16 on, found 8"),
    ],
)
def test_options_that_make_no_problem_are_refused(name: str, option: str, value: object, said: str) -> None:
    refusal = BENCHMARKS.get(name).supports(bench_cell(name, {option: value}))
    assert refusal is not None and said in refusal


def test_the_order_follows_the_time_and_the_memory() -> None:
    assert order_for(1e11, 6.0, 1 << 40, 256) == 9216
    assert order_for(1e11, 6.0, 128 << 20, 256) == 4096
    assert order_for(1e3, 1.0, 1 << 40, 256) == 256, "one block at least"
    for order in (order_for(rate, 6.0, GIB, 192) for rate in (1e8, 1e9, 1e12, 1e15)):
        assert order % 192 == 0 and 8 * order**2 <= GIB


def test_the_side_follows_the_cache_and_the_memory() -> None:
    assert side_for(16 * GIB, 32 << 20, 2) == 80
    assert side_for(16 * GIB, 512 << 20, 1) == 192, "beyond the cache"
    assert side_for(GIB, 32 << 20, 8) == 48, "within the memory"
    assert side_for(1, 0, 1) == 16
    assert residual_bound([104, 104, 208]) < residual_bound([208, 208, 208]) < residual_bound([4000] * 3) < 1
