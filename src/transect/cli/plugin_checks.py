"""The checks of each kind of plug-in: those that the project's own plug-ins pass."""

from __future__ import annotations

import ast
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

import numpy as np
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError

from transect.cli.rule_checks import (
    Check,
    check_aggregation,
    check_loss,
    check_method,
    check_optimiser,
    check_schedule,
    known,
    same,
)
from transect.domain.axes.bench import BenchCell
from transect.domain.axes.infer import InferCell
from transect.domain.axes.train import TrainCell
from transect.domain.cell import class_of
from transect.domain.errors import FAULTS, BadInput, unknown_name
from transect.domain.registry import Plugin, Registry
from transect.engine.stage import RUNNERS
from transect.federated.aggregations import AGGREGATIONS
from transect.federated.methods import METHODS
from transect.hpc.base import PARSERS
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.hpc.ingest import ingest
from transect.launch import LAUNCHERS, Request
from transect.launch.rendezvous import RENDEZVOUS
from transect.planning.code_hash import file_of
from transect.planning.environments import has_environment
from transect.planning.sources import plugin_files
from transect.planning.stage import STAGES, ordered_stages
from transect.runtimes import RUNTIMES
from transect.training.datasets import DATASETS
from transect.training.frameworks import FRAMEWORKS
from transect.training.losses import LOSSES
from transect.training.memory import MEMORIES
from transect.training.optimisers import OPTIMISERS
from transect.training.schedules import SCHEDULES
from transect.training.strategies import STRATEGIES
from transect.training.workloads import WORKLOADS

# Cuts of a log, evenly spread.
_CUTS = 20


def _reason(what: str, given: object, *, naming: str = "") -> Check:
    """Expect None, or one sentence; with `naming` a sentence that has the word."""
    sentence = isinstance(given, str) and len(given) > 10 and "\n" not in given
    if naming:
        return Check(what, f"one sentence with '{naming}'", given, sentence and naming in str(given))
    return Check(what, "None or one sentence", given, given is None or sentence)


def _all(what: str, kind: type, given: object) -> Check:
    holds = isinstance(given, list) and all(isinstance(item, kind) for item in given)
    return Check(what, f"a list of {kind.__name__}", given, holds)


def _types(plugin: Any) -> Check:
    wrong = []
    try:
        hints = get_type_hints(type(plugin))
    except NameError as error:  # of what its file imports for a type checker alone
        return Check("members of a wrong type", [], f"not looked at: {error}", holds=True)
    for name, hint in hints.items():
        value = getattr(plugin, name)
        kind = get_args(hint)[0] if get_origin(hint) is ClassVar else hint
        # Of a few classes pydantic knows no schema, and of mappings only dict.
        with suppress(PydanticSchemaGenerationError):
            try:
                TypeAdapter(object if isinstance(value, Mapping) else kind).validate_python(value, strict=True)
            except ValidationError as error:
                wrong.append(f"{name} = {value!r}: {error.errors()[0]['msg'].lower()}")
    return same("members of a wrong type", [], wrong)


def _environment(plugin: Any) -> Check:
    return Check(
        "environment", "a folder with requirements.txt", plugin.environment, has_environment(plugin.environment)
    )


def tiny_cell(
    framework: str, strategy: str = "single", ranks: int = 1, workload: str = "iris-mlp", **axes: Any
) -> TrainCell:
    """Return a cell of few samples."""
    return TrainCell(workload=workload, framework=framework, strategy=strategy, ranks_per_node=ranks, batch=16, **axes)


def place_of(framework: str) -> TrainCell:
    """Return the smallest cell that a framework takes: on one rank, or on two of MPI."""
    cell = tiny_cell(framework)
    return cell if FRAMEWORKS.get(framework).supports(cell) is None else tiny_cell(framework, "mpi-allreduce", 2)


def _framework(plugin: Any, name: str) -> Iterator[Check]:
    yield _environment(plugin)
    for rule in plugin.optimisers:
        yield known(f"optimiser {rule}", rule, OPTIMISERS)
    if plugin.not_installed:
        yield same("supports of every cell", plugin.not_installed, plugin.supports(tiny_cell(name)))
        return
    cell = place_of(name)
    yield same(f"supports a cell in fp32 by {cell.strategy}", None, plugin.supports(cell))
    yield _reason(
        "supports of a precision that is not there",
        plugin.supports(cell.model_copy(update={"precision": "int3"})),
        naming="int3",
    )
    yield _reason(
        "supports of a device that is not there",
        plugin.supports(cell.model_copy(update={"device": "abacus"})),
        naming="abacus",
    )


