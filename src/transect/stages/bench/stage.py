"""The bench stage: benchmarks that run here."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from transect.domain.axes.bench import BenchCell
from transect.domain.counts import GrowingCounts, OptionChoices
from transect.domain.errors import BadInput, unknown_name
from transect.domain.mpi_libraries import other_environments
from transect.domain.registry import Registry
from transect.domain.study import Containers, Count, Names, Section, StageRepeatUntil, WhereItFits
from transect.domain.system import System
from transect.hpc.base import PARSERS
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.launch.rendezvous import RENDEZVOUS
from transect.planning.context import Context
from transect.planning.stage import STAGES, Stage, points
from transect.stages.bench.pairs import BENCH_PAIRS


class BenchGrid(Section):
    """Benchmarks that are run, over a sweep of nodes, ranks on each, threads, networks, options."""

    benchmarks: Names = Field(description="names from [plugins.md](plugins.md#benchmark)")
    threads: GrowingCounts = Field(default=[1], description="threads")
    ranks: GrowingCounts = Field(default=[1], description="ranks on each node")
    nodes: GrowingCounts = Field(default=[1], description="nodes; ranks are on each")
    networks: list[str | None] = Field(default=[None], min_length=1, description="as in training grids")
    containers: Containers = Field(default=[None])
    options: OptionChoices = Field(
        default=[{}],
        description="one cell for each: problem sizes and the like, see [benchmarks.md](benchmarks.md); a list is a cell "
        "for each of its values, `size: smoke` the options of a run of seconds",
    )
    device: Literal["cpu", "cuda"] = Field(default="cpu", description="`cpu` or `cuda`")
    where_it_fits: WhereItFits = False


class BenchSection(Section):
    """Benchmarks that are run."""

    repeats: Count = Field(default=1, description="runs of each cell")
    repeat_until: StageRepeatUntil = None
    grids: list[BenchGrid] = Field(default=[], description="see below")


def _options(name: str, given: dict[str, int | float | str]) -> tuple[tuple[str, int | float | str], ...]:
    """Return a cell's options, sorted: `size: smoke` is what the benchmark says it is, and what is given goes before it."""
    if "size" not in given:
        return tuple(sorted(given.items()))
    chosen = {**BENCHMARKS.get(name).smoke, **given}
    del chosen["size"]
    return tuple(sorted(chosen.items()))


@STAGES.register("bench")
class Bench(Stage[BenchCell]):
    """Runs a registered benchmark; its log is read like any other."""

    runner = "transect.stages.bench.run:BenchRunner"
    measures = True
    key = "bench"
    section = BenchSection
    spreads = True
    pairs = BENCH_PAIRS

    def check(self, section: BenchSection, context: Context) -> None:
        """Benchmarks and their options are there."""
        for number, grid in enumerate(section.grids):
            where = f"bench.grids.{number}"
            place = context.where(f"{where}.options")
            keys = sorted({key for options in grid.options for key in options})
            for name in grid.benchmarks:
                if not context.knows(BENCHMARKS, [name], f"{where}.benchmarks"):
                    continue
                benchmark = BENCHMARKS.get(name)
                known = {**benchmark.options, "size": "smoke"}
                for key in keys:
                    with context.complaints.noted():
                        if key not in known:
                            raise unknown_name(f"option of {name}", key, known, place)
                for given in [options["size"] for options in grid.options if "size" in options]:
                    with context.complaints.noted():
                        if given != "smoke":
                            raise BadInput(f"{place}: size: expected smoke, found {given!r}")

    def cells(self, section: BenchSection, context: Context) -> Iterable[BenchCell]:
        """The cross product of each grid, with its repeats."""
        for grid in section.grids:
            for point in points(
                benchmark=grid.benchmarks,
                threads=grid.threads,
                ranks_per_node=grid.ranks,
                nodes=grid.nodes,
                network=grid.networks,
                container=grid.containers,
                options=grid.options,
            ):
                point["options"] = _options(point["benchmark"], point["options"])
                for repeat in range(section.repeats):
                    cell = BenchCell(**point, device=grid.device, repeat=repeat)
                    if not grid.where_it_fits or context.fits(cell, self.gpus(cell)):
                        yield cell

    def plugins(self, cell: BenchCell) -> list[tuple[Registry[Any], str]]:
        """The benchmark, the one parser that reads its log, and how its ranks meet."""
        benchmark = BENCHMARKS.get(cell.benchmark)
        return [
            (BENCHMARKS, cell.benchmark),
            (PARSERS, benchmark.parser),
            (RENDEZVOUS, benchmark.rendezvous),
            *benchmark.plugins(cell),
        ]

    def spec(self, cell: BenchCell, context: Context) -> dict[str, Any]:
        """What it reads from outside, if anything."""
        asked = BENCHMARKS.get(cell.benchmark).files(cell)
        files = [str(path) for path in asked]
        return {"files": files} if files else {}

    def files(self, spec: dict[str, Any]) -> list[Path]:
        """Decks and the like; one that is not there is for the benchmark to say."""
        return [path for path in map(Path, spec.get("files", ())) if path.exists()]

    def other_environments(self, cell: BenchCell) -> Iterable[str]:
        """That of its MPI library, where its own has none or another."""
        return other_environments(BENCHMARKS.get(cell.benchmark).mpi(cell))

    def launchers(self, cell: BenchCell, system: System) -> tuple[str, ...]:
        """One that starts all ranks, or a plain process that calls mpiexec itself."""
        benchmark = BENCHMARKS.get(cell.benchmark)
        if not benchmark.by_launcher(cell):
            return ("plain", "mpiexec")
        if other_environments(benchmark.mpi(cell)):
            return ("mpiexec",)
        mpi = RENDEZVOUS.get(benchmark.rendezvous).mpi
        return (system.mpi_launcher if mpi else system.launcher,)

    def offers(self) -> Iterable[tuple[str, str, str]]:
        """Benchmarks whose program is here; what a cell has to ask for is no lack of the machine."""
        for name in BENCHMARKS:
            benchmark, cell = BENCHMARKS.get(name), BenchCell(benchmark=name)
            programs = benchmark.programs(cell)
            missing = bool(programs) and benchmark.find(cell) is None
            detail = f"{' or '.join(programs)} is not on PATH" if missing else ""
            yield f"benchmark {name}", "skipped" if missing else "available", detail

    def environment(self, cell: BenchCell) -> str:
        """The benchmark's; programs of the system have none."""
        benchmark = BENCHMARKS.get(cell.benchmark)
        return benchmark.environment_of(cell) or ""
