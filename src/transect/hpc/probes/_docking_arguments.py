"""The docking probe's command line."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence

from transect.hpc.probes._docking_places import PINS, PLACES

# Kernels of the probe itself; any other is a program.
IMPLEMENTATIONS = ("numpy", "numba", "opencl")
SYNTHETIC = "synthetic"


def read_arguments(arguments: Sequence[str] | None, about: str) -> argparse.Namespace:
    """Read the command line; ends the process with code 2 when it is wrong."""
    parser = argparse.ArgumentParser(prog="transect.hpc.probes.docking", description=about)
    add = parser.add_argument
    add("--deck", default=SYNTHETIC, help="a folder of miniBUDE; tiny, small, medium, large; 'synthetic'")
    add("--implementation", default="numba", help="name of the programming model")
    add("--program", type=shlex.split, default=[], help="argument list, unless the probe has it")
    add("--threads", type=int, default=1)
    add("--poses", type=int, default=16384, help="the first ones of the deck")
    add("--iterations", type=int, default=8, help="timed runs over all poses")
    add("--warm-ups", type=int, default=2, help="runs before them; the first one compiles")
    add("--ppwi", type=int, default=256, help="poses per work-item, in the count of operations")
    add("--pin", choices=PINS, default="none", help="where threads go; none: anywhere")
    add("--places", choices=PLACES, default="cores", help="what a pinned thread gets")
    add("--pinning", choices=("openmp", "cpus"), default="cpus", help="how the program is pinned")
    add("--compiler", default="", help="noted in the log")
    add("--schedule", default="", help="how work-items are dealt out; empty: the model has no say")
    add("--chunk", type=int, default=0, help="work-items that are dealt out together; 0: its own")
    add("--device", choices=("cpu", "cuda"), default="cpu")
    add("--work-group", type=int, default=0, help="work-items of a group; 0: it has none")
    given = parser.parse_args(arguments)
    if min(given.threads, given.poses, given.iterations, given.warm_ups, given.ppwi) < 1:
        parser.error("--threads, --poses, --iterations, --warm-ups and --ppwi must be at least 1")
    if not given.program and given.implementation not in IMPLEMENTATIONS:
        parser.error(f"--implementation {given.implementation} is a program: --program is missing")
    return given
