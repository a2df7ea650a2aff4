"""Which layers keep their activations, which compute them again, which send them to a file: an integer program.

For n layers with tensors t of sizes a_t, tensor 0 being the batch, whom somebody else holds:

- k_i, o_i, y_{s,e} in {0, 1}: layer i keeps; it offloads; layers [s, e) are recomputed as one segment, of
  which the input of layer s is kept. Each layer is in one of them: k_i + o_i + sum_{s <= i < e} y_{s,e} = 1.
- x_t >= k_i for each t that layer i saves, x_t >= y_{s,e} for the input t of layer s: t is resident.
- h_t >= o_i for each t that layer i saves: t is written once and read once.
- z >= o_i: there is a store, with a window w.
- Memory while layer i computes backwards, for each i: the resident tensors that exist by then, what a
  segment has computed again up to i, what i reads back, the window, and r_i, its own inputs,
  outputs and their gradients:
  sum_{t made by i} a_t x_t + sum_{s <= i < e} W(s, i) y_{s,e} + A_i o_i + w z + r_i <= budget.
- Least time beyond that of plain training: sum f_i over recomputed layers, a little for each tensor written, and what of the transfers computing does
  not hide. Transfers of one direction follow one another; writes that begin after layer i can hide behind the
  forward passes that follow it, but for the last window, which is not written; reads of layer
  i and later ones behind the backward passes after i. Without a core of their own (`overlap` false)
  nothing is hidden.

Checkmate (P. Jain et al., 2020) decides for every operation and every step of time; here each layer is
decided once, as torch can follow it without a graph.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from transect.planner.memory_problem import LayerMemory, MemoryProblem, extra_seconds, peak_bytes

# Of layers that are decided one by one. Of more, as many neighbours share a decision as it takes:
# the program grows with the square of their number, and alike layers make it slow to prove.
_MAX_LAYERS = 48


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """Runs of (action, first layer, layer after the last), their costs and their memory.

    `proved`: no choice takes less time; else it is the best that was found in the time there was.
    """

    runs: tuple[tuple[str, int, int], ...]
    extra_s: float
    peak_bytes: int
    proved: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class NoMemory:
    """No choice fits; the least that one needs, and at which layer."""

    reason: str
    least_bytes: int


def decide(problem: MemoryProblem, *, solver: Any = None, seconds: float = 60.0) -> Decision | NoMemory:
    """Return the choice that takes the least time within the budget, or why there is none.

    Of more than 48 layers, neighbours share a decision, and the optimum is that of such choices. `solver` is one of
    pulp's; CBC otherwise. Raises RuntimeError when it has found nothing within `seconds`.
    """
    import pulp

    solver = solver or pulp.PULP_CBC_CMD(msg=False, timeLimit=seconds)
    together = -(-len(problem.layers) // _MAX_LAYERS)
    shared = problem if together == 1 else _grouped(problem, together)
    found = _solved(shared, solver, least_memory=False)
    if found is not None:
        runs, proved = found
        ends = [min(i * together, len(problem.layers)) for i in range(len(shared.layers) + 1)]
        runs = tuple((action, ends[first], ends[last]) for action, first, last in runs)
        most, _ = peak_bytes(problem, runs)
        extra = extra_seconds(problem, runs)
        return Decision(runs=runs, extra_s=extra, peak_bytes=most, proved=proved)
    # That nothing fits is proved by now; what is the least only says by how much.
    smallest = _solved(shared, solver, least_memory=True)
    assert smallest is not None
    problem = shared
    least, at = peak_bytes(problem, smallest[0])
    return NoMemory(
        reason=f"of the budget {max(0, problem.budget):,} bytes are left for activations, fewer than the {least:,} that "
        f"the smallest choice of keeping, recomputing and offloading holds, at layer "
        f"{problem.layers[at].name}",
        least_bytes=least,
    )


def _grouped(problem: MemoryProblem, together: int) -> MemoryProblem:
    """Return the problem whose layers are `together` neighbours each; it holds no less than they do."""
    groups = [problem.layers[first : first + together] for first in range(0, len(problem.layers), together)]
    return replace(
        problem,
        layers=tuple(
            LayerMemory(
                name=group[0].name if len(group) == 1 else f"{group[0].name}-{group[-1].name}",
                forward_s=sum(layer.forward_s for layer in group),
                backward_s=sum(layer.backward_s for layer in group),
                saved=tuple(sorted({t for layer in group for t in layer.saved})),
                before=group[0].before,
                after=group[-1].after,
                working_bytes=max(layer.working_bytes for layer in group),
            )
            for group in groups
        ),
    )


def _slowed(problem: MemoryProblem) -> MemoryProblem:
    """Return the problem with times of about 1 a layer: solvers take less than a ten-millionth for nothing."""
    passes = sum(layer.forward_s + layer.backward_s for layer in problem.layers)
    factor = len(problem.layers) / passes if passes > 0 else 1.0
    return replace(
        problem,
        layers=tuple(
            replace(layer, forward_s=factor * layer.forward_s, backward_s=factor * layer.backward_s)
            for layer in problem.layers
        ),
        write_s_per_byte=factor * problem.write_s_per_byte,
        read_s_per_byte=factor * problem.read_s_per_byte,
        handling_s=factor * problem.handling_s,
    )


def _segments(problem: MemoryProblem) -> list[tuple[int, int]]:
    count = len(problem.layers)
    longest = count if problem.chained else 1
    return [(s, e) for s in range(count) for e in range(s + 1, min(count, s + longest) + 1)]


def _solved(
    problem: MemoryProblem, solver: Any, *, least_memory: bool
) -> tuple[tuple[tuple[str, int, int], ...], bool] | None:
    """Return runs of least time within the budget, or of least memory, and whether that is proved; None: nothing fits."""
    import pulp

    problem = _slowed(problem)
    layers, sizes = problem.layers, problem.sizes
    scale = max(problem.budget, 1)
    program = pulp.LpProblem("memory", pulp.LpMinimize)

    def binary(name: str) -> Any:
        return program.add_variable(name, cat="Binary")

    keep = [binary(f"k{i}") for i in range(len(layers))]
    send = [binary(f"o{i}") for i in range(len(layers))]
    again = {(s, e): binary(f"y{s}_{e}") for s, e in _segments(problem)}
    tensors = {t for layer in layers for t in (*layer.saved, layer.before)} - {0}
    resident = {t: program.add_variable(f"x{t}", 0, 1) for t in tensors}
    moved = {t: program.add_variable(f"h{t}", 0, 1) for t in tensors}
    store = program.add_variable("z", 0, 1)
    write, read = program.add_variable("write", 0), program.add_variable("read", 0)
    most = program.add_variable("most", 0)
    time = (
        pulp.lpSum(sum(layer.forward_s for layer in layers[s:e]) * y for (s, e), y in again.items())
        + write
        + read
        + problem.handling_s * pulp.lpSum(moved.values())
    )
    program += most if least_memory else time
    made = {t: problem.made(t) for t in tensors}
    for i, layer in enumerate(layers):
        over = [y for (s, e), y in again.items() if s <= i < e]
        program += keep[i] + send[i] + pulp.lpSum(over) == 1
        program += store >= send[i]
        sent = problem.moved(layer)
        for t in set(layer.saved) - {0}:
            program += resident[t] >= keep[i]
            program += (moved if t in sent else resident)[t] >= send[i]
    for (s, _), y in again.items():
        if layers[s].before:
            program += resident[layers[s].before] >= y
    for i, layer in enumerate(layers):
        held = [sizes[t] / scale * resident[t] for t in tensors if made[t] <= i]
        renewed = {s: problem.segment_bytes(s, i) / scale for s in range(i + 1)}
        held += [renewed[s] * y for (s, e), y in again.items() if s <= i < e]
        held += [sum(sizes[t] for t in problem.moved(layer)) / scale * send[i]]
        held += [problem.window / scale * store]
        limit = most if least_memory else problem.budget / scale
        program += pulp.lpSum(held) + layer.working_bytes / scale <= limit
    if problem.overlap:
        for i in range(len(layers)):
            late = pulp.lpSum(sizes[t] * moved[t] for t in tensors if made[t] >= i)
            forward, backward = (
                sum(getattr(layer, name) for layer in layers[i + 1 :]) for name in ("forward_s", "backward_s")
            )
            program += write >= problem.write_s_per_byte * (late - problem.window) - forward
            program += read >= problem.read_s_per_byte * late - backward
    else:
        whole = pulp.lpSum(sizes[t] * moved[t] for t in tensors)
        program += write >= problem.write_s_per_byte * whole
        program += read >= problem.read_s_per_byte * whole
    program.solve(solver)
    status = pulp.LpStatus[program.status]
    if status == "Infeasible":
        return None
    found = (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible)
    if status != "Optimal" or program.sol_status not in found:
        raise RuntimeError(f"the solver found no choice for {len(layers)} layers in the time that it had ({status})")
    return _runs(len(layers), keep, send, again), program.sol_status == pulp.LpSolutionOptimal


def _runs(
    count: int, keep: list[Any], send: list[Any], again: dict[tuple[int, int], Any]
) -> tuple[tuple[str, int, int], ...]:
    """Return the runs of a solution; neighbours that keep, or that offload, are one run."""
    chosen = dict(segment for segment, y in again.items() if y.value() > 0.5)
    runs: list[tuple[str, int, int]] = []
    index = 0
    while index < count:
        if index in chosen:
            runs.append(("recompute", index, chosen[index]))
        else:
            action = "keep" if keep[index].value() > 0.5 else "offload"
            assert action == "keep" or send[index].value() > 0.5
            if runs and runs[-1][0] == action:
                runs[-1] = (action, runs[-1][1], index + 1)
            else:
                runs.append((action, index, index + 1))
        index = runs[-1][2]
    return tuple(runs)
