"""A study's grids into cells, every name checked against the registries."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from transect.domain.cell import Cell
from transect.domain.errors import BadInput, unknown_name
from transect.domain.study import Study
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.onnx_models.exporters import EXPORTERS
from transect.runtimes import RUNTIMES
from transect.training.frameworks import FRAMEWORKS
from transect.training.strategies import STRATEGIES
from transect.training.workloads import WORKLOADS, Parameters

__all__ = ["expand", "reason_to_skip", "resolve_parameters"]


def resolve_parameters(study: Study, where: Path) -> dict[str, Parameters]:
    """Return each used workload's hyper-parameters. Raises BadInput naming key and value."""
    used = {w for grid in study.train.grids for w in grid.workloads}
    used |= set(study.export.workloads) | {w for g in study.infer.grids for w in g.workloads}
    for name in study.workloads:
        if name not in WORKLOADS:
            raise unknown_name("workload", name, WORKLOADS, f"{where}: workloads")
    result = {}
    for name in sorted(used):
        defaults = WORKLOADS.get(name, str(where)).defaults.model_dump()
        override = study.workloads.get(name, {})
        for key in override:
            if key not in defaults:
                raise unknown_name("key", key, defaults, f"{where}: workloads.{name}")
        try:
            result[name] = Parameters.model_validate(defaults | override)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            raise BadInput(
                f"{where}: key 'workloads.{name}.{key}': {first['msg']}, found {first['input']!r}"
            ) from None
    return result


def _check_names(study: Study, where: Path) -> None:
    for number, grid in enumerate(study.train.grids):
        for registry, names, key in (
            (WORKLOADS, grid.workloads, "workloads"),
            (FRAMEWORKS, grid.frameworks, "frameworks"),
            (STRATEGIES, grid.strategies, "strategies"),
        ):
            for name in names:
                registry.get(name, f"{where}: train.grids.{number}.{key}")
    for name in study.export.exporters:
        EXPORTERS.get(name, f"{where}: export.exporters")
    FRAMEWORKS.get(study.export.framework, f"{where}: export.framework")
    for number, infer in enumerate(study.infer.grids):
        for name in infer.runtimes:
            RUNTIMES.get(name, f"{where}: infer.grids.{number}.runtimes")
        for name in infer.exporters:
            if name not in study.export.exporters:
                raise BadInput(
                    f"{where}: infer.grids.{number}.exporters: '{name}' is not among "
                    f"export.exporters {study.export.exporters}"
                )
        for name in infer.workloads:
            if name not in study.export.workloads:
                raise BadInput(
                    f"{where}: infer.grids.{number}.workloads: '{name}' is not among "
                    f"export.workloads {study.export.workloads}"
                )
    for number, bench in enumerate(study.bench.grids):
        for name in bench.benchmarks:
            known = BENCHMARKS.get(name, f"{where}: bench.grids.{number}.benchmarks").options
            for key in sorted({key for options in bench.options for key in options}):
                if key not in known:
                    text = f"{where}: bench.grids.{number}.options"
                    raise unknown_name(f"option of {name}", key, known, text)


def _train(study: Study, parameters: dict[str, Parameters]) -> list[Cell]:
    return [
        Cell(
            stage="train", workload=workload, framework=framework, strategy=strategy, nodes=nodes,
            ranks_per_node=ranks, threads=threads, precision=precision, device=grid.device,
            network=network, batch=parameters[workload].batch, repeat=repeat,
        )
        for grid in study.train.grids
        for workload, framework, strategy, nodes, ranks, threads, precision, network in product(
            grid.workloads, grid.frameworks, grid.strategies, grid.nodes, grid.ranks,
            grid.threads, grid.precisions, grid.networks,
        )
        for repeat in range(study.train.repeats)
    ]  # fmt: skip


def _infer(study: Study) -> list[Cell]:
    cells = []
    for grid in study.infer.grids:
        for runtime, workload, provider, batch, threads in product(
            grid.runtimes, grid.workloads, grid.providers, grid.batches, grid.threads
        ):
            exporters: list[Any] = grid.exporters if RUNTIMES.get(runtime).uses_exporter else [None]
            cells += [
                Cell(
                    stage="infer", workload=workload, runtime=runtime, provider=provider,
                    exporter=exporter, batch=batch, threads=threads, repeat=repeat,
                )
                for exporter in exporters
                for repeat in range(study.infer.repeats)
            ]  # fmt: skip
    return cells


def _source(path: str) -> str:
    return Path(path).name or "logs"


def expand(study: Study, where: Path) -> tuple[list[Cell], dict[str, Parameters]]:
    """Return all cells, each once, and the hyper-parameters by workload.

    Raises BadInput for an unknown name, a bad value, a training workload that an export needs
    and no grid trains, or a study without cells.
    """
    _check_names(study, where)
    parameters = resolve_parameters(study, where)
    cells = _train(study, parameters)
    trained = {cell.workload for cell in cells if cell.framework == study.export.framework
               and cell.strategy == "single" and cell.device == "cpu" and cell.threads == 1}  # fmt: skip
    for workload in study.export.workloads:
        if workload not in trained:
            raise BadInput(
                f"{where}: export.workloads: '{workload}' is exported from "
                f"{study.export.framework} single on one rank, which no train grid has"
            )
    workloads = sorted({str(cell.workload) for cell in cells})
    cells += [Cell(stage="data", workload=workload) for workload in workloads]
    cells += [
        Cell(
            stage="reference", workload=w, framework="numpy", strategy="single", precision="fp64",
            batch=parameters[w].batch, repeat=repeat,
        )
        for w in workloads
        for repeat in range(study.train.repeats)
    ]  # fmt: skip
    cells += [
        Cell(stage="export", workload=w, framework=study.export.framework, exporter=exporter)
        for w in study.export.workloads
        for exporter in study.export.exporters
    ]
    cells += _infer(study)
    cells += [
        Cell(
            stage="bench", benchmark=name, threads=threads, nodes=nodes, ranks_per_node=ranks,
            network=network, device=grid.device, options=tuple(sorted(options.items())), repeat=repeat,
        )
        for grid in study.bench.grids
        for name, threads, ranks, nodes, network, options in product(
            grid.benchmarks, grid.threads, grid.ranks, grid.nodes, grid.networks, grid.options
        )
        for repeat in range(study.bench.repeats)
    ]  # fmt: skip
    cells += [Cell(stage="ingest", source=_source(path)) for path in study.ingest.paths]
    if not cells:
        raise BadInput(f"{where}: the study has no cells: give it a train, bench or ingest grid")
    unique = {cell.id: cell for cell in cells}
    return list(unique.values()), parameters


def reason_to_skip(cell: Cell) -> str | None:
    """Ask every plug-in of the cell; return the first reason why it cannot run, or None."""
    asked = []
    if cell.stage == "train":
        assert cell.framework and cell.strategy
        asked = [FRAMEWORKS.get(cell.framework), STRATEGIES.get(cell.strategy)]
    elif cell.stage == "export":
        assert cell.exporter
        asked = [EXPORTERS.get(cell.exporter)]
    elif cell.stage == "infer":
        assert cell.runtime
        asked = [RUNTIMES.get(cell.runtime)]
    elif cell.stage == "bench":
        assert cell.benchmark
        asked = [BENCHMARKS.get(cell.benchmark)]
    for plugin in asked:
        reason = plugin.supports(cell)
        if reason is not None:
            return str(reason)
    if cell.stage == "train" and cell.batch and cell.batch % cell.ranks:
        return f"a global batch of {cell.batch} cannot be cut in {cell.ranks} equal parts"
    return None
