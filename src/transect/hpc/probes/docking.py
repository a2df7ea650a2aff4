"""A molecular-docking energy kernel, compute-bound: the pair energies of many poses of a ligand.

A probe of transect after the published miniBUDE benchmark, not miniBUDE itself (Poenaru, Lin and
McIntosh-Smith, "A performance analysis of modern parallel programming models using a compute-bound
application", ISC High Performance 2021). Decks of that benchmark can be read and are checked
against their own reference energies; a synthetic deck is checked against the definition in float64.

`python -m transect.hpc.probes.docking --deck DIR --implementation numba --threads 2 --pin`
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from transect.hpc.probes.common import head, say, say_samples, tail

if TYPE_CHECKING:
    import numpy as np

    from transect.hpc.probes._docking_deck import Deck

__all__ = ["COUNTING", "IMPLEMENTATIONS", "SYNTHETIC", "TOLERANCE", "main"]

IMPLEMENTATIONS = ("numpy", "numba")
SYNTHETIC = "synthetic"
# miniBUDE's own: DIFF_TOLERANCE_PCT 0.025 of its version 2 (version 1 had none).
TOLERANCE = 2.5e-4
COUNTING = (
    "operations per run = (27 P + L (2 + 18 P + N (10 + 30 P)) + P) poses / P, with L ligand and N "
    "protein atoms and P poses per work-item, as miniBUDE 2 counts, not as executed; "
    "kernel: P = poses_per_item, kernel-ppwi1: P = 1"
)
_NOTE = (
    "a transect probe, not miniBUDE: its kernel and its count of operations in another program; "
    "name it so when you compare"
)
_WARM_UPS = 2  # as many as miniBUDE; the first one compiles
_CHECKED = 256  # poses of a deck without reference energies
_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


class _Kernel(Protocol):
    name: str
    threading: str
    energies: np.ndarray

    def run(self) -> None: ...

    def close(self) -> None: ...


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns 0, or 1 when an energy is wrong or threads cannot be pinned."""
    parser = argparse.ArgumentParser(prog="transect.hpc.probes.docking", description=__doc__)
    parser.add_argument("--deck", default=SYNTHETIC, help="a folder of miniBUDE, or 'synthetic'")
    parser.add_argument("--implementation", choices=IMPLEMENTATIONS, default="numba")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--poses", type=int, default=16384, help="the first ones of the deck")
    parser.add_argument("--iterations", type=int, default=8, help="timed runs over all poses")
    parser.add_argument("--pin", action="store_true", help="each thread to a CPU of its own")
    given = parser.parse_args(arguments)
    if min(given.threads, given.poses, given.iterations) < 1:
        parser.error("--threads, --poses and --iterations must be at least 1")
    cpus = _cpus(given.threads) if given.pin else None
    _prepare(given.implementation, given.threads, cpus)
    import numpy as np

    from transect.hpc.probes._docking_deck import read_deck, synthetic_deck

    head("docking", _NOTE, np.__version__)
    try:
        if given.deck == SYNTHETIC:
            deck = synthetic_deck(given.poses)
        else:
            deck = read_deck(Path(given.deck)).first(given.poses)
        if given.pin and cpus is None:
            raise ValueError(f"{given.threads} threads cannot be pinned to {_allowed()} CPUs")
        kernel = _make(given.implementation, deck, given.threads, cpus)
    except (OSError, ValueError, ImportError) as error:
        return tail("docking", [str(error)])
    try:
        return _measure(np, kernel, deck, given)
    finally:
        kernel.close()


def _allowed() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0


def _cpus(threads: int) -> list[int] | None:
    """Return as many of this process's CPUs as there are threads, or None when there are fewer."""
    if _allowed() < threads:
        return None
    return sorted(os.sched_getaffinity(0))[:threads]


def _prepare(implementation: str, threads: int, cpus: Sequence[int] | None) -> None:
    """Set what the libraries read when they are imported, and hold the process to its CPUs."""
    for name in _THREADS:
        os.environ[name] = str(threads)
    if implementation == "numpy":
        # The threads are this probe's own; a BLAS call inside one must not start more.
        os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
        os.environ["MKL_NUM_THREADS"] = "1"
    if cpus:
        os.sched_setaffinity(0, cpus)
        os.environ["OMP_PROC_BIND"] = "true"
        os.environ["OMP_PLACES"] = ",".join(f"{{{cpu}}}" for cpu in cpus)


