"""The optimal partition as an integer linear program, solved by CBC or HiGHS through PuLP.

A binary z for every stage on every device that `bounds` leaves: 1 if the partition has it. They
are a path: as many stages end at (devices, layers) as begin there. T is at least the t of the stage on each device,
E the same of e. Minimised is (M - 1) T + sum s z + E. The linear relaxation is tight, as a
path's own costs are exact in it: only T and E couple them.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Literal

import numpy as np

from transect.domain.errors import BadInput, MissingDependency, TransectError
from transect.planner.bounds import Arc, arcs_worth, known_partition
from transect.planner.problem import Infeasible, Problem, Solution


def mebibytes(size: float) -> str:
    """Write a number of bytes.

    >>> [mebibytes(size) for size in (4096, 2**20, 3 * 2**30)]
    ['0.00391 MiB', '1 MiB', '3,072 MiB']
    """
    whole = size / 2**20
    return f"{whole:,.0f} MiB" if whole >= 1000 else f"{whole:.3g} MiB"


def least_memory(problem: Problem) -> float:
    """Return the least bytes that every device would have to have for any partition to fit.

    Infinite where even unlimited memory leaves none. A shortest path by the largest stage.
    """
    places = np.arange(problem.count + 1)
    ordered = places[None, :] > places[:, None]
    best = np.full(problem.count + 1, np.inf)
    best[0] = 0.0
    for table in problem.tables:
        best = np.where(ordered, np.maximum(best[:, None], table.memory), np.inf).min(axis=0)
    return float(best[-1])


def infeasible(problem: Problem) -> Infeasible:
    """Say which constraint leaves no partition of a problem that has none."""
    if problem.count < problem.devices:
        return Infeasible(
            f"stages: {problem.count} layers cannot be cut in {problem.devices} stages of at least one layer each"
        )
    least = least_memory(problem)
    most = problem.room
    for layer in problem.layers:
        # One micro-batch is live at the last stage, whatever the schedule is called.
        alone = problem.copies * layer.weight_bytes + layer.kept_bytes
        if alone > most:
            return Infeasible(
                f"memory: layer {layer.name} alone needs {mebibytes(alone)} for its weights, gradients and one "
                f"micro-batch, a device has {mebibytes(most)}: smaller micro-batches, or more memory"
            )
    live = f"{problem.live(0)} live micro-batches in the first stage ({problem.schedule})"
    return Infeasible(
        f"memory: every cut in {problem.devices} stages needs a device with at least "
        f"{mebibytes(least)}, with {live}; they have {mebibytes(most)}"
    )


Solver = Literal["highs", "cbc"]
SOLVERS: tuple[Solver, ...] = ("highs", "cbc")


def _solver(name: str, seconds: float) -> Any:
    import pulp

    # No gap: the plan is proved optimal, up to the solver's own tolerance of 1e-6.
    common = {"msg": False, "gapRel": 0.0, "timeLimit": seconds, "threads": 1}
    if name == "highs":
        found = pulp.HiGHS(**common)
    elif name == "cbc":
        found = pulp.PULP_CBC_CMD(**common)
    else:
        raise BadInput(f"solver {name!r}: expected {' or '.join(SOLVERS)}")
    if not found.available():
        raise MissingDependency(f"solver {name} is not installed: envs/driver brings it")
    return found


def _program(problem: Problem, arcs: list[Arc], unit: float) -> tuple[Any, list[Any]]:
    """Return the program, times in units of `unit`, and its binaries in the order of the arcs."""
    import pulp

    program = pulp.LpProblem("partition", pulp.LpMinimize)
    chosen = [program.add_variable(f"z{number}", cat="Binary") for number in range(len(arcs))]
    time, end = program.add_variable("T", 0), program.add_variable("E", 0)
    through = pulp.lpSum(arc.through_s / unit * z for arc, z in zip(arcs, chosen, strict=True))
    program += (problem.micro_batches - 1) * time + through + end
    begins, ends, rows = defaultdict(list), defaultdict(list), defaultdict(list)
    for arc, z in zip(arcs, chosen, strict=True):
        begins[arc.device, arc.first].append(z)
        ends[arc.device + 1, arc.last].append(z)
        rows[arc.device].append((arc, z))
    program += pulp.lpSum(begins[0, 0]) == 1
    for state in sorted({*begins, *ends} - {(0, 0), (problem.devices, problem.count)}):
        program += pulp.lpSum(begins[state]) == pulp.lpSum(ends[state])
    for held in rows.values():
        program += time >= pulp.lpSum(arc.time_s / unit * z for arc, z in held)
        program += end >= pulp.lpSum(arc.end_s / unit * z for arc, z in held)
    return program, chosen


def partition(problem: Problem, solver: str = "highs", seconds: float = 300) -> Solution | Infeasible:
    """Return a partition that is proved optimal, or which constraint leaves none.

    Raises TransectError when the solver does not end with a proof within `seconds`, MissingDependency where
    it is not installed.
    """
    import pulp

    known = known_partition(problem)
    if known is None:
        return infeasible(problem)
    arcs = list(arcs_worth(problem, known))
    program, chosen = _program(problem, arcs, known.bottleneck_s or 1.0)
    status = program.solve(_solver(solver, seconds))
    if status != pulp.LpStatusOptimal or program.sol_status != pulp.LpSolutionOptimal:
        raise TransectError(
            f"{solver} ended as {pulp.LpStatus[status]} after at most {seconds:g} s: the partition of "
            f"{problem.count} layers on {problem.devices} devices is not proved"
        )
    taken = sorted(arc for arc, z in zip(arcs, chosen, strict=True) if z.varValue > 0.5)
    return problem.solution([arc.first for arc in taken[1:]], solver)
