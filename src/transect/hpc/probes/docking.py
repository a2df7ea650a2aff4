"""A molecular-docking energy kernel, compute-bound: the pair energies of many poses of a ligand.

A probe of transect after the published miniBUDE benchmark, not miniBUDE itself (Poenaru, Lin and
McIntosh-Smith, "A performance analysis of modern parallel programming models using a compute-bound
application", ISC High Performance 2021). Decks of that benchmark can be read and are checked
against their own reference energies; a synthetic deck is checked against the definition in float64.

The kernel is code of this probe, or a program that follows docs/docking.md.

`python -m transect.hpc.probes.docking --deck DIR --implementation numba --threads 2 --pin close`
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from transect.hpc.probes._docking_arguments import SYNTHETIC, read_arguments
from transect.hpc.probes._docking_places import LacksCpus, openmp_variables, places
from transect.hpc.probes.common import head, say, say_result, say_samples, tail

if TYPE_CHECKING:
    import numpy as np

    from transect.hpc.probes._docking_deck import Deck
    from transect.hpc.probes._docking_program import Measured
    from transect.measure.turns import Turns

# Exit codes, besides 0.
WRONG, BAD_INPUT, LACKING, DIED = 1, 2, 3, 4
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
# Poses of a deck without reference energies: as many as take a second, of the larger decks fewer.
_CHECKED, _MIN_CHECKED, _CHECKED_PAIRS = 256, 16, 25_000_000
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class _Kernel(Protocol):
    name: str
    threading: str
    energies: np.ndarray

    def run(self) -> None: ...

    def close(self) -> None: ...


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns 0, or WRONG, BAD_INPUT, LACKING or DIED with a line that says why."""
    given = read_arguments(arguments, str(__doc__))
    try:
        cpus = None if given.pin == "none" else places(given.threads, given.pin, given.places)
        if cpus is not None and not given.program:
            os.sched_setaffinity(0, cpus)
        lack = ""
    except LacksCpus as error:
        cpus, lack = None, str(error)
    _prepare(given, cpus)
    import numpy as np

    from transect.hpc.probes._docking_program import Died, Lacks

    head("docking", _NOTE, np.__version__)
    try:
        if lack:
            raise Lacks(lack)
        deck = _deck(given)
        measured = _measure(np, deck, given, cpus)
    except Lacks as error:
        return _end(LACKING, f"lacks: {error}")
    except Died as error:
        return _end(DIED, f"died: {error}")
    except LacksCpus as error:
        return _end(LACKING, f"lacks: {error}")
    except (OSError, ValueError) as error:
        return _end(BAD_INPUT, f"refused: {error}")
    _report(deck, measured, given)
    return tail("docking", _verify(np, measured.energies, deck))


def _end(code: int, text: str) -> int:
    say("status", " ".join(text.split()))
    print("end of transect probe docking", flush=True)
    return code


def _prepare(given: argparse.Namespace, cpus: Sequence[int] | None) -> None:
    """Set what the libraries read when they are imported."""
    for name in _THREADS:
        os.environ[name] = str(given.threads)
    if given.implementation == "numpy":
        # The threads are this probe's own; a BLAS call inside one must not start more.
        os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
        os.environ["MKL_NUM_THREADS"] = "1"
    # What an earlier process has compiled would make the first run a short one.
    os.environ |= {"POCL_KERNEL_CACHE": "0", "PYOPENCL_NO_CACHE": "1"}
    os.environ["POCL_MAX_PTHREAD_COUNT"] = str(given.threads)
    if cpus and not given.program:
        os.environ["OMP_PROC_BIND"] = "true"
        os.environ["OMP_PLACES"] = ",".join(f"{{{cpu}}}" for cpu in cpus)


def _deck(given: argparse.Namespace) -> Deck:
    from transect.hpc.probes._docking_deck import SIZES, read_deck, sized_deck, synthetic_deck

    if given.deck == SYNTHETIC:
        return synthetic_deck(given.poses)
    if given.deck in SIZES:
        return sized_deck(given.deck, given.poses)
    return read_deck(Path(given.deck)).first(given.poses)


def _measure(np: Any, deck: Deck, given: argparse.Namespace, cpus: Sequence[int] | None) -> Measured:
    from transect.measure.turns import Turns

    turns = Turns()
    if given.program:
        return _program(deck, given, cpus, turns)
    from transect.hpc.probes._docking_program import Measured

    kernel = _make(deck, given, cpus)
    measured = Measured(energies=kernel.energies)
    try:
        for series in _runs(measured, given, turns):
            kernel.energies.fill(np.nan)
            start = time.perf_counter()
            kernel.run()
            series.append(time.perf_counter() - start)
        measured.facts = {"library": kernel.name, "threading": kernel.threading, "pin": _pinned(given.pin != "none")}
    finally:
        kernel.close()
    return measured


def _runs(measured: Measured, given: argparse.Namespace, turns: Turns) -> Iterator[list[float]]:
    """Yield for each run the series that its time belongs to; wait where it is another program's turn."""
    for _ in range(given.warm_ups):
        yield measured.warm_ups
    count = turns.begin() if turns.taken else given.iterations
    while count:
        for _ in range(count):
            yield measured.times
        count = turns.wait() if turns.taken else 0


