"""Which layers keep, recompute or offload: held to every choice there is, on small cases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from transect.planner.memory import Decision, NoMemory, decide
from transect.planner.memory_problem import LayerMemory, MemoryProblem, extra_seconds, peak_bytes


def choices(first: int, count: int) -> Iterator[list[tuple[str, int, int]]]:
    """Yield every way to cover layers [first, count)."""
    if first == count:
        yield []
        return
    heads = [("keep", first, first + 1), ("offload", first, first + 1)]
    heads += [("recompute", first, end) for end in range(first + 1, count + 1)]
    for head in heads:
        yield from ([head, *tail] for tail in choices(head[2], count))


def problem(generator: np.random.Generator) -> MemoryProblem:
    """Draw a chain whose tensors are saved by their producer, their consumer, both or none."""
    count = int(generator.integers(2, 6))
    sizes = [int(n) for n in generator.integers(1, 100, 2 * count + 1)]
    layers = []
    for i in range(count):
        edges = [t for t in (i, i + 1) if generator.random() < 0.6]
        layers.append(
            LayerMemory(
                name=str(i),
                forward_s=float(generator.integers(1, 20)),
                backward_s=float(generator.integers(1, 40)),
                saved=tuple(sorted({*edges, count + 1 + i})),
                before=i,
                after=i + 1,
                working_bytes=int(generator.integers(0, 50)),
            )
        )
    return MemoryProblem(
        layers=tuple(layers),
        sizes=tuple(sizes),
        budget=int(generator.integers(60, 60 * count + 60)),
        window=int(generator.integers(0, 40)),
        write_s_per_byte=float(generator.random()),
        read_s_per_byte=float(generator.random()),
        overlap=bool(generator.random() < 0.7),
        smallest=int(generator.choice([1, 30])),
    )


@pytest.mark.env
def test_it_is_the_best_of_all_choices():
    generator = np.random.default_rng(0)
    seen = set()
    for _ in range(60):
        case = problem(generator)
        every = [(extra_seconds(case, runs), peak_bytes(case, runs)[0]) for runs in choices(0, len(case.layers))]
        fitting = [time for time, held in every if held <= case.budget]
        found = decide(case)
        if not fitting:
            assert isinstance(found, NoMemory)
            assert found.least_bytes == min(held for _, held in every)
            assert f"{case.budget:,}" in found.reason and f"{found.least_bytes:,}" in found.reason
            seen.add("none")
            continue
        assert isinstance(found, Decision)
        assert found.peak_bytes <= case.budget
        assert found.extra_s == pytest.approx(min(fitting), abs=1e-6)
        seen |= {action for action, _, _ in found.runs}
    assert seen == {"none", "keep", "recompute", "offload"}


@pytest.mark.env
def test_layers_of_microseconds_are_decided_as_those_of_seconds_are():
    """Solvers take a reduced cost of less than a ten-millionth for none."""
    layers = (
        LayerMemory(name="0", forward_s=0.0, backward_s=1e-5, saved=(1, 3), before=0, after=1, working_bytes=0),
        LayerMemory(name="1", forward_s=6e-8, backward_s=3e-7, saved=(1,), before=1, after=2, working_bytes=0),
    )
    case = MemoryProblem(
        layers=layers,
        sizes=(1 << 16, 1 << 20, 1 << 17, 1 << 17),
        budget=1 << 22,
        window=0,
        write_s_per_byte=1e-12,
        read_s_per_byte=1e-10,
    )
    found = decide(case)
    assert isinstance(found, Decision) and found.extra_s == 0


@pytest.mark.env
def test_of_many_layers_neighbours_share_a_decision():
    count = 100
    layers = tuple(
        LayerMemory(name=str(i), forward_s=1.0, backward_s=2.0, saved=(i,), before=i, after=i + 1, working_bytes=0)
        for i in range(count)
    )
    case = MemoryProblem(
        layers=layers,
        sizes=(10,) * (count + 1),
        budget=700,
        window=20,
        write_s_per_byte=10.0,
        read_s_per_byte=10.0,
        smallest=1,
    )
    found = decide(case)
    assert isinstance(found, Decision)
    ends = [0, *(last for _, _, last in found.runs)]
    assert ends[-1] == count and [first for _, first, _ in found.runs] == ends[:-1]
    # Three layers decide together, the last one alone.
    assert all(end % 3 == 0 or end == count for end in ends)
    assert found.peak_bytes <= case.budget
    # Kept they would hold 990: something is computed again, and not all.
    assert 0 < found.extra_s < count


@pytest.mark.env
def test_what_was_found_in_time_is_taken_and_called_unproved():
    import pulp

    class OutOfTime(pulp.PULP_CBC_CMD):
        def actualSolve(self, lp, **options):
            status = super().actualSolve(lp, **options)
            lp.sol_status = pulp.LpSolutionIntegerFeasible
            return status

    asked = replace(problem(np.random.default_rng(1)), budget=400)
    proved = decide(asked)
    found = decide(asked, solver=OutOfTime(msg=False))
    assert isinstance(proved, Decision) and proved.proved
    assert isinstance(found, Decision) and not found.proved
    assert found.runs == proved.runs
