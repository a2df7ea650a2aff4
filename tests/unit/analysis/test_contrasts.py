"""Contrasts: how runs are paired, what enters, when a verdict is sure, and who is the best of several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factories import infer_cell, train_cell
from transect.analysis.contrasts import Contrast, Contrasts, best, contrast, ends_early, pair_half_widths
from transect.analysis.groups import Floors, Group
from transect.domain.cell import Cell
from transect.domain.metrics import Direction
from transect.domain.pairs import Pair
from transect.domain.record import Cause, Status
from transect.report.engine.best_words import confidence_of
from transect.report.topics.serving.runtime_findings import Nearness, nearness
from transect.stats.comparisons import Confidence, judged
from transect.stats.samples import summarise
from transect.stats.verdicts import LEVEL, Answer, Decision
from verdict_studies import SHAPES, Design, Run, Tally, study

MARGIN = 0.10
STEP = "step_time"


def run(cell: Cell, repeat: int, seconds: float | Sequence[float], *, heat: str = "", **more: Any) -> Run:
    """A run of a training; several seconds are those of its turns in a heat."""
    turns = [seconds] if isinstance(seconds, float) else list(seconds)
    quiet = more.pop("quiet", [True] * len(turns))
    details = {"disturbed": more.pop("disturbed", False)}
    if heat:
        details["turns"] = {"heat": heat, "metric": STEP, "seconds": turns, "quiet": quiet}
    numbers = {STEP: sum(turns) / len(turns)} | more.pop("numbers", {})
    return replace(Run(cell, repeat, details, numbers), **more)


def group(cell: Cell, runs: Sequence[Run]) -> Group:
    ok = tuple(single for single in runs if single.status is Status.OK)
    return Group(cell=cell, records=tuple(runs), ok=ok)


def pair(cell: Cell, base: Cell, metric: str = STEP, *, asked: bool = True, varies: str = "framework") -> Pair:
    return Pair(
        stage=cell.stage, cell=cell.id, base=base.id, metric=metric, varies=(varies,), rules=("r.one",), asked=asked
    )


def evaluated(
    *groups: Group, metric: str = STEP, pending: Sequence[tuple[str, str]] = (), **how: Any
) -> list[Contrast]:
    """Each group beside the first."""
    base, *others = groups
    pairs = [pair(other.cell, base.cell, metric, **how) for other in others]
    return list(Contrasts(pairs, groups, Floors(groups, MARGIN), pending))


NUMPY, TORCH, JAX = (train_cell(name) for name in ("numpy", "torch", "jax"))
TURNS = (1.0, 1.5, 0.9, 1.2, 1.1, 1.4)


def in_turn(cell: Cell, factor: float, repeats: int = 3, **more: Any) -> Group:
    """A group whose launches took turns on a machine that is now fast, now slow."""
    runs = [
        run(cell, n, [factor * (1 + 0.01 * n) ** (factor > 1) * t for t in TURNS], heat=f"h{n}", **more)
        for n in range(repeats)
    ]
    return group(cell, runs)


def test_launches_that_took_turns_are_compared_turn_by_turn() -> None:
    [made] = evaluated(in_turn(NUMPY, 1.0), in_turn(TORCH, 1.2))
    assert (made.by, made.pairs, made.answer, made.confidence) == ("turn", 3, Answer.DIFFERENT, Confidence.CONFIRMED)
    assert made.ratio.value == pytest.approx(1.2 * 1.01, rel=1e-3) and made.better is not None
    assert made.reason.startswith("geometric mean of the ratios"), "pairs are not trimmed"
    assert made.better.cell == NUMPY and made.cost.value == made.times.value == made.ratio.value
    assert made.saves.value == pytest.approx(1 - made.ratio.value) and not made.needs


def test_a_turn_that_others_disturbed_on_either_side_does_not_enter() -> None:
    quiet = [True] * 6
    loud = [0.2 * t for t in TURNS[:2]] + list(TURNS[2:])
    base = group(NUMPY, [run(NUMPY, n, TURNS, heat=str(n)) for n in range(3)])
    other = group(TORCH, [run(TORCH, n, loud, heat=str(n), quiet=[False, False, *quiet[2:]]) for n in range(3)])
    [made] = evaluated(base, other)
    assert made.ratio.value == pytest.approx(1.0)
    # Of another heat they were not neighbours: then their values are compared.
    apart = group(TORCH, [run(TORCH, n, loud, heat=f"other {n}") for n in range(3)])
    [made] = evaluated(base, apart)
    assert made.by == "run" and made.ratio.value == pytest.approx(sum(loud) / sum(TURNS))


def test_a_disturbed_repeat_does_not_enter_as_long_as_three_are_quiet() -> None:
    base = group(NUMPY, [run(NUMPY, n, 1.0 + 0.001 * n) for n in range(4)])
    runs = [run(TORCH, n, 1.2 + 0.002 * n) for n in range(3)] + [run(TORCH, 3, 9.0, disturbed=True)]
    [made] = evaluated(base, group(TORCH, runs))
    assert (made.pairs, made.left_out, made.quiet, made.confidence) == (3, 1, True, Confidence.CONFIRMED)
    assert made.ratio.value == pytest.approx(1.2, rel=0.01)
    # With two quiet ones all enter, and nothing is sure.
    [made] = evaluated(base, group(TORCH, [replace(runs[0], details={"disturbed": True}), *runs[1:]]))
    assert (made.pairs, made.left_out, made.quiet) == (4, 0, False)
    assert made.confidence is not Confidence.CONFIRMED and "other programs" in made.reason


@pytest.mark.parametrize("threads", [1, 2])
def test_more_cores_are_not_compared_where_others_used_them_during_every_run(threads: int) -> None:
    cells = infer_cell("c", threads=1), infer_cell("c" if threads > 1 else "cpp", threads=threads)
    base, other = (
        group(cell, [run(cell, n, factor + 0.001 * n, disturbed=True) for n in range(4)])
        for cell, factor in zip(cells, (1.0, 1.6), strict=True)
    )
    [made] = evaluated(base, other, varies="threads" if threads > 1 else "runtime")
    if threads == 1:
        assert (made.answer, made.confidence) == (Answer.DIFFERENT, Confidence.PROVISIONAL)
    else:
        assert (made.answer, made.confidence, made.better) == (Answer.OPEN, Confidence.INCONCLUSIVE, None)
        assert "every run" in made.reason and made.needs == "a machine that nobody else uses"
        assert made.ratio.word == "range", "an interval would say that they differ"


def test_time_to_a_target_is_that_of_a_step_where_the_steps_are_the_same() -> None:
    def trained(cell: Cell, step: float, steps: Sequence[float]) -> Group:
        numbers = [
            {"steps_to_quality": s, "time_to_quality": step * s * (3 if n == 1 else 1)} for n, s in enumerate(steps)
        ]
        return group(cell, [run(cell, n, step * (1 + 0.001 * n), numbers=told) for n, told in enumerate(numbers)])

    base = trained(NUMPY, 1.0, (100, 300, 120))
    [made] = evaluated(base, trained(TORCH, 1.5, (100, 300, 120)), metric="time_to_quality")
    assert (made.metric, made.ratio.value) == (STEP, pytest.approx(1.5))
    [made] = evaluated(base, trained(TORCH, 1.5, (100, 300, 150)), metric="time_to_quality")
    assert (made.metric, made.by) == ("time_to_quality", "seed")
    assert made.ratio.value == pytest.approx(1.5 * 1.25 ** (1 / 3))


@pytest.mark.parametrize(
    ("compiles", "decides"), [(0.0, STEP), (2.0, STEP), (4.0, "time_to_quality"), (700.0, "time_to_quality")]
)
def test_whole_times_decide_where_one_side_compiles_in_its_first_step(compiles: float, decides: str) -> None:
    """JAX is faster in each step, and a training of a second has seven of compiling before it."""

    def trained(cell: Cell, step: float, first: float) -> Group:
        numbers = {"steps_to_quality": 100, "first_step_time": first, "time_to_quality": first + 99 * step}
        return group(cell, [run(cell, n, step * (1 + 0.001 * n), numbers=numbers) for n in range(3)])

    base, other = trained(NUMPY, 1.0, 1.0), trained(JAX, 0.5, 0.5 + compiles)
    [made] = evaluated(base, other, metric="time_to_quality")
    assert made.metric == decides
    assert (made.better is base) == (compiles > 100)


def test_whole_times_decide_where_one_side_takes_long_to_join() -> None:
    """Horovod's ranks join for a sixth of a second, and train for half of one."""

    def trained(cell: Cell, step: float, join: float) -> Group:
        details = {"disturbed": False, "data_to_start_s": join}
        numbers = {"steps_to_quality": 100, "first_step_time": step, "time_to_quality": join + 100 * step}
        return group(cell, [run(cell, n, step * (1 + 0.001 * n), numbers=numbers, details=details) for n in range(3)])

    base, other = trained(NUMPY, 1.0, 0.5), trained(JAX, 0.97, 30.0)
    [made] = evaluated(base, other, metric="time_to_quality")
    assert made.metric == "time_to_quality"
    assert made.better is base
    [made] = evaluated(base, trained(JAX, 0.97, 0.5), metric="time_to_quality")
    assert made.metric == STEP