def _strategy(plugin: Any, name: str) -> Iterator[Check]:
    yield known("rendezvous", plugin.rendezvous, RENDEZVOUS)
    for framework in FRAMEWORKS:
        for ranks in (1, 4):
            cell = tiny_cell(framework, name, ranks)
            yield _reason(f"supports of {framework} on {ranks} ranks", plugin.supports(cell))
            layout = plugin.layout(cell)
            yield Check(f"layout of {ranks} ranks", "one replica at least", layout.replicas, layout.replicas >= 1)
    yield same("settings", {*plugin.options}, {*plugin.settings(tiny_cell("numpy", name, 4))})


def _workload(plugin: Any, name: str) -> Iterator[Check]:
    yield known("dataset", plugin.dataset, DATASETS)
    model = plugin.model
    x, _ = model.draw(np.random.default_rng(1))
    yield same("shape of a drawn sample", model.sample, x.shape)
    weights, described = model.initial_weights(1), model.weight_shapes()
    yield same(
        "shapes of weights",
        {weight.name: weight.shape for weight in described},
        {key: array.shape for key, array in weights.items()},
    )
    trained = sum(weights[weight.name].size for weight in described if weight.trained)
    yield same("parameters that its costs count", trained, model.costs(plugin.defaults).parameters)


def _memory(plugin: Any, name: str) -> Iterator[Check]:
    yield _reason("supports of torch", plugin.supports(tiny_cell("torch", memory=name)))
    yield _reason("supports of numpy", plugin.supports(tiny_cell("numpy", memory=name)))


def _runtime(plugin: Any, name: str) -> Iterator[Check]:
    yield _environment(plugin)
    cell = InferCell(workload="digits-cnn", runtime=name, provider="cpu", batch=1)
    yield _reason("supports of a cell on the cpu", plugin.supports(cell))
    for axis, value in (("precision", "fp64"), ("provider", "quantum")):
        reason = plugin.supports(cell.model_copy(update={axis: value}))
        yield Check(f"supports of {axis} {value}", "a reason", reason, bool(reason))
    command = plugin.command("/env/bin/python", ["/plan.bin"])
    yield _all("command", str, command)
    yield same("end of the command", ["/plan.bin"], list(command[-1:]))
    yield _all("files", Path, plugin.files("/env/bin/python"))
    yield _all("tools", str, plugin.tools())


def _benchmark(plugin: Any, name: str) -> Iterator[Check]:
    yield same("name", name, plugin.name)
    yield known("parser", plugin.parser, PARSERS)
    with tempfile.TemporaryDirectory() as folder:
        argv = plugin.command(BenchCell(benchmark=name), Path(folder), "python", ["mpiexec"])
        yield Check("command", "a list of words", argv, bool(argv) and all(isinstance(word, str) for word in argv))
        yield same("logs before it ran", [Path(folder) / "output.log"], plugin.logs(Path(folder)))
    yield _reason("supports of a GPU", plugin.supports(BenchCell(benchmark=name, device="cuda")))


def _parser(plugin: Any, name: str) -> Iterator[Check]:
    yield same("benchmark", name, plugin.benchmark)
    for pattern in (*plugin.start_patterns, *(plugin.line_patterns or ())):
        yield same(f"groups of {pattern!r}", 0, re.compile(pattern).groups)


def _launcher(plugin: Any, name: str) -> Iterator[Check]:
    request = Request(command=["program", "with space"], ranks_per_node=2, threads=1, cores=2)
    reason = plugin.supports(request)
    yield _reason("supports of two ranks", reason)
    for argv, variables in plugin.processes(request) if reason is None else ():
        yield same("end of a process's words", request.command, list(argv[-2:]))
        yield same("threads of a process", "1", variables["OMP_NUM_THREADS"])


