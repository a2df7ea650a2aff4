"""A study's grids into cells, every name checked against the registries."""

from __future__ import annotations

from functools import cache
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
from transect.training.datasets import DATASETS, StoredDataset
from transect.training.frameworks import FRAMEWORKS
from transect.training.layers import has_batch_norm
from transect.training.strategies import STRATEGIES
from transect.training.workloads import WORKLOADS, Parameters

__all__ = [
    "dataset_paths",
    "expand",
    "plain",
    "reason_to_skip",
    "reference_of",
    "repeats",
    "resolve_parameters",
]


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
            found = Parameters.model_validate(defaults | override)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            raise BadInput(
                f"{where}: key 'workloads.{name}.{key}': {first['msg']}, found {first['input']!r}"
            ) from None
        result[name] = _with_paths(name, found, where)
    return result


def dataset_paths(workload: str | None) -> tuple[str, ...]:
    """Return the names of the dataset's options that are files or folders."""
    assert workload
    return tuple(getattr(DATASETS.get(WORKLOADS.get(workload).dataset), "paths", ()))


def _with_paths(name: str, found: Parameters, where: Path) -> Parameters:
    """Make paths absolute: those of a study are relative to its file."""
    options = dict(found.dataset_options)
    for key in dataset_paths(name):
        if options.get(key):
            path = (where.parent / str(options[key])).resolve()
            if not path.exists():
                text = (
                    f"key 'workloads.{name}.dataset_options.{key}': {path}: no such file or folder"
                )
                raise BadInput(f"{where}: {text}")
            options[key] = str(path)
    workload = WORKLOADS.get(name)
    dataset = DATASETS.get(workload.dataset)
    if isinstance(dataset, StoredDataset):
        try:
            dataset.check(options, workload.sample)
        except BadInput as error:
            raise BadInput(f"{where}: key 'workloads.{name}.dataset_options': {error}") from None
    return found.model_copy(update={"dataset_options": options})


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
        Cell.of(
            stage="train", workload=workload, framework=framework, strategy=strategy, nodes=nodes,
            ranks_per_node=ranks, threads=threads, precision=precision, device=grid.device,
            network=network, learning_rate_rule=grid.learning_rate_rule, reduce=reduce, input=source,
            batch=parameters[workload].batch * (nodes * ranks if grid.scaling == "weak" else 1),
            repeat=repeat,
        )
        for grid in study.train.grids
        for workload, framework, strategy, nodes, ranks, threads, precision, network, reduce, source
        in product(
            grid.workloads, grid.frameworks, grid.strategies, grid.nodes, grid.ranks,
            grid.threads, grid.precisions, grid.networks, grid.reduce, grid.inputs,
        )
        for repeat in range(grid.repeats or study.train.repeats)
    ]  # fmt: skip


def repeats(study: Study) -> int:
    """Return how many starts the data stage has to draw."""
    return max([study.train.repeats, *(grid.repeats or 0 for grid in study.train.grids)])


@cache
def _has_batch_norm(workload: str) -> bool:
    return has_batch_norm(WORKLOADS.get(workload).layers)


@cache
def reference_of(cell: Cell) -> Cell:
    """Return the reference of a training cell: the same problem, whoever computes it.

    Its batches are cut in parts only where the parts change the result.
    """
    assert cell.workload and cell.batch
    cut = cell.reduce == "sum" or _has_batch_norm(cell.workload)
    shards = cell.ranks if cut and cell.batch % cell.ranks == 0 else 1
    return Cell.of(
        stage="reference", workload=cell.workload, framework="numpy", strategy="single",
        precision="fp64", batch=cell.batch, repeat=cell.repeat, shards=shards,
        reduce=cell.reduce if shards > 1 else "mean", learning_rate_rule=cell.learning_rate_rule,
        input="synthetic" if cell.input == "synthetic" else "stored",
    )  # fmt: skip


def _infer(study: Study) -> list[Cell]:
    cells = []
    for grid in study.infer.grids:
        for runtime, workload, provider, batch, threads in product(
            grid.runtimes, grid.workloads, grid.providers, grid.batches, grid.threads
        ):
            exporters: list[Any] = grid.exporters if RUNTIMES.get(runtime).uses_exporter else [None]
            cells += [
                Cell.of(
                    stage="infer", workload=workload, runtime=runtime, provider=provider,
                    exporter=exporter, batch=batch, threads=threads, repeat=repeat,
                )
                for exporter in exporters
                for repeat in range(study.infer.repeats)
            ]  # fmt: skip
    return cells


def plain(cell: Cell) -> bool:
    """Whether a training cell is one whose weights are exported: on one CPU rank and thread."""
    return (
        cell.strategy == "single" and cell.device == "cpu" and cell.threads == 1
        and cell.precision == "fp32" and cell.input == "stored" and cell.repeat == 0
    )  # fmt: skip


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
               and plain(cell)}  # fmt: skip
    for workload in study.export.workloads:
        if workload not in trained:
            raise BadInput(
                f"{where}: export.workloads: '{workload}' is exported from "
                f"{study.export.framework} single on one rank, which no train grid has"
            )
    workloads = sorted({str(cell.workload) for cell in cells})
    cells += [Cell.of(stage="data", workload=workload) for workload in workloads]
    cells += [
        reference_of(cell)
        for cell in cells
        if cell.stage == "train" and parameters[str(cell.workload)].reference_steps != 0
    ]
    cells += [
        Cell.of(stage="export", workload=w, framework=study.export.framework, exporter=exporter)
        for w in study.export.workloads
        for exporter in study.export.exporters
    ]
    cells += _infer(study)
    cells += [
        Cell.of(
            stage="bench", benchmark=name, threads=threads, nodes=nodes, ranks_per_node=ranks,
            network=network, device=grid.device, options=tuple(sorted(options.items())), repeat=repeat,
        )
        for grid in study.bench.grids
        for name, threads, ranks, nodes, network, options in product(
            grid.benchmarks, grid.threads, grid.ranks, grid.nodes, grid.networks, grid.options
        )
        for repeat in range(study.bench.repeats)
    ]  # fmt: skip
    cells += [Cell.of(stage="ingest", source=_source(path)) for path in study.ingest.paths]
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
    if cell.stage == "train" and cell.input == "files":
        assert cell.workload
        dataset = WORKLOADS.get(cell.workload).dataset
        if not getattr(DATASETS.get(dataset), "files", False):
            return f"the samples of {dataset} are not files that could be decoded in each step"
    if cell.stage == "train" and cell.batch and cell.batch % cell.ranks:
        return f"a global batch of {cell.batch} cannot be cut in {cell.ranks} equal parts"
    return None