def _make(deck: Deck, given: argparse.Namespace, cpus: Sequence[int] | None) -> _Kernel:
    if given.implementation == "numpy":
        from transect.hpc.probes._docking_numpy import NumpyKernel

        return NumpyKernel(deck, given.threads, cpus)
    if given.implementation == "opencl":
        from transect.hpc.probes._docking_opencl import OpenCLKernel

        if given.device == "cpu":
            # Its platform starts threads of its own for all CPUs that it may use, however a device is divided.
            os.sched_setaffinity(0, places(given.threads, "close", "cores"))
        return OpenCLKernel(deck, given.threads, given.device, given.ppwi, given.work_group or 1)
    from transect.hpc.probes._docking_numba import NumbaKernel

    return NumbaKernel(deck, given.threads)


def _program(deck: Deck, given: argparse.Namespace, cpus: Sequence[int] | None, turns: Turns) -> Measured:
    from transect.hpc.probes._docking_program import Died, find, measure

    first, *rest = given.program
    argv = [find(first), *(word.replace("{threads}", str(given.threads)) for word in rest)]
    for name in ("threads", "ppwi", "warm_ups"):
        argv += [f"--{name.replace('_', '-')}", str(getattr(given, name))]
    argv += ["--iterations", "0" if turns.taken else str(given.iterations)]
    argv += ["--schedule", given.schedule] if given.schedule else []
    argv += ["--chunk", str(given.chunk)] if given.chunk else []
    argv += ["--device", "gpu"] if given.device == "cuda" and given.implementation != "cuda" else []
    argv += ["--work-group", str(given.work_group)] if given.work_group else []
    variables = openmp_variables(given.pin, given.places) if given.pinning == "openmp" else {}
    if cpus and given.pinning == "cpus":
        argv += ["--cpus", ",".join(map(str, cpus))]
    with tempfile.TemporaryDirectory(prefix="transect-docking-") as folder:
        measured = measure(argv, deck, Path(folder), variables, turns if turns.taken else None)
    counts = (len(measured.warm_ups), len(measured.times))
    if counts != (given.warm_ups, counts[1] if turns.taken else given.iterations):
        raise Died(
            f"{first} reported {counts[0]} warm-ups and {counts[1]} times, expected "
            f"{given.warm_ups} and {given.iterations}"
        )
    facts = measured.facts
    where = facts.pop("cpus_of_threads", "not told")
    facts |= {
        "library": f"{facts.pop('kernel', given.implementation)}, {facts.pop('compiled_by', '?')}",
        "threading": "its own",
        "pin": "no" if cpus is None else f"threads on CPU {where}",
    }
    return measured


def _report(deck: Deck, measured: Measured, given: argparse.Namespace) -> None:
    """Print what ran, every sample and the results."""
    from transect.hpc.probes._docking_energy import operations

    poses = deck.poses.shape[1]
    atoms = (len(deck.ligand), len(deck.protein))
    facts = {
        "implementation": given.implementation,
        **measured.facts,
        "threads": given.threads,
        "compiler": given.compiler,
        "schedule": given.schedule,
        "chunk": given.chunk or "",
        "places": given.places if given.pin != "none" else "",
        "device": given.device,
        "work_group": given.work_group or "",
        "deck": deck.name,
        "deck_checksum": deck.checksum,
        "precision": "float32",
        "poses": poses,
        "ligand_atoms": atoms[0],
        "protein_atoms": atoms[1],
        "kinds": len(deck.kinds),
        "poses_per_item": given.ppwi,
        "warm_ups": given.warm_ups,
        "warm_up_seconds": f"{sum(measured.warm_ups):.3f}",
        "counting": COUNTING,
    }
    for key, value in facts.items():
        if value != "":
            say(key, value)
    say_samples("warm-up", measured.warm_ups)
    say_samples("kernel", measured.times)
    times, pairs = measured.times, poses * atoms[0] * atoms[1]
    say_result("kernel-time", times)
    for label, per_item in (("kernel", given.ppwi), ("kernel-ppwi1", 1)):
        say_result(label, times, "FLOP/s", operations(poses, *atoms, per_item))
    say_result("pose-time", [seconds / poses for seconds in times])
    say_result("interactions", times, "1/s", pairs)


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
        pairs = len(deck.ligand) * len(deck.protein)
        most = min(poses, _CHECKED, max(_MIN_CHECKED, _CHECKED_PAIRS // pairs))
        which = np.unique(np.linspace(0, poses - 1, most).astype(int))
        expected, source = definition(deck, which), "the definition in numpy, float64"
    difference = largest_difference(energies[which], expected)
    # A pose that was left out would be NaN.
    right = difference <= TOLERANCE and bool(np.isfinite(energies).all())
    say("checked_against", f"{source}: {len(which)} of {poses} poses")
    say("largest_difference", f"{difference:.3e}")
    say("verified", "yes" if right else "no")
    verdict = "passed" if right else "FAILED"
    print(f"verify energies difference {difference:.3e} tolerance {TOLERANCE:.3e} {verdict}", flush=True)
    return [] if right else [f"energies are wrong: they differ by {difference:.3e} from {source}"]


if __name__ == "__main__":
    raise SystemExit(main())
