"""Every module of the package lies in the closure of exactly the stages that run it."""

from __future__ import annotations

import fnmatch
from functools import cache
from pathlib import Path

import pytest

from nobodys import NO_CELLS_OWN
from transect.domain.cell import Cell
from transect.domain.paths import PACKAGE
from transect.domain.system import System
from transect.hpc.base import PARSERS
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.launch import LAUNCHERS
from transect.launch.wrapping import WRAPPERS
from transect.planning.code_hash import closure, hash_sources
from transect.planning.sources import plugin_files, roots_of
from transect.planning.stage import STAGES
from transect.stages.train.script_plan import RUNNING
from transect.training.frameworks import FRAMEWORKS
from transect.training.own_workload import COMPUTING
from transect.training.strategies import STRATEGIES

LAPTOP = System(name="laptop")
TRAIN = {"stage": "train", "workload": "iris-mlp-ce", "framework": "numpy", "strategy": "single", "batch": 16}
FEDERATION = {
    "workload": "iris-mlp-ce",
    "aggregation": "fedavg",
    "partition": "iid",
    "clients": 4,
    "cohort": 2,
    "rounds": 2,
    "local_steps": 1,
    "batch": 4,
}
TEXT = {"corpus": "mails", "split": "random", "embeddings": "train"}
CELLS = {
    "train": TRAIN,
    "forecast": TRAIN | {"stage": "forecast"},
    "profile": {"stage": "profile", "workload": "iris-mlp-ce", "framework": "numpy", "batch": 16},
    "memory-plan": {
        "stage": "memory-plan",
        "workload": "iris-mlp-ce",
        "framework": "torch",
        "batch": 16,
        "memory_budget": 1 << 30,
    },
    "reference": TRAIN | {"stage": "reference", "precision": "fp64"},
    "federate": FEDERATION | {"stage": "federate", "engine": "loop", "framework": "numpy"},
    "federate-reference": FEDERATION | {"stage": "federate-reference"},
    "inspect": {"stage": "inspect", "workload": "iris-mlp-ce"},
    "dataset": {"stage": "dataset", "workload": "iris-mlp-ce"},
    "export": {"stage": "export", "workload": "iris-mlp-ce", "framework": "torch", "exporter": "torchscript"},
    "infer": {
        "stage": "infer",
        "workload": "iris-mlp-ce",
        "runtime": "python",
        "exporter": "torchscript",
        "provider": "cpu",
        "batch": 1,
    },
    "generated-model": {"stage": "generated-model", "workload": "mlp", "framework": "torch", "exporter": "torchscript"},
    "convert": {"stage": "convert", "workload": "mlp", "exporter": "torchscript", "precision": "fp16"},
    "roundtrip": {"stage": "roundtrip", "workload": "mlp", "exporter": "torchscript", "loader": "onnx2torch"},
    "onnx-node-tests": {"stage": "onnx-node-tests"},
    "export-training-step": {"stage": "export-training-step", "workload": "iris-mlp-ce", "optimiser": "sgd"},
    "retrain": {
        "stage": "retrain",
        "workload": "iris-mlp-ce",
        "runtime": "python",
        "provider": "cpu",
        "optimiser": "sgd",
        "steps": 10,
        "batch": 16,
    },
    "conformance": {"stage": "conformance", "runtime": "python", "provider": "cpu"},
    # One whose options name a plug-in of a further kind.
    "bench": {"stage": "bench", "benchmark": "docking-probe"},
    "ingest": {"stage": "ingest", "source": "logs"},
    "corpus": {"stage": "corpus", "corpus": "mails"},
    "extract-text": {"stage": "extract-text", "corpus": "mails"},
    "tokens": {"stage": "tokens", "corpus": "mails"},
    "split": {"stage": "split", "corpus": "mails", "split": "random"},
    "embeddings": {"stage": "embeddings", **TEXT},
    "encode": {"stage": "encode", **TEXT, "words": "quantile"},
    "classify": {"stage": "classify", **TEXT, "words": "quantile", "model": "mine", "kind": "transformer"},
    "search": {"stage": "search", "corpus": "mails", "search": "rates", "kind": "transformer", "rung": 0, "place": 0},
}
EVERY_STAGE = frozenset(CELLS)


def example_of(stage: str, **axes: object) -> Cell:
    return Cell.of(**CELLS[stage] | axes)


def relative(paths: object) -> set[str]:
    """Return files of the package by their path in it."""
    return {p.relative_to(PACKAGE).as_posix() for p in paths if p.is_relative_to(PACKAGE)}