@pytest.mark.parametrize("quiet", [True, False])
def test_all_steps_count_on_the_way_to_a_target_unless_others_computed(quiet: bool) -> None:
    """A slow step in ten is in no median, and in the time that training takes."""

    def trained(cell: Cell, mean: float) -> Group:
        runs = []
        for n in range(3):
            numbers = {"steps_to_quality": 100, "time_to_quality": 100 * mean}
            made = run(cell, n, TURNS, heat=str(n), quiet=[quiet] * 6, disturbed=not quiet, numbers=numbers)
            made.details["turns"]["mean_seconds"] = [mean * t for t in TURNS]
            runs.append(made)
        return group(cell, runs)

    base, other = trained(NUMPY, 1.0), trained(TORCH, 1.3)
    [made] = evaluated(base, other, metric="time_to_quality")
    assert (made.metric, made.ratio.value) == (STEP, pytest.approx(1.3 if quiet else 1.0))
    [made] = evaluated(base, other)
    assert made.ratio.value == pytest.approx(1.0), "a step's own time is its median"


def test_a_verdict_is_sure_only_of_three_runs_a_side_that_were_asked_for_and_are_complete() -> None:
    whole = in_turn(NUMPY, 1.0, 6), in_turn(TORCH, 1.5, 6)
    assert evaluated(*whole)[0].confidence is Confidence.CONFIRMED
    assert evaluated(in_turn(NUMPY, 1.0, 2), in_turn(TORCH, 1.5, 2))[0].confidence is not Confidence.CONFIRMED
    assert "no question" in evaluated(*whole, asked=False)[0].reason
    [waiting] = evaluated(*whole, pending=[("train", JAX.id), ("train", "another.cell")])
    assert waiting.confidence is Confidence.PROVISIONAL and "still to come" in waiting.reason
    assert evaluated(*whole, pending=[("infer", JAX.id)])[0].confidence is Confidence.CONFIRMED
    by_run = [
        group(cell, [run(cell, n, 1.0 + 0.5 * (cell is TORCH) + 0.001 * n) for n in range(6)])
        for cell in (NUMPY, TORCH)
    ]
    for lost, confidence in ((1, Confidence.CONFIRMED), (2, Confidence.PROVISIONAL)):
        records = [*by_run[1].records[:-lost], *(replace(r, status=Status.FAILED) for r in by_run[1].records[-lost:])]
        [made] = evaluated(by_run[0], group(TORCH, records))
        assert made.confidence is confidence and ("2 of 6 repeats" in made.reason) == (lost == 2)


