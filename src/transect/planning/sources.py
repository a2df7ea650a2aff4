"""Which source files and which environment a cell's outcome depends on."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from transect.domain.cell import Cell
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.launch import LAUNCHERS
from transect.launch.rendezvous import RENDEZVOUS
from transect.onnx_models.exporters import EXPORTERS
from transect.planning.code_hash import PACKAGE, code_hash
from transect.planning.environments import has_environment
from transect.runtimes import RUNTIMES
from transect.training.datasets import DATASETS
from transect.training.frameworks import FRAMEWORKS
from transect.training.strategies import STRATEGIES
from transect.training.workloads import WORKLOADS

__all__ = ["environment_of", "launcher_source", "report_hash", "source_hash"]


def _workload(cell: Cell) -> list[Path]:
    assert cell.workload
    dataset = WORKLOADS.get(cell.workload).dataset
    return [WORKLOADS.source(cell.workload), DATASETS.source(dataset)]


def _train(cell: Cell) -> list[Path]:
    assert cell.framework and cell.strategy
    return [
        PACKAGE / "training" / "worker.py",
        PACKAGE / "launch" / "processes.py",
        FRAMEWORKS.source(cell.framework),
        STRATEGIES.source(cell.strategy),
        RENDEZVOUS.source(STRATEGIES.get(cell.strategy).rendezvous),
        *_workload(cell),
    ]


def _export(cell: Cell) -> list[Path]:
    assert cell.exporter
    return [
        PACKAGE / "onnx_models" / "worker.py",
        EXPORTERS.source(cell.exporter),
        *_workload(cell),
    ]


def _infer(cell: Cell) -> list[Path]:
    assert cell.runtime
    runtime = RUNTIMES.get(cell.runtime)
    return [
        PACKAGE / "runtimes" / "infer.py",
        RUNTIMES.source(cell.runtime),
        *runtime.code_files(),
        *_workload(cell),
    ]


def _bench(cell: Cell) -> list[Path]:
    assert cell.benchmark
    benchmark = BENCHMARKS.get(cell.benchmark)
    return [BENCHMARKS.source(cell.benchmark), *benchmark.code_files(), *_ingest(cell)]


def _ingest(cell: Cell) -> list[Path]:
    from transect.hpc.base import PARSERS

    return [PACKAGE / "hpc" / "ingest.py", *(PARSERS.source(name) for name in PARSERS)]


def _data(cell: Cell) -> list[Path]:
    return [PACKAGE / "training" / "prepare.py", *_workload(cell)]


def _reference(cell: Cell) -> list[Path]:
    return [PACKAGE / "training" / "reference.py", *_workload(cell)]


_ROOTS: dict[str, Callable[[Cell], list[Path]]] = {
    "data": _data,
    "reference": _reference,
    "train": _train,
    "export": _export,
    "infer": _infer,
    "bench": _bench,
    "ingest": _ingest,
}


@cache
def _hash_of(stage: str, *plugins: str | None) -> str:
    keys = ("workload", "framework", "strategy", "exporter", "runtime", "benchmark", "source")
    cell = Cell.of(stage=stage, **dict(zip(keys, plugins, strict=True)))  # type: ignore[arg-type]
    return code_hash(_ROOTS[stage](cell))


def source_hash(cell: Cell) -> str:
    """Hash the sources that the cell runs: the same for all cells of the same plug-ins."""
    return _hash_of(
        cell.stage, cell.workload, cell.framework, cell.strategy, cell.exporter, cell.runtime,
        cell.benchmark, cell.source,
    )  # fmt: skip


def launcher_source(name: str, where: str) -> Path:
    """Return a launcher's file: how ranks are started is part of what is measured."""
    LAUNCHERS.get(name, where)
    return LAUNCHERS.source(name)


def report_hash() -> str:
    """Hash what the report is made with: its modules, templates and styles."""
    roots = [PACKAGE / "report" / "build.py"]
    for folder in ("report", "analysis"):
        roots += [p for p in (PACKAGE / folder).rglob("*") if p.is_file() and p.suffix != ".pyc"]
    return code_hash(roots)


def _train_environment(cell: Cell) -> str:
    """Return the framework's environment, or another one that the strategy or a GPU needs."""
    assert cell.framework and cell.strategy
    own = FRAMEWORKS.get(cell.framework).environment
    name = STRATEGIES.get(cell.strategy).environments.get(cell.framework, own)
    # Where one lock file cannot serve both, `envs/NAME-cuda` is the one for GPUs.
    return f"{name}-cuda" if cell.device == "cuda" and has_environment(f"{name}-cuda") else name


def environment_of(cell: Cell) -> str:
    """Return the environment that the cell runs in; empty for the driver's own."""
    match cell.stage:
        case "train":
            return _train_environment(cell)
        case "data" | "reference":
            return "base"
        case "export":
            assert cell.exporter
            return EXPORTERS.get(cell.exporter).environment
        case "infer":
            assert cell.runtime
            return RUNTIMES.get(cell.runtime).environment
        case "bench":
            assert cell.benchmark
            return BENCHMARKS.get(cell.benchmark).environment or ""
    return ""