def sources(cell: Cell, system: System = LAPTOP) -> set[str]:
    """Return what a cell's fingerprint depends on."""
    names = hash_sources(frozenset(roots_of(cell, system))).files
    return {name.removeprefix("transect/") for name in names}


@cache
def of_stage(stage: str) -> frozenset[str]:
    """Return what any cell of a stage may depend on: with every plug-in and launcher."""
    cell = example_of(stage)
    roots = {*roots_of(cell, LAPTOP), *(LAUNCHERS.source(name) for name in LAUNCHERS)}
    roots |= {WRAPPERS.source(name) for name in WRAPPERS}
    for registry, _ in STAGES.get(stage).plugins(cell):
        for name in registry:
            roots |= set(plugin_files(registry, name))
    # Of a study's own workload.
    roots |= set({"reference": COMPUTING, "train": RUNNING}.get(stage, ()))
    return frozenset(relative(path for root in roots for path in of_root(root)))


def of_root(root: Path) -> frozenset[Path]:
    return closure(root) if root.suffix == ".py" else frozenset({root})


def package_files() -> set[str]:
    every = (p for p in PACKAGE.rglob("*.py") if "__pycache__" not in p.parts)
    # A file without a line holds nothing that could be edited unseen.
    return relative(p for p in every if p.read_text().strip() and p.name != "__init__.py")


def test_every_stage_has_an_example_here():
    assert set(STAGES) == EVERY_STAGE


def test_every_module_belongs_to_a_stage_or_to_nobody_for_a_reason():
    run = frozenset().union(*map(of_stage, CELLS))
    nobodys = {
        path
        for path in package_files() - run
        if not any(fnmatch.fnmatchcase(path, pattern) for pattern in NO_CELLS_OWN)
    }
    assert nobodys == set(), "no cell runs again when these change"


@pytest.mark.parametrize("pattern", NO_CELLS_OWN)
def test_what_is_nobodys_is_there_and_in_no_closure(pattern):
    matching = {path for path in package_files() if fnmatch.fnmatchcase(path, pattern)}
    assert matching
    run = frozenset().union(*map(of_stage, CELLS))
    # Runners of stages lean on these few.
    shared = {"engine/job.py", "engine/stage_helpers.py", "engine/turns.py"}
    assert matching & run <= shared


# A file, and the stages whose cells run again when it changes.
OF_STAGES = {
    # Loaded by name, from `training/strategies/horovod.py`.
    "training/strategies/_horovod_torch.py": {"train"},
    # These turn what a payload left into metrics.
    "stages/train/result.py": {"train"},
    "stages/train/run.py": {"train"},
    "stages/ingest/result.py": {"ingest", "bench"},
    "training/costs.py": {"train", "infer"},
    # An export's graph is counted by the same rules.
    "training/operations.py": {"train", "export", "infer", "generated-model", "profile", "forecast"},
    "training/divergence.py": {"train", "federate"},
    "onnx_models/comparison.py": {"export", "infer", "generated-model", "convert", "roundtrip"},
    "measure/intervals.py": {"train", "retrain", "classify", "search"},
    "payloads/retrain_verdict.py": {"retrain"},
    "runtimes/training_plans.py": {"retrain", "federate"},
    "runtimes/serving_plans.py": {"infer", "retrain", "conformance"},
    "payloads/step_path.py": {"export-training-step"},
    "training/tolerance.py": {"reference", "federate-reference", "export-training-step"},
    "payloads/federate_reference.py": {"federate-reference"},
    "payloads/federate_result.py": {"federate"},
    # The package names it, and with that whoever reads a manifest depends on it.
    "portable_step/export.py": {"export-training-step", "retrain", "federate"},
    # Imported by their registry.
    "portable_step/decompositions/pooling.py": {"export-training-step"},
    "simulation/pipelines.py": {"forecast"},
    # These start payloads.
    "launch/launchers/mpiexec.py": EVERY_STAGE,
    "launch/rank.py": EVERY_STAGE,
    "launch/wrapping.py": EVERY_STAGE,
    "launch/images.py": EVERY_STAGE,
    # Plain processes meet by it when nobody says how.
    "launch/rendezvous/tcp.py": EVERY_STAGE,
    "launch/keystore.py": {"train", "bench"},
    # Payloads.
    # The reference scores as it does.
    "payloads/train.py": {"train", "reference"},
    "payloads/dataset.py": {"dataset"},
    "payloads/reference.py": {"reference"},
    "hpc/probes/messages.py": {"bench"},
    "hpc/parsers/hpl.py": {"bench", "ingest"},
}


