"""Where the threads of the docking kernel go: close together or spread, on cores or on their threads.

Standard library only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

PINS = ("none", "close", "spread", "cores")  # cores: the older word for close
PLACES = ("cores", "threads")
_SYS = Path("/sys/devices/system/cpu")


class LacksCpus(ValueError):
    """This machine, or the CPUs that this process may use, lack such places."""


def _number(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # a kernel that does not say
        return 0


def _cores(allowed: Sequence[int], sys: Path) -> list[list[int]]:
    """Return the hardware threads of each core that may be used, cores of one package together."""
    cores: dict[tuple[int, int, int], list[int]] = {}
    for cpu in sorted(allowed):
        folder = sys / f"cpu{cpu}" / "topology"
        known = (folder / "core_id").exists()
        core = _number(folder / "core_id") if known else cpu
        cores.setdefault((_number(folder / "physical_package_id"), _number(folder / "die_id"), core), []).append(cpu)
    return [cores[key] for key in sorted(cores)]


def places(threads: int, pin: str, kind: str, *, allowed: Sequence[int] | None = None, sys: Path = _SYS) -> list[int]:
    """Return one CPU for each thread, as `close` or `spread` asks, on cores or on hardware threads.

    `close` fills one place after the other, in the order of packages and cores; `spread` leaves as many
    between two threads as there are to spare. Raises LacksCpus when there are more threads than places,
    or when each core has one hardware thread and these were asked for.
    """
    cpus = sorted(os.sched_getaffinity(0)) if allowed is None else allowed
    cores = _cores(cpus, sys)
    if kind == "threads" and all(len(core) == 1 for core in cores):
        raise LacksCpus(
            "places: threads asks for cores with several hardware threads; each of the "
            f"{len(cores)} cores that this process may use has one"
        )
    order = list(_order(cores, kind))
    if threads > len(order):
        raise LacksCpus(f"{threads} threads cannot be pinned to {len(order)} CPUs")
    if pin == "spread":
        return [order[thread * len(order) // threads] for thread in range(threads)]
    return order[:threads]


def _order(cores: list[list[int]], kind: str) -> Iterator[int]:
    for core in cores:
        yield from core if kind == "threads" else core[:1]


def openmp_variables(pin: str, kind: str) -> dict[str, str]:
    """Return OpenMP's variables for the same."""
    if pin == "none":
        return {"OMP_PROC_BIND": "false"}
    return {"OMP_PROC_BIND": "spread" if pin == "spread" else "close", "OMP_PLACES": kind}