def test_who_was_killed_is_named_by_the_rules_of_its_pairs() -> None:
    killed = group(JAX, [run(JAX, 0, 1.0, status=Status.FAILED, cause=Cause.KILLED)])
    groups = [in_turn(NUMPY, 1.0), in_turn(TORCH, 2.0), killed]
    made = Contrasts([pair(TORCH, NUMPY), pair(JAX, NUMPY)], groups, Floors(groups))
    assert len(list(made)) == 1 and made.killed("r.*", "iris-mlp") == JAX.id
    assert not made.killed("r.two", None) and not made.killed("r.one", "another")


def test_an_asked_pair_that_lacks_a_side_is_counted_unless_this_machine_cannot_run_it() -> None:
    groups = [in_turn(NUMPY, 1.0), group(TORCH, [run(TORCH, 0, 1.0, status=Status.FAILED, cause=Cause.KILLED)])]
    gone, unable = pair(TORCH, NUMPY), pair(JAX, NUMPY)
    assert Contrasts([gone, unable], groups, Floors(groups)).lacking == [gone, unable]
    assert not Contrasts([replace(gone, asked=False)], groups, Floors(groups)).lacking
    groups.append(group(JAX, [run(JAX, 0, 1.0, status=Status.SKIPPED, cause=Cause.UNSUPPORTED)]))
    assert Contrasts([gone, unable], groups, Floors(groups)).lacking == [gone]


