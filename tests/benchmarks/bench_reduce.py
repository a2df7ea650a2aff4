"""Hierarchical reduction against MPI_Reduce of Open MPI's tuned, han and adapt, and of MPICH.

Run by hand, alone on the machine: `python tests/benchmarks/bench_reduce.py [--ranks 8 16]
[--kibibytes 64 1024 262144] [--rounds 2] [--mpich FOLDER]`. MPICH comes from PyPI into a virtual
environment at FOLDER, or a temporary one. Goal: at most 1.0 of the best of them, from 64 KiB to 256 MiB
of float32, on 8 and 16 ranks.

Every start of ranks takes the library's own reduction and ours by turns, on the same buffers; starts of
different libraries alternate. A time is the slowest rank's, of which the median counts; every sum is
checked. Prints medians and, for each kind of group (`chain`, `shared`), its ratio to the best library;
asserts nothing of times. Open MPI's han leaves a node of its own to others: then its row is theirs. What
a start has not done within --seconds is told as missing: MPICH's ranks wait without giving their core away.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from bench_grid import about
from reduce_ranks import OURS

from transect.domain.paths import ROOT
from transect.engine.build_environment import build

# Variables of a start by library.
LIBRARIES = {
    "tuned": {"OMPI_MCA_coll": "^han,adapt"},
    "han": {"OMPI_MCA_coll_han_priority": "100"},
    "adapt": {"OMPI_MCA_coll_adapt_priority": "100"},
    "mpich": {},
}
MPICH = ("mpich==5.0.2", "mpi4py==4.1.2", "numpy==2.4.6")
KIBIBYTES = (64, 256, 1024, 4096, 16384, 65536, 262144)
Times = dict[tuple[int, int, str], list[float]]


def start(python: str, library: str, ranks: int, given: argparse.Namespace) -> list[dict[str, Any]]:
    """Run the ranks of one library; return what they printed until they ended or time was over."""
    program = str(Path(python).parent / "mpiexec")
    prefix = [program, "-n", str(ranks)]
    if library != "mpich":
        prefix += ["--allow-run-as-root", "--map-by", ":OVERSUBSCRIBE"]
    sizes = [str(one) for one in given.kibibytes]
    run = subprocess.Popen(
        [*prefix, python, str(Path(__file__).with_name("reduce_ranks.py")), *sizes],
        env=os.environ
        | LIBRARIES[library]
        | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "OMPI_MCA_osc": "^ucx"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        said, complaint = run.communicate(timeout=given.seconds)
        if run.returncode:
            print(f"# {library}, {ranks} ranks: {complaint[-2000:]}")
    except subprocess.TimeoutExpired:
        # Open MPI's mpiexec ends its ranks when it is asked to; MPICH's are of its session.
        os.killpg(run.pid, signal.SIGTERM)
        said, _ = run.communicate()
        print(f"# {library}, {ranks} ranks: not done in {given.seconds:g} s")
    return [json.loads(line) for line in said.splitlines() if line.startswith("{")]


def show(times: Times, ranks: list[int], kibibytes: list[int]) -> None:
    """Print a row for each number of ranks and size: medians in ms, ratios to the best library."""
    names = [*LIBRARIES, *OURS]
    print("\nranks      KiB" + "".join(f"{name:>10s}" for name in names) + "   over the best library")
    for count in ranks:
        for size in kibibytes:
            found = {
                name: statistics.median(times[count, size, name]) for name in names if times.get((count, size, name))
            }
            rivals = [found[name] for name in LIBRARIES if name in found]
            cells = "".join(f"{1e3 * found[name]:10.3f}" if name in found else f"{'-':>10s}" for name in names)
            ratios = [f"{name} {found[name] / min(rivals):.2f}" for name in OURS if rivals and name in found]
            print(f"{count:5d} {size:8d}{cells}   {', '.join(ratios)}")


def main() -> None:
    """Start all libraries by turns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[8, 16])
    parser.add_argument("--kibibytes", type=int, nargs="+", default=[*KIBIBYTES])
    parser.add_argument("--rounds", type=int, default=1, help="starts of each library")
    parser.add_argument("--seconds", type=float, default=40, help="after which a start is ended")
    parser.add_argument("--libraries", nargs="+", choices=LIBRARIES, default=[*LIBRARIES])
    parser.add_argument("--mpich", type=Path, help="virtual environment, made where missing")
    given = parser.parse_args()
    print(about())
    times: Times = defaultdict(list)
    with tempfile.TemporaryDirectory() as temporary:
        facts = build("base", Path(temporary) / "base.log")
        pythons = dict.fromkeys(LIBRARIES, str(facts["python"]))
        if "mpich" in given.libraries:
            pythons["mpich"] = mpich_python(given.mpich or Path(temporary) / "mpich")
        for _ in range(given.rounds):
            for ranks in given.ranks:
                for library in given.libraries:
                    for line in start(pythons[library], library, ranks, given):
                        for name, seconds in line["times"].items():
                            key = library if name == "library" else name
                            times[ranks, line["kibibytes"], key] += seconds
    show(times, given.ranks, given.kibibytes)


def mpich_python(folder: Path) -> str:
    """Return the interpreter of a virtual environment with MPICH, which is made where missing."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *MPICH], check=True)
    return str(python)


if __name__ == "__main__":
    main()