@pytest.mark.parametrize("path", OF_STAGES)
def test_a_file_belongs_to_the_stages_that_run_it(path):
    assert (PACKAGE / path).is_file()
    assert {stage for stage in CELLS if path in of_stage(stage)} == OF_STAGES[path]


def test_operator_tests_depend_on_no_workload():
    assert not [path for path in relative(closure(PACKAGE / "payloads" / "conformance.py")) if "training/" in path]


@pytest.mark.parametrize("name", BENCHMARKS.names())
def test_a_benchmark_depends_on_its_own_parser_alone(name):
    found = sources(example_of("bench", benchmark=name))
    parser = relative(closure(PARSERS.source(BENCHMARKS.get(name).parser)))
    assert {path for path in found if path.startswith("hpc/parsers/")} - {"hpc/parsers/__init__.py"} == {
        path for path in parser if path.startswith("hpc/parsers/")
    } - {"hpc/parsers/__init__.py"}


@pytest.mark.parametrize("stage", ["train", "bench"])
@pytest.mark.parametrize("name", [n for n in LAUNCHERS.names() if n != "plain"])
def test_the_launcher_that_starts_ranks_is_in_the_closure(stage, name):
    system = System(name="here", launcher=name, mpi_launcher=name)
    axes = {"train": {"strategy": "mpi-allreduce"}, "bench": {"benchmark": "message-sweep"}}[stage]
    found = sources(example_of(stage, **axes, ranks_per_node=2), system)
    assert f"launch/launchers/{name}.py" in found
    # A benchmark may also call mpiexec itself.
    called = relative(closure(PACKAGE / "stages" / stage / "run.py"))
    others = {f"launch/launchers/{n}.py" for n in LAUNCHERS if n != name}
    assert not (others - called) & found


@pytest.mark.parametrize("name", WRAPPERS.names())
def test_the_container_program_of_a_cell_is_in_the_closure_alone(name):
    def of_wrappers(paths: set[str]) -> set[str]:
        return {path for path in paths if path.startswith("launch/wrappers/")} - {"launch/wrappers/__init__.py"}

    def wrappers(cell: Cell, system: System = LAPTOP) -> set[str]:
        return of_wrappers(sources(cell, system))

    # Its own file, and what that imports of theirs: Docker's and Podman's have their options in one.
    own = plugin_files(WRAPPERS, name)
    files = of_wrappers(
        {path.removeprefix("transect/") for path in relative([*own, *(p for f in own for p in closure(f))])}
    )
    assert wrappers(example_of("train", container=name)) == files
    assert wrappers(example_of("train"), System(name="here", container=name)) == files
    assert wrappers(example_of("train")) == set()


@pytest.mark.parametrize(
    ("registry", "axis"), [(FRAMEWORKS, "framework"), (STRATEGIES, "strategy")], ids=["framework", "strategy"]
)
def test_a_training_depends_on_no_other_plugin_of_a_kind(registry, axis):
    for name in registry:
        found = sources(example_of("train", **{axis: name}))
        files = {registry.source(any_name) for any_name in registry}
        needed = relative(path for file in plugin_files(registry, name) for path in closure(file))
        # The worker of every framework takes numpy's for its checks.
        common = relative(closure(PACKAGE / "payloads" / "train.py"))
        assert relative(files) & found <= needed | common, name


def test_neighbours_and_every_name_of_a_line_are_followed(tmp_path):
    stage_file = tmp_path / "stage" / "run.py"
    (tmp_path / "stage" / "more").mkdir(parents=True)
    stage_file.write_text(
        "from .helper import f\n"
        "from . import other\n"
        "from .more.deep import g\n"
        "from ..beside import h\n"
        "import transect.domain.paths, transect.domain.precisions\n"
        "from transect.domain import files, \\\n    errors\n"
    )
    near = [stage_file.with_name(f"{name}.py") for name in ("helper", "other")]
    near += [stage_file.parent / "more" / "deep.py", tmp_path / "beside.py"]
    for path in near:
        path.touch()
    found = closure(stage_file)
    assert found >= {stage_file, *near}
    wanted = {PACKAGE / "domain" / f"{name}.py" for name in ("paths", "precisions", "files", "errors")}
    assert found >= wanted
