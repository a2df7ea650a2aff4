"""All-reduce of the Go package `mpi` against C on the same buffers; point-to-point against the collective.

Run by hand, alone on the machine: `python tests/benchmarks/bench_go_mpi.py [--ranks 2] [--bytes 4 … 67108864]
[--rounds 3] [--turns 15]`. Goal: Go's all-reduce takes at most 1.05 of C's, from 4 B to 64 MB of float32.

`go_mpi_turns.c` is compiled by the mpicc of `envs/base`, twice: into the Go program, where C and Go take turns
on the same buffers, one process, one communicator; and as a program of its own, whose starts alternate with
those of Go alone. A time is the slowest rank's mean of a turn; the median of all turns counts. Sums are
checked before anything is timed. Prints medians in us, Go over C, and the way through rank 0 over the
collective; asserts nothing of times. What a call through
cgo costs that does nothing is printed as well: the least that Go adds to C, whatever the size.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

from bench_grid import about

from transect.domain.paths import ROOT
from transect.engine.build_environment import build
from transect.launch.launchers.mpiexec import mpiexec_prefix

BYTES = (4, 64, 1024, 16384, 65536, 262144, 2**20, 2**22, 2**24, 2**26)
HERE = Path(__file__).parent
# (where it ran, program, kind, bytes) to seconds of each turn.
Times = dict[tuple[str, str, str, int], list[float]]


def compile_both(folder: Path, programs: Path) -> tuple[str, str]:
    """Compile the program in C and the one in Go, which holds both; return their paths."""
    c, go = str(folder / "turns-c"), str(folder / "turns-go")
    mpicc = str(programs / "mpicc")
    source = HERE / "go_mpi_turns.c"
    subprocess.run([mpicc, "-O2", "-DPROGRAM", str(source), "-o", c], check=True)
    module, work = ROOT / "src" / "trainers" / "go", folder / "turns"
    work.mkdir()
    for one in HERE.glob("go_mpi_turns.*"):
        shutil.copy(one, work)
    # Go compiles no C outside of a module's folder.
    (work / "go.mod").write_text(
        f"module turns\n\ngo 1.26\n\nrequire transect-trainer-go v0.0.0\n\nreplace transect-trainer-go => {module}\n"
    )
    subprocess.run(
        ["go", "build", "-tags", "mpi", "-o", go, "."],
        cwd=work,
        check=True,
        env=os.environ
        | {
            "CC": mpicc,
            "CGO_ENABLED": "1",
            "CGO_CFLAGS": "-O2",
            "GOCACHE": str(folder / "cache"),
            "GOFLAGS": "-mod=mod",
        },
    )
    return c, go


def start(command: list[str], where: str, given: argparse.Namespace, programs: Path, times: Times) -> None:
    """Run the ranks; add what they print."""
    prefix = [*mpiexec_prefix(str(programs / "mpiexec")), "-n", str(given.ranks)]
    over = given.ranks > len(os.sched_getaffinity(0))
    prefix += ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"] if over else ["--bind-to", "core"]
    numbers = [str(given.turns), str(given.seconds), *map(str, given.bytes)]
    run = subprocess.run(
        [*prefix, *command, *numbers],
        text=True,
        check=True,
        stdout=subprocess.PIPE,
        timeout=900,
        env=os.environ | {"GOMAXPROCS": str(given.threads)},
    )
    for line in run.stdout.splitlines():
        told = json.loads(line)
        times[where, told["program"], told["kind"], told["bytes"]].append(told["seconds"])


def show(times: Times, given: argparse.Namespace) -> None:
    """Print a table for each way to compare."""
    empty = statistics.median(one for key, several in times.items() if key[2] == "empty call" for one in several)
    print(f"\nan empty call through cgo: {1e6 * empty:.3f} us")
    for where in ("one process", "own programs"):
        print(f"\n{where}, {given.ranks} ranks, median us")
        print("     bytes  C allreduce Go allreduce  Go/C  C via root Go via root  Go/C  root/collective (Go)")
        for size in given.bytes:
            c, go, c_root, go_root = (
                statistics.median(times[where, program, kind, size])
                for kind in ("allreduce", "through-root")
                for program in ("C", "Go")
            )
            print(
                f"{size:10d} {1e6 * c:12.2f} {1e6 * go:12.2f} {go / c:5.3f} {1e6 * c_root:11.2f} "
                f"{1e6 * go_root:11.2f} {go_root / c_root:5.3f} {go_root / go:10.3f}"
            )


def main() -> None:
    """Compile, take turns, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--bytes", type=int, nargs="+", default=[*BYTES])
    parser.add_argument("--rounds", type=int, default=3, help="starts of each program")
    parser.add_argument("--turns", type=int, default=15, help="turns of a start, size and kind")
    parser.add_argument("--seconds", type=float, default=0.02, help="about what a turn takes")
    parser.add_argument("--threads", type=int, default=1, help="GOMAXPROCS")
    given = parser.parse_args()
    print(about())
    times: Times = defaultdict(list)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        programs = Path(str(build("base", folder / "base.log")["python"])).parent
        c, go = compile_both(folder, programs)
        for _ in range(given.rounds):
            start([go, "both"], "one process", given, programs, times)
            start([c], "own programs", given, programs, times)
            start([go, "alone"], "own programs", given, programs, times)
        # Go leaves folders of its modules that may not be written.
        subprocess.run(["go", "clean", "-cache"], env=os.environ | {"GOCACHE": str(folder / "cache")}, check=True)
    show(times, given)


if __name__ == "__main__":
    main()