def test_of_rules_and_workloads_each_pair_is_found_once() -> None:
    groups = [in_turn(NUMPY, 1.0), in_turn(TORCH, 2.0)]
    twice = [pair(TORCH, NUMPY), replace(pair(TORCH, NUMPY), rules=("s",), asked=False)]
    made = Contrasts(twice, groups, Floors(groups))
    assert len(list(made)) == len(made.of("r.*")) == len(made.of("s", "iris-mlp")) == 1
    assert made.of("s")[0].asked, "a question asks for it by another rule"
    assert not made.of("r.one", "another") and not made.of("r") and made.of("s", varies="framework")


@pytest.mark.parametrize(
    "told", [{}, {"seconds": "x"}, {"seconds": [None, "1", -1.0, True]}, {"quiet": 7}, {"heat": []}]
)
def test_odd_turns_of_a_record_leave_its_values(told: dict[str, Any]) -> None:
    groups = in_turn(NUMPY, 1.0), in_turn(TORCH, 1.5)
    for single in groups[1].records:
        single.details["turns"] = {"heat": f"h{single.repeat}", "metric": STEP} | told
    [made] = evaluated(*groups)
    assert made.by == "run" and made.ratio.value == pytest.approx(1.5 * 1.01, rel=1e-3)


def test_rates_of_turns_count_the_samples_of_each_side() -> None:
    cells = train_cell("numpy", batch=16), train_cell("torch", batch=32)
    groups = [in_turn(cell, 1.0) for cell in cells]
    for side, cell in zip(groups, cells, strict=True):
        for single in side.records:
            single.numbers["samples_per_second"] = cell.batch / single.numbers[STEP]
    [made] = evaluated(*groups, metric="samples_per_second")
    assert made.by == "turn" and made.ratio.value == pytest.approx(2.0) and made.cost.value == pytest.approx(0.5)
    assert made.better is groups[1]


def test_runtimes_that_pairs_join_are_compared_by_one_measure() -> None:
    inside = {"python": ["bind", "copy"]}
    groups = []
    for runtime, call, whole in (("torch-eager", 5.0, 6.0), ("python", 2.0, 2.0), ("c", 1.0, 1.5)):
        cell = infer_cell(runtime)
        runs = [run(cell, n, call, numbers={"latency": call, "end_to_end_time": whole + 0.01 * n}) for n in range(3)]
        for made in runs:
            made.details["run_includes"] = inside.get(runtime, [])
        groups.append(group(cell, runs))
    eager, python, c = groups
    pairs = [pair(side.cell, base.cell, "latency") for side, base in ((c, eager), (python, eager), (c, python))]
    made = Contrasts(pairs, groups, Floors(groups, MARGIN))
    # Neither does more inside of Run; with the third, which does, they stand in one race.
    assert {single.metric for single in made} == {"end_to_end_time"} and [p for p, _ in made.by_pair()] == pairs
    assert [single.metric for single in Contrasts(pairs[:1], groups, Floors(groups, MARGIN))] == ["latency"]