def _make(implementation: str, deck: Deck, threads: int, cpus: Sequence[int] | None) -> _Kernel:
    if implementation == "numpy":
        from transect.hpc.probes._docking_numpy import NumpyKernel

        return NumpyKernel(deck, threads, cpus)
    from transect.hpc.probes._docking_numba import NumbaKernel

    return NumbaKernel(deck, threads)


def _measure(np: Any, kernel: _Kernel, deck: Deck, given: argparse.Namespace) -> int:
    from transect.hpc.probes._docking_energy import BLOCK, operations

    begin = time.perf_counter()
    for _ in range(_WARM_UPS):
        kernel.run()
    warm = time.perf_counter() - begin
    samples = []
    for _ in range(given.iterations):
        kernel.energies.fill(np.nan)
        start = time.perf_counter()
        kernel.run()
        samples.append(time.perf_counter() - start)
    poses = deck.poses.shape[1]
    atoms = (len(deck.ligand), len(deck.protein))
    facts = {
        "implementation": given.implementation, "library": kernel.name,
        "threading": kernel.threading, "threads": given.threads, "pin": _pinned(given.pin),
        "deck": deck.name, "deck_checksum": deck.checksum, "precision": "float32",
        "poses": poses, "ligand_atoms": atoms[0], "protein_atoms": atoms[1],
        "kinds": len(deck.kinds), "poses_per_item": BLOCK, "warm_ups": _WARM_UPS,
        "warm_up_seconds": f"{warm:.3f}", "counting": COUNTING,
    }  # fmt: skip
    for key, value in facts.items():
        say(key, value)
    say_samples("kernel", samples)
    best, median, runs = min(samples), float(np.median(samples)), len(samples)
    print(f"result kernel-time best {best:.6e} s median {median:.6e} s runs {runs}")
    for label, per_item in (("kernel", BLOCK), ("kernel-ppwi1", 1)):
        work = operations(poses, *atoms, per_item)
        rates = f"best {work / best:.6e} FLOP/s median {work / median:.6e} FLOP/s"
        print(f"result {label} {rates} runs {runs}")
    return tail("docking", _verify(np, kernel.energies, deck))


def _pinned(asked: bool) -> str:
    """Say on which CPUs the threads of this process may run, as the kernel tells it."""
    if not asked:
        return "no"
    alone: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        try:
            allowed = os.sched_getaffinity(int(task.name))
        except OSError:  # a thread that has ended since
            continue
        alone |= allowed if len(allowed) == 1 else set()
    if not alone:
        return "the process only, no thread to a CPU of its own"
    return f"threads alone on CPU {', '.join(map(str, sorted(alone)))}"


def _verify(np: Any, energies: np.ndarray, deck: Deck) -> list[str]:
    """Compare with the deck's energies, or with the definition; print the verdict."""
    from transect.hpc.probes._docking_energy import definition, largest_difference

    poses = len(energies)
    if deck.energies is not None:
        which = np.arange(poses)
        expected, source = deck.energies, "the deck's reference energies"
    else:
        which = np.unique(np.linspace(0, poses - 1, min(poses, _CHECKED)).astype(int))
        expected, source = definition(deck, which), "the definition in numpy, float64"
    difference = largest_difference(energies[which], expected)
    # A pose that was left out would be NaN.
    right = difference <= TOLERANCE and bool(np.isfinite(energies).all())
    say("checked_against", f"{source}: {len(which)} of {poses} poses")
    say("largest_difference", f"{difference:.3e}")
    say("verified", "yes" if right else "no")
    verdict = "passed" if right else "FAILED"
    print(
        f"verify energies difference {difference:.3e} tolerance {TOLERANCE:.3e} {verdict}",
        flush=True,
    )
    return [] if right else [f"energies are wrong: they differ by {difference:.3e} from {source}"]


if __name__ == "__main__":
    raise SystemExit(main())
