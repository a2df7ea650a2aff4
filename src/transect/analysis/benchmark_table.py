"""The best valid value of each benchmark on each system, and what may not be compared with what."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from transect.analysis.groups import grouped
from transect.analysis.hardware import BenchmarkValue
from transect.domain.metrics import METRICS, Direction


@dataclass(frozen=True, kw_only=True, slots=True)
class Barrier:
    """Parameters that have to agree before two values may be compared, and why.

    `names` lists spellings of one parameter. An empty `benchmark` stands for all, and empty `metrics` for all.
    """

    names: tuple[str, ...]
    what: str
    reason: str
    benchmark: str = ""
    metrics: frozenset[str] = frozenset()

    def concerns(self, value: BenchmarkValue) -> bool:
        """Whether it stands between this value and others."""
        return self.benchmark in ("", value.benchmark) and (not self.metrics or value.name in self.metrics)


_SAMPLES = frozenset({"samples_per_second", "throughput", "latency"})

# miniBUDE: Poenaru, Lin and McIntosh-Smith, "A performance analysis of modern parallel programming
# models using a compute-bound application", ISC 2021; the formula is printed by its own source. The
# size of a work-group changes how work is dealt out, not how it is counted: no barrier.
INCOMPARABLE: tuple[Barrier, ...] = (
    Barrier(
        benchmark="minibude",
        names=("ppwi", "poses_per_work_item", "poses_per_workitem", "PPWI"),
        what="poses per work-item",
        reason="miniBUDE counts operations by a formula that depends on the poses per work-item, "
        "so one GFLOP/s is not the same work as the other; the times of one deck can be compared",
    ),
    Barrier(
        benchmark="docking-probe",
        names=("poses_per_item",),
        what="poses per work-item",
        metrics=frozenset({"kernel_flops"}),
        reason="It counts as miniBUDE does: by a formula that depends on the poses per work-item; the "
        "times per pose of one deck can be compared",
    ),
    Barrier(
        benchmark="npb",
        names=("class", "problem_class"),
        what="problem class",
        reason="Each class is another problem, from one that fits a cache to one that fills nodes",
    ),
    Barrier(
        metrics=_SAMPLES,
        names=("model", "network", "task"),
        what="model",
        reason="A sample of another model is another amount of work",
    ),
)

# No best among them: a check, and times of problems whose size is chosen freely.
_NOT_RATED = frozenset({"residual", "benchmark_time", "pose_time", "warm_up_time"})

_SPELLINGS = {
    "threads": ("threads", "threads_counted", "threads_requested", "num_threads", "omp_threads"),
    "nodes": ("nodes", "num_nodes"),
    "ranks": ("ranks", "processes", "num_processes", "mpi_ranks", "mpi_processes"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Best:
    """The best valid value of one series of one system; `value` is None when no run is valid.

    `runs` counts the runs of this benchmark and variant on this system, `bad` those that are not
    valid by their status. `rivals` is the number of systems in the same comparison, this one
    included; `wins` says whether it is the best of two or more.
    """

    system: str
    benchmark: str
    variant: str
    name: str
    series: str
    value: BenchmarkValue | None
    runs: int
    bad: tuple[tuple[str, int], ...]
    reasons: tuple[str, ...]
    barrier: tuple[str, ...] = ()
    rivals: int = 1
    wins: bool = False
    refused: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """Best values in one table that are not compared with each other."""

    values: tuple[BenchmarkValue, ...]
    barrier: Barrier


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """One benchmark of one system over threads or nodes: values of all runs at each number."""

    first: BenchmarkValue
    points: tuple[tuple[int, tuple[float, ...]], ...]


def series_of(value: BenchmarkValue) -> tuple[str, str, str]:
    """Return benchmark, metric and series: what a reader would compare, if nothing forbids it."""
    return (value.benchmark, value.name, value.series)


def parameter(value: BenchmarkValue, name: str) -> int | None:
    """Return threads, nodes or ranks: of the cell, or else as printed in the log."""
    of_cell = getattr(value, name)
    if isinstance(of_cell, int):
        return of_cell
    for spelling in _SPELLINGS[name]:
        number = value.parameters.get(spelling)
        if isinstance(number, int) and not isinstance(number, bool) and number > 0:
            return number
    return None


def _rated(value: BenchmarkValue) -> bool:
    known = METRICS.get(value.name)
    return (
        value.valid
        and value.value is not None
        and known is not None
        and known.direction is not Direction.NEUTRAL
        and value.name not in _NOT_RATED
    )


def _barrier(value: BenchmarkValue) -> tuple[str, ...]:
    """Return what has to agree: a run that does not tell it is only comparable with its like."""
    needed = []
    for barrier in INCOMPARABLE:
        if barrier.concerns(value):
            given = [value.parameters[name] for name in barrier.names if name in value.parameters]
            if given or barrier.benchmark:
                needed.append(f"{barrier.what} {given[0] if given else 'unknown'}")
    return tuple(needed)


def _best(values: Sequence[BenchmarkValue]) -> BenchmarkValue:
    """Return the best by the metric's direction.

    A rate may be the best of any message or problem size. A time may not: that of the smallest size
    always wins, so only the smallest one competes.
    """
    lower = METRICS[values[0].name].direction is Direction.LOWER
    if lower:
        smallest = min(value.size or 0 for value in values)
        values = [value for value in values if (value.size or 0) == smallest]
    sign = 1 if lower else -1
    return min(values, key=lambda value: (sign * (value.value or 0.0), value.run, value.label))


def best_values(values: Sequence[BenchmarkValue]) -> list[Best]:
    """Return a row per system, benchmark, variant and series, the best of each series first.

    Only valid runs compete, in one unit of the registry, and never across an `INCOMPARABLE`
    parameter. A system without a valid run of a benchmark has one row that says so.
    """
    rows: list[Best] = []
    for (system, benchmark, variant), runs in grouped(values, lambda v: (v.system, v.benchmark, v.variant)).items():
        status = {value.run: value for value in runs}
        bad = Counter(run.status for run in status.values() if not run.valid)
        reasons = [run.reason for run in status.values() if not run.valid and run.reason]
        row = Best(
            system=system,
            benchmark=benchmark,
            variant=variant,
            name="",
            series="",
            value=None,
            runs=len(status),
            bad=tuple(sorted(bad.items())),
            reasons=tuple(dict.fromkeys(reasons)),
        )
        rated = [value for value in runs if _rated(value)]
        if len(status) == sum(bad.values()):
            rows.append(row)
        for (name, series, _, barrier), alike in grouped(
            rated, lambda v: (v.name, v.series, v.unit, _barrier(v))
        ).items():
            rows.append(replace(row, name=name, series=series, value=_best(alike), barrier=barrier))
    return sorted(_compared(rows), key=_order)


def _order(row: Best) -> tuple[str, str, str, str, tuple[str, ...], float, str]:
    value = row.value.value if row.value and row.value.value is not None else 0.0
    known = METRICS.get(row.name)
    sign = -1 if known and known.direction is Direction.HIGHER else 1
    return (row.benchmark, row.variant, row.name, row.series, row.barrier, sign * value, row.system)


def compared_by(row: Best) -> tuple[object, ...]:
    """Return what rows of several systems have in common that are compared."""
    unit = row.value.unit if row.value is not None else ""
    return (row.benchmark, row.variant, row.name, row.series, unit, row.barrier)


def _compared(rows: list[Best]) -> list[Best]:
    """Say of each row whether it wins over other systems, and whether a comparison is refused."""
    valued = [row for row in rows if row.value is not None]
    beside: dict[tuple[str, str, str], set[tuple[str, ...]]] = defaultdict(set)
    for row in valued:
        beside[row.benchmark, row.name, row.series].add(row.barrier)
    done = [row for row in rows if row.value is None]
    for members in grouped(valued, compared_by).values():
        best = _best([row.value for row in members if row.value is not None])
        for row in members:
            # Across a barrier there is no best, not even on one side of it: a reader would compare.
            refused = len(beside[row.benchmark, row.name, row.series]) > 1
            wins = len(members) > 1 and row.value is not None and row.value.value == best.value and not refused
            done.append(replace(row, rivals=len(members), wins=wins, refused=refused))
    return done


def refusals(rows: Sequence[Best]) -> list[Refusal]:
    """Return what is not compared: per benchmark and series, the best value on each side."""
    refused = grouped((row for row in rows if row.refused), lambda row: (row.benchmark, row.name, row.series))
    pairs = []
    for members in refused.values():
        sides = {row.barrier: row.value for row in reversed(members) if row.value is not None}
        first = next(iter(sides.values()))
        # Shorter ones first: numbers come in their order.
        order = sorted(sides, key=lambda side: [(len(part), part) for part in side])
        barrier = next(known for known in INCOMPARABLE if known.concerns(first))
        pairs.append(Refusal(values=tuple(sides[side] for side in order), barrier=barrier))
    return pairs


def scaling_series(values: Iterable[BenchmarkValue], axis: str) -> list[Series]:
    """Return each benchmark's valid values over `threads` or `nodes`, two numbers at least.

    Everything else that is known of the placement is held: nodes and ranks over threads, ranks per
    node and threads over nodes, the network, the options, and what `INCOMPARABLE` names.
    """
    series = []
    usable = [v for v in values if _rated(v) and parameter(v, axis) is not None]
    for alike in grouped(usable, lambda v: _held(v, axis)).values():
        points: dict[int, list[float]] = defaultdict(list)
        for run in grouped(alike, lambda v: v.run).values():
            best = _best(run)
            at = parameter(best, axis)
            if at is not None and best.value is not None:
                points[at].append(best.value)
        if len(points) > 1:
            series.append(Series(first=alike[0], points=tuple((n, tuple(points[n])) for n in sorted(points))))
    order = attrgetter("name", "benchmark", "series", "system", "placement")
    return sorted(series, key=lambda line: order(line.first))


def _held(value: BenchmarkValue, axis: str) -> Hashable:
    nodes, ranks = parameter(value, "nodes"), parameter(value, "ranks")
    place: tuple[object, ...] = (nodes, ranks, value.placement)
    if axis == "nodes":
        each = ranks / nodes if ranks and nodes else None
        place = (each, parameter(value, "threads"), value.placement.partition(" · ")[2])
    alike = attrgetter("stage", "system", "benchmark", "variant", "name", "series", "unit", "options")
    return alike(value), _barrier(value), place