def test_the_best_excludes_ties_and_does_not_know() -> None:
    cells = [train_cell(name) for name in ("numpy", "torch")]
    spread = train_cell("torch", strategy="mpi-allreduce", ranks_per_node=2)
    far = train_cell("jax")
    groups = [in_turn(cell, factor, 8) for cell, factor in zip((*cells, spread), (2.0, 1.0, 1.0), strict=True)]
    pairs = [pair(cells[1], cells[0]), pair(spread, cells[1], varies="ranks_per_node")]
    lone = in_turn(far, 1.0)
    made = Contrasts(pairs, groups, Floors(groups, MARGIN))
    found = best(made, [*groups, lone])
    assert found is not None and found.first.cell == cells[1], "of two that tie the one with fewer cores"
    assert [side.cell for side in found.tied] == [spread] and [side.cell for side in found.unknown] == [far]
    [(excluded, times, confidence)] = found.excluded
    assert excluded.cell == cells[0] and times.value == pytest.approx(2.0, rel=0.05)
    assert confidence is confidence_of(found) is Confidence.CONFIRMED
    # Whom nothing joins counts as one that is open.
    assert [(test.claimed, test.rival) for test in found.tests] == [(False, True)]
    # Along two pairs intervals add up, and what that excludes is a test of its own.
    found = best(made, [groups[0], groups[2]])
    assert found is not None and found.first.cell == spread and len(found.tests) == 1
    assert found.excluded[0].times.low < times.low and set(found.contrasts) == set(made)
    alone = best([], [lone], metric=STEP)
    assert alone is not None and alone.first is lone and best([], []) is None


def test_two_that_are_compared_themselves_need_no_third_and_else_the_narrowest_path_tells() -> None:
    cells = (NUMPY, TORCH, JAX, train_cell("keras"))
    steps = (1.0, 1.02, 1.02, 1.3)
    groups = [
        group(cell, [run(cell, n, factor * (1 + wide * (-1) ** n)) for n in range(6)])
        for cell, factor, wide in zip(cells, steps, (0.001, 0.001, 0.08, 0.001), strict=True)
    ]
    pairs = [pair(cells[a], cells[b]) for a, b in ((1, 0), (2, 0), (2, 1), (3, 1), (3, 2))]
    made = list(Contrasts(pairs, groups, Floors(groups, MARGIN)))
    found = best(made, groups)
    assert found is not None and found.first is groups[0]
    # The fourth by way of the second, whose interval is narrower than the third's.
    assert set(found.contrasts) == {made[0], made[1], made[3]} and len(found.tests) == 1
    [alone] = [entry for entry in found.excluded if entry.group is groups[3]]
    assert alone.times.low == pytest.approx(made[0].cost.low * made[3].cost.low)


def test_in_a_tie_the_one_beside_which_most_is_known_stands_first() -> None:
    groups = [
        group(cell, [run(cell, n, 1.0 + 0.01 * (-1) ** (n + place)) for n in range(8)])
        for place, cell in enumerate((NUMPY, TORCH, JAX))
    ]
    pairs = [pair(JAX, NUMPY), pair(TORCH, JAX)]
    wide = max(made.half_width for made in Contrasts(pairs, groups, Floors(groups)))
    # Each pair's interval lies within the margin, and the sum of both does not.
    made = Contrasts(pairs, groups, Floors(groups, math.expm1(1.5 * wide)))
    found = best(made, groups)
    assert found is not None and found.first.cell == JAX and len(found.tied) == 2 and not found.unknown


def test_beside_a_busy_process_the_best_is_of_the_faster_part_and_who_is_not_comparable_has_a_pair() -> None:
    ways = [
        train_cell("torch", strategy=name, ranks_per_node=2) for name in ("mpi-allreduce", "mpi-sendrecv", "ddp-gloo")
    ]
    cells = (NUMPY, TORCH, *ways)
    groups = [in_turn(c, f, disturbed=True) for c, f in zip(cells, (1.0, 1.5, 1.7, 1.7, 3.0), strict=True)]
    pairs = [pair(TORCH, NUMPY), *(pair(way, TORCH, varies="ranks_per_node") for way in ways)]
    pairs += [pair(way, ways[0], varies="strategy") for way in ways[1:]]
    made = Contrasts(pairs, groups, Floors(groups, MARGIN))
    found = best(made, groups, metric=STEP)
    # The three ways are joined to each other, and more than the two alone; yet each of them takes longer.
    assert found is not None and found.first is groups[0] and [e.group for e in found.excluded] == [groups[1]]
    assert found.unknown == tuple(groups[2:]) and not found.open and len(found.tests) == 3
    # Whom a pair sets beside the first, but says nothing of, is not without a pair.
    found = best(made, groups[1:], metric=STEP)
    assert found is not None and found.first is groups[2], "one alone is no part"
    assert [made.needs for made in found.open] == ["a machine that nobody else uses"] and not any(
        test.p == 1.0 and test.rival for test in found.tests
    )