def _stage(plugin: Any, name: str) -> Iterator[Check]:
    ordered_stages()  # raises BadInput for what is wrong, as the next one does
    RUNNERS.get(name)
    yield same("stage of its class of cells", name, class_of(name).model_fields["stage"].default)
    if plugin.payload:
        module, _, function = plugin.payload.partition(":")
        file = file_of(module)
        # Not imported: it may need its environment.
        body = ast.parse(file.read_bytes()).body if file else []
        found = [
            len(statement.args.args)
            for statement in body
            if isinstance(statement, ast.FunctionDef) and statement.name == function
        ]
        yield same(f"arguments of {plugin.payload}: spec, folders, out", [3], found)


def check_log(name: str, log: Path) -> Iterator[Check]:
    """Let a parser read a whole log of its benchmark, and that log cut at every twentieth of its lines."""
    text = log.read_text(encoding="utf-8", errors="replace")
    whole = ingest([log])
    yield same("benchmarks in the log", {name}, {run.benchmark for run in whole})
    ends = [": ".join(filter(None, (run.status.value, run.reason))) for run in whole]
    yield same("statuses of its runs", ["ok"] * len(whole), ends)
    numbers = {(metric.name, metric.value) for run in whole for metric in run.metrics}
    yield Check("metrics", "one at least", len(numbers), bool(numbers))
    for run in whole:
        for number in run.metrics:
            yield Check(f"{number.name} as printed", "what stands in the log", number.printed, number.printed in text)
    lines = text.splitlines(keepends=True)
    with tempfile.TemporaryDirectory() as folder:
        cut = Path(folder) / log.name
        for last in sorted({number * len(lines) // _CUTS for number in range(_CUTS)}):
            cut.write_text("".join(lines[:last]), encoding="utf-8")
            more = {(m.name, m.value) for run in ingest([cut]) if run.status == "ok" for m in run.metrics} - numbers
            yield same(f"other results of the first {last} lines", set(), more)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of plug-ins: its registry, its checks, and whether a tiny study runs it."""

    registry: Registry[Any]
    asks: Callable[[Any, str], Iterator[Check]] | None = None
    runs: bool = False


KINDS = {
    "framework": Kind(FRAMEWORKS, _framework, runs=True),
    "strategy": Kind(STRATEGIES, _strategy, runs=True),
    "workload": Kind(WORKLOADS, _workload, runs=True),
    "dataset": Kind(DATASETS, runs=True),
    "memory": Kind(MEMORIES, _memory, runs=True),
    "optimiser": Kind(OPTIMISERS, check_optimiser),
    "loss": Kind(LOSSES, check_loss),
    "schedule": Kind(SCHEDULES, check_schedule),
    "aggregation": Kind(AGGREGATIONS, check_aggregation),
    "method": Kind(METHODS, check_method),
    "runtime": Kind(RUNTIMES, _runtime, runs=True),
    "parser": Kind(PARSERS, _parser),
    "benchmark": Kind(BENCHMARKS, _benchmark),
    "launcher": Kind(LAUNCHERS, _launcher),
    "stage": Kind(STAGES, _stage, runs=True),
}


def kind_of(kind: str) -> Kind:
    """Return a kind by its name. Raises BadInput with the nearest one."""
    if kind not in KINDS:
        raise unknown_name("kind of plug-ins", kind, KINDS)
    return KINDS[kind]


def answers(kind: str, name: str) -> Iterator[Check]:
    """Check a plug-in. Raises BadInput for one that is not there."""
    try:
        yield from _asked(kind_of(kind), name)
    except BadInput:
        raise
    except FAULTS as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        yield Check("exceptions", "none", f"{type(error).__name__}: {error} ({at.filename}:{at.lineno})", holds=False)


def _asked(kind: Kind, name: str) -> Iterator[Check]:
    plugin = kind.registry.get(name)
    yield _types(plugin)
    docstring = type(plugin).__doc__ or sys.modules[type(plugin).__module__].__doc__
    yield Check("docstring", "a sentence that says what it is", (docstring or "").split("\n")[0], bool(docstring))
    for file in plugin_files(kind.registry, name) if isinstance(plugin, Plugin) else [kind.registry.source(name)]:
        yield Check("file", "a Path that is there", file, isinstance(file, Path) and file.is_file())
    if kind.asks is not None:
        yield from kind.asks(plugin, name)
