"""The probes of linear equations: lu-probe beside hpcc's HPL, cg-probe beside the triad of its own library.

Run by hand, alone on the machine: `python tests/benchmarks/bench_solvers.py [--ranks 2] [--order 6144] [--blocks 192 256]
[--rounds 3] [--blas FOLDER]`. Goals: lu-probe at least 0.9 of HPL on the same ranks and order, where hpcc is on PATH;
the product of cg-probe at least 0.9 of the triad, its smoother too.

Each round takes all by turns, in processes of their own. hpcc takes whatever libblas.so.3 it finds, which may be the slow
reference: `--blas` names a folder with another, such as that of OpenBLAS. HPL counts with its better block size, the probe
with its own. Prints; asserts nothing of times.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import about, python_of

from transect.domain.cell import Cell
from transect.domain.paths import ROOT
from transect.hpc.base import Run, RunStatus
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.hpc.ingest import ingest
from transect.launch.launchers.mpiexec import mpiexec_prefix

LOGS = Path(tempfile.gettempdir()) / f"bench-solvers-{os.getpid()}"


def measure(name: str, options: dict[str, int | float | str], ranks: int, blas: str = "") -> Run:
    """Run a benchmark on ranks of this machine. Ends the process when it gave no result."""
    benchmark = BENCHMARKS.get(name)
    cell = Cell.of(stage="bench", benchmark=name, ranks_per_node=ranks, options=tuple(sorted(options.items())))
    kept = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    if environment := benchmark.environment_of(cell):
        program = python_of(environment, LOGS)
        prefix = mpiexec_prefix(str(Path(program).parent / "mpiexec"))
        prefix += ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none", "-n", str(ranks)]
    else:
        program, prefix = str(benchmark.find(cell)), mpiexec_prefix(shutil.which("mpiexec.openmpi") or "mpiexec")
        prefix += ["--bind-to", "none"]
        kept["LD_LIBRARY_PATH"] = blas
    argv = benchmark.command(cell, LOGS, program, prefix)
    with (LOGS / "output.log").open("w") as stream:
        subprocess.run(argv, env=kept, cwd=LOGS, stdout=stream, stderr=subprocess.STDOUT, check=False)
    (run, *_) = ingest(benchmark.logs(LOGS), benchmark.parser)
    if run.status is not RunStatus.OK:
        sys.exit(f"{name}: {run.status}: {run.reason}\n{(LOGS / 'output.log').read_text()[-2000:]}")
    return run


def rate(run: Run, *series: str) -> float:
    """Return a rate in FLOP/s, by the name or the phase of its series."""
    return next(m.normalised.value for m in run.metrics if m.normalised and (m.name in series or m.phase in series))


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--order", type=int, default=6144)
    parser.add_argument("--blocks", type=int, nargs="+", default=[192, 256], help="those of HPL")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--blas", default="", help="folder with the libblas.so.3 of hpcc")
    given = parser.parse_args()
    LOGS.mkdir(exist_ok=True)
    print(about(), flush=True)
    theirs: dict[int, list[float]] = {block: [] for block in given.blocks}
    ours, shares = [], []
    for _ in range(given.rounds):
        for block in given.blocks if shutil.which("hpcc") else ():
            run = measure("hpcc", {"N": given.order, "NB": block}, given.ranks, given.blas)
            theirs[block].append(rate(run, "hpl"))
        run = measure("lu-probe", {"N": given.order}, given.ranks)
        ours.append((rate(run, "lu_best"), float(str(run.parameters["share_of_bound"]))))
        run = measure("cg-probe", {"seconds": 1}, given.ranks)
        shares.append([float(str(run.parameters[f"{name}_share"])) for name in ("product", "sweep", "cg")])
        hpl = ", ".join(f"NB {block} {values[-1] / 1e9:.1f}" for block, values in theirs.items() if values)
        print(
            f"HPL {hpl or 'skipped, hpcc is not on PATH'}; lu-probe {ours[-1][0] / 1e9:.1f} GFLOP/s, {ours[-1][1]:.2f} of its "
            f"products; cg-probe, of its triad: product {shares[-1][0]:.2f}, smoother {shares[-1][1]:.2f}, "
            f"whole sets {shares[-1][2]:.2f}; load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
    if best := [max(values) for values in theirs.values() if values]:
        ratio = max(each for each, _ in ours) / max(best)
        print(f"lu-probe is {ratio:.2f} of HPL, best of {given.rounds} rounds each, order {given.order}")
    names = ("product", "smoother", "whole sets")
    medians = (statistics.median(column) for column in zip(*shares, strict=True))
    print("cg-probe, medians: " + ", ".join(f"{name} {value:.2f}" for name, value in zip(names, medians, strict=True)))
    shutil.rmtree(LOGS)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