def test_a_tie_on_a_disturbed_machine_is_not_sure() -> None:
    for disturbed, confidence in ((False, Confidence.CONFIRMED), (True, Confidence.PROVISIONAL)):
        groups = [in_turn(cell, 1.0, 6, disturbed=disturbed) for cell in (NUMPY, TORCH)]
        found = best(evaluated(*groups), groups)
        assert found is not None and len(found.tied) == 1 and not found.unknown
        assert confidence_of(found) is confidence


def test_what_is_excluded_has_the_interval_that_decided_and_its_level() -> None:
    groups = [
        group(cell, [run(cell, n, factor * (1 + 0.06 * (-1) ** (n + place // 2) * (1 + place) / 3)) for n in range(6)])
        for place, (cell, factor) in enumerate(
            zip((NUMPY, TORCH, JAX, train_cell("keras")), (1.0, 2.0, 1.03, 1.05), strict=True)
        )
    ]
    made = evaluated(*groups)
    found = best(made, groups)
    assert found is not None and found.excluded[0].group is groups[1] and found.first is groups[0]
    assert found.excluded[0].times.word == made[0].cost.word != "95 % interval"


def test_a_group_s_own_number_is_that_of_the_runs_that_are_compared() -> None:
    runs = [run(TORCH, n, 1.5 + 0.01 * n) for n in range(3)] + [run(TORCH, n, 9.0, disturbed=True) for n in range(3, 8)]
    side, loud = group(TORCH, runs), group(TORCH, runs[1:])
    assert (side.summary(STEP).median, side.summary(STEP).count) == (pytest.approx(1.51), 3)  # type: ignore[union-attr]
    assert loud.summary(STEP).median == 9.0, "of two quiet runs all enter"  # type: ignore[union-attr]


def test_turns_that_leave_a_side_without_its_other_repeats_are_not_sure() -> None:
    base, other = in_turn(NUMPY, 1.0, 6), in_turn(TORCH, 1.5, 6)
    left = [*other.records[:3], *(replace(single, status=Status.FAILED) for single in other.records[3:])]
    [made] = evaluated(base, group(TORCH, left))
    assert (made.by, made.confidence) == ("turn", Confidence.PROVISIONAL) and "3 of 6 repeats" in made.reason


def test_turns_of_which_none_was_quiet_on_both_sides_are_not_quiet() -> None:
    first, last = [True] * 4 + [False] * 4, [False] * 4 + [True] * 4
    groups = [
        group(cell, [run(cell, n, [factor + 0.01 * n] * 8, heat=str(n), quiet=quiet) for n in range(4)])
        for cell, factor, quiet in ((NUMPY, 1.0, first), (TORCH, 1.5, last))
    ]
    [made] = evaluated(*groups)
    assert made.shown and (made.quiet, made.confidence) == (False, Confidence.PROVISIONAL)


def test_half_widths_tell_a_runner_when_to_stop() -> None:
    groups = [in_turn(NUMPY, 1.0, 4), in_turn(TORCH, 1.01, 4)]
    planned = pair(TORCH, NUMPY)
    records = [record for side in groups for record in side.records]
    [(found, (width, runs))] = pair_half_widths([planned, pair(JAX, NUMPY)], records).items()  # type: ignore[arg-type]
    assert found == planned and runs == 4 and 0 < width < 0.05


@pytest.mark.parametrize(("factor", "quiet", "ends"), [(1.0001, True, False), (9.0, True, True), (9.0, False, False)])
def test_two_that_are_apart_beyond_doubt_take_no_more_repeats(factor: float, quiet: bool, ends: bool) -> None:
    marks = [quiet] * 8
    sides = [
        group(cell, [run(cell, n, [value + 0.0001 * value * (n % 3)] * 8, heat=str(n), quiet=marks) for n in range(3)])
        for cell, value in ((NUMPY, 1.0), (TORCH, factor))
    ]
    records = [record for side in sides for record in side.records]
    [(width, runs)] = pair_half_widths([pair(TORCH, NUMPY)], records).values()  # type: ignore[arg-type]
    assert runs == 3 and (width == 0) is ends


def test_an_ad_hoc_contrast_of_runs_without_a_common_repeat_leaves_disturbed_ones_out() -> None:
    base = group(NUMPY, [run(NUMPY, n, 1.0 + 0.01 * n) for n in range(4)])
    runs = [run(TORCH, n, 2.0 + 0.01 * n, disturbed=n == 13) for n in range(10, 14)]
    groups = [base, group(TORCH, runs)]
    made = contrast(groups[1], base, Floors(groups), STEP, varies="framework")
    assert made is not None and (made.by, made.pairs, made.left_out) == ("", 3, 1)
    assert made.shown and made.confidence is Confidence.PROVISIONAL
    assert contrast(groups[1], base, Floors(groups), "latency", varies="framework") is None
    # So do values that stand for the metric.
    halves = contrast(
        groups[1], base, Floors(groups), STEP, varies="framework", of=lambda side: [v / 2 for v in side.values(STEP)]
    )
    assert halves is not None and (halves.pairs, halves.left_out) == (3, 1) and halves.ratio.value == made.ratio.value


_SECONDS = st.lists(st.lists(st.floats(0.5, 2.0), min_size=1, max_size=6), min_size=2, max_size=5)


@given(_SECONDS, st.booleans())
def test_every_interval_says_what_its_verdict_says(sides: list[list[float]], asked: bool) -> None:
    cells = [train_cell(name) for name in ("numpy", "torch", "jax", "keras", "mxnet")]
    groups = [
        group(cell, [run(cell, n, s) for n, s in enumerate(side)]) for cell, side in zip(cells, sides, strict=False)
    ]
    for made in evaluated(*groups, asked=asked):
        if made.decision is None:
            assert made.answer is Answer.OPEN
            continue
        edge = math.log1p(MARGIN)
        _, low, high = made.ratio.logs
        within, apart = -edge <= low and high <= edge, low > 0 or high < 0
        assert made.answer is (Answer.SAME if within else Answer.DIFFERENT if apart else Answer.OPEN)
        assert made.times.value >= 1 and made.ratio.word in made.reason
        assert (made.confidence is Confidence.INCONCLUSIVE) == (made.answer is Answer.OPEN) == bool(made.needs)


@pytest.mark.parametrize(("shape", "least"), [("quiet", 0.9), ("another now and then", 0.8), ("two states", 0.0)])
def test_few_decided_comparisons_are_wrong(shape: str, least: float) -> None:
    """The whole calibration is `tests/benchmarks/bench_decisions.py`."""
    names = ("numpy", "torch", "jax", "keras", "mxnet", "tensorflow")
    cells = {("train", cell.id): cell for cell in map(train_cell, names)}
    base, *others = cells.values()
    design = Design(pairs=[pair(cell, base) for cell in others], points=cells, repeats=dict.fromkeys(cells, 3))
    rng, tally = np.random.default_rng(20261126), Tally()
    for truth in (0.0, math.log(1.2)):
        for _ in range(20):
            study(tally, rng, design, SHAPES[shape], truth)
    # Three standard errors: the seed is fixed, and so is the count.
    assert tally.wrong <= 0.05 * tally.decided + 3 * math.sqrt(0.05 * 0.95 * max(tally.decided, 1))
    assert tally.decided >= least * tally.asked


def test_wrong_verdicts_would_be_seen() -> None:
    """The tally itself counts: what is told to be equal and is not is found out."""
    cells = {("train", cell.id): cell for cell in (NUMPY, TORCH)}
    design = Design(pairs=[pair(TORCH, NUMPY)], points=cells, repeats=dict.fromkeys(cells, 3))
    tally, rng = Tally(), np.random.default_rng(1)
    [made] = evaluated(in_turn(NUMPY, 1.0), in_turn(TORCH, 1.5))
    tally.count([made], {id(made.group): 0.0, id(made.base): 0.0}, 3)
    assert tally.wrong_share == 1.0
    study(tally, rng, design, SHAPES["quiet"], math.log(2))
    assert tally.wrong_share == 0.5


def test_a_side_that_missed_its_target_is_not_faster_to_it() -> None:
    def trained(cell: Cell, step: float, reached: Sequence[bool]) -> Group:
        told = [{"steps_to_quality": 100.0, "time_to_quality": 100 * step} if hit else {} for hit in reached]
        return group(cell, [run(cell, n, step * (1 + 0.001 * n), numbers=numbers) for n, numbers in enumerate(told)])

    [made] = evaluated(
        trained(NUMPY, 1.0, (True,) * 3), trained(TORCH, 0.5, (True, False, False)), metric="time_to_quality"
    )
    assert (made.metric, made.shown) == ("time_to_quality", False)


def test_who_is_shown_to_be_slower_than_another_is_not_first_because_it_is_simpler() -> None:
    two = train_cell("jax", threads=2)
    first, simple, other = (
        group(cell, [run(cell, n, 1.0 + 0.01 * n) for n in range(3)])
        for cell in (train_cell("numpy", threads=2), TORCH, two)
    )

    def made(side: Group, base: Group, ratio: float, error: float) -> Contrast:
        values = [summarise(each.values(STEP)) for each in (side, base)]
        unknown = Decision(
            answer=Answer.OPEN, ratio=ratio, low=0.1, high=9.0, p=1.0, error=error, freedom=60.0, pairs=3
        )
        decision = unknown.at(LEVEL, MARGIN)
        comparison = judged(*values, decision, direction=Direction.LOWER, of="x", ratio=None, margin=MARGIN)  # type: ignore[arg-type]
        told = {"varies": "framework", "metric": STEP, "by": "turn", "pairs": 3, "left_out": 0, "quiet": True}
        return Contrast(group=side, base=base, asked=True, comparison=comparison, **told)  # type: ignore[arg-type]

    pairs = [made(simple, first, 1.04, 0.003), made(other, first, 1.01, 0.2), made(other, simple, 0.8, 0.02)]
    assert [pair.answer for pair in pairs] == [Answer.SAME, Answer.OPEN, Answer.DIFFERENT]
    found = best(pairs, [first, simple, other], metric=STEP)
    assert found is not None and found.first is not simple


@pytest.mark.parametrize(("repeats", "threads", "disturbed"), [(1, 1, False), (4, 2, True)])
def test_what_may_decide_nothing_is_neither_slower_nor_faster(repeats: int, threads: int, disturbed: bool) -> None:
    cells = infer_cell("cpp"), infer_cell("rust", threads=threads)
    sides = [
        group(cell, [run(cell, n, time * (1 + 0.002 * n), disturbed=disturbed) for n in range(repeats)])
        for cell, time in zip(cells, (1.0, 1.5), strict=True)
    ]
    [made] = Contrasts([pair(cells[1], cells[0], varies="runtime")], sides, Floors(sides, MARGIN))
    assert nearness(made) is Nearness.UNKNOWN


def test_a_pair_does_not_end_early_where_a_rival_is_compared_along_it() -> None:
    """Two that are far from their base, and near each other."""
    base, first, rival = in_turn(NUMPY, 1.0, 8), in_turn(TORCH, 9.0, 8), in_turn(JAX, 9.2, 8)
    far, near = evaluated(base, first), evaluated(base, first, rival)
    assert all(made.apart_beyond_doubt for made in far) and len(ends_early(far)) == 1
    assert len(near) == 2 and ends_early(near) == set()
    # A pair of their own tells the two apart.
    own = contrast(rival, first, Floors([first, rival], MARGIN), STEP, varies="framework")
    assert own is not None and {id(made) for made in near} <= ends_early([*near, own])


def test_the_doubt_is_that_of_the_answer_at_the_level_of_all() -> None:
    def beside(cell: Cell, middle: float, swing: float) -> Group:
        runs = [run(cell, n, [math.exp(middle + swing * (-1) ** n) * t for t in TURNS], heat=f"h{n}") for n in range(8)]
        return group(cell, runs)

    # Of one alone it is the same within the margin with p = 0.04; of two the level is lower, and it is a difference.
    sides = beside(NUMPY, 0.0, 0.0), beside(TORCH, 0.077, 0.0193), beside(JAX, 0.0, 0.3)
    [alone] = evaluated(*sides[:2])
    made, _ = evaluated(*sides)
    assert (alone.answer, made.answer) == (Answer.SAME, Answer.DIFFERENT)
    assert (made.doubt, made.confidence) == ("", Confidence.CONFIRMED)
