"""Every plug-in of every registry keeps its protocol; duplicates and broken files are refused."""

from __future__ import annotations

import importlib
import inspect
import os
import subprocess
import sys

import numpy as np
import pytest

from checkouts import ROOT
from transect.domain.cell import Cell, OpenCell, class_of
from transect.domain.errors import BadInput
from transect.domain.registry import Registry
from transect.engine.stage import RUNNERS
from transect.engine.stage_helpers import StageRunner
from transect.hpc.base import PARSERS
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.launch import LAUNCHERS, Request
from transect.launch.rendezvous import RENDEZVOUS
from transect.onnx_models.exporters import EXPORTERS
from transect.planning.environments import environment_names
from transect.planning.stage import STAGES
from transect.runtimes import RUNTIMES
from transect.training.datasets import DATASETS
from transect.training.frameworks import FRAMEWORKS
from transect.training.strategies import STRATEGIES
from transect.training.workloads import WORKLOADS, model_of

REGISTRIES = [
    BENCHMARKS,
    DATASETS,
    EXPORTERS,
    FRAMEWORKS,
    LAUNCHERS,
    PARSERS,
    RENDEZVOUS,
    RUNTIMES,
    STAGES,
    STRATEGIES,
    WORKLOADS,
]
ALL = [(registry, name) for registry in REGISTRIES for name in registry]


@pytest.mark.parametrize(("registry", "name"), ALL, ids=lambda v: getattr(v, "kind", v))
def test_plugin_is_documented_and_in_a_file(registry, name):
    plugin = registry.get(name)
    doc = type(plugin).__doc__ or sys.modules[type(plugin).__module__].__doc__
    assert doc
    assert registry.source(name).is_file()


@pytest.mark.parametrize("name", FRAMEWORKS.names())
def test_framework_answers_for_a_minimal_and_a_strange_cell(name):
    framework = FRAMEWORKS.get(name)
    assert framework.environment in environment_names()
    axes = {"stage": "train", "workload": "iris-mlp", "framework": name, "strategy": "single", "batch": 16}
    if name == "go+numpy":  # two languages take two ranks
        assert "at least 2 ranks" in str(framework.supports(Cell.of(**axes)))
        axes |= {"strategy": "mpi-allreduce", "ranks_per_node": 2}
    assert framework.supports(Cell.of(**axes)) is None
    reason = framework.supports(Cell.of(**axes, precision="int3"))
    assert reason and "int3" in reason


@pytest.mark.parametrize("name", STRATEGIES.names())
def test_strategy_answers_for_any_cell(name):
    for framework in FRAMEWORKS:
        for ranks in (1, 4):
            cell = Cell.of(
                stage="train", workload="iris-mlp", framework=framework, strategy=name, batch=16, ranks_per_node=ranks
            )
            reason = STRATEGIES.get(name).supports(cell)
            assert reason is None or len(reason) > 10


@pytest.mark.parametrize("name", WORKLOADS.names())
def test_workload_fits_its_model_and_weights(name):
    workload = WORKLOADS.get(name)
    assert workload.dataset in DATASETS
    model = model_of(workload)
    x, y = model.draw(np.random.default_rng(1))
    assert x.shape == model.sample and y.shape == ()
    weights, described = model.initial_weights(1), model.weight_shapes()
    assert {n: a.shape for n, a in weights.items()} == {w.name: w.shape for w in described}
    trained = [weights[weight.name].size for weight in described if weight.trained]
    assert sum(trained) == model.costs(workload.defaults).parameters


@pytest.mark.parametrize("name", LAUNCHERS.names())
def test_launcher_gives_argument_lists(name, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    request = Request(command=["program", "with space"], ranks_per_node=2, threads=1, cores=2)
    launcher = LAUNCHERS.get(name)
    if launcher.supports(request) is not None:
        pytest.skip(str(launcher.supports(request)))
    for argv, variables in launcher.processes(request):
        assert argv[-2:] == ["program", "with space"]
        assert variables["OMP_NUM_THREADS"] == "1"


def test_plain_launcher_numbers_its_ranks():
    request = Request(command=["x"], ranks_per_node=3, cores=2)
    variables = [v for _, v in LAUNCHERS.get("plain").processes(request)]
    assert [v["RANK"] for v in variables] == ["0", "1", "2"]
    assert {v["WORLD_SIZE"] for v in variables} == {"3"}
    assert len({v["MASTER_PORT"] for v in variables}) == 1
    assert "one node" in str(LAUNCHERS.get("plain").supports(Request(command=["x"], nodes=2)))


def test_duplicate_name_is_refused(tmp_path, monkeypatch):
    registry: Registry[object] = Registry("thing", "transect.training.workloads")
    registry.register("a")(Cell)
    with pytest.raises(BadInput, match="registered twice"):
        registry.register("a")(Request)


def test_unknown_name_has_a_hint():
    with pytest.raises(BadInput, match=r"'troch'.*'torch'"):
        FRAMEWORKS.get("troch")


@pytest.mark.env
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import no_such_module_at_all\n", "cannot be imported"),
        ("def broken(:\n", "SyntaxError"),
        (
            "from transect.training.frameworks import FRAMEWORKS\n@FRAMEWORKS.register('numpy')\nclass Other: pass\n",
            "registered twice",
        ),
    ],
)
def test_broken_plugin_file_is_named(tmp_path, text, expected):
    (tmp_path / "mine.py").write_text(text)
    code = "from transect.training.frameworks import FRAMEWORKS; FRAMEWORKS.names()"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"TRANSECT_PLUGINS": str(tmp_path), "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1
    assert expected in run.stderr and "mine.py" in run.stderr


@pytest.mark.parametrize("name", STAGES.names())
def test_what_a_stage_declares_is_there(name):
    stage = STAGES.get(name)
    assert class_of(name) is not OpenCell
    assert isinstance(RUNNERS.get(name), StageRunner)
    if stage.payload:
        module, _, function = stage.payload.partition(":")
        found = getattr(importlib.import_module(module), function)
        assert [*inspect.signature(found).parameters] == ["spec", "folders", "out"]
    # Code of a folder's own would be part of whatever stands in it.
    folder = STAGES.source(name).parent
    assert folder.name == "stages" or (folder / "__init__.py").read_text() == ""


@pytest.mark.parametrize("name", ["", " ", "a\u202eb", "a\x1b[31mb", "a\nb", "a\tb", "a\0b", "a\ud800"])
def test_a_name_that_shows_what_it_does_not_say_is_refused(name):
    registry: Registry[object] = Registry("workload", "transect.training.workloads")
    with pytest.raises(BadInput, match=r"workload '.*' cannot have this name") as told:
        registry.register(name)(object_of_this_file())
    assert str(told.value).isprintable() and __file__ in str(told.value)


@pytest.mark.parametrize("name", ["<b>&amp;'\"</b>", "$\\alpha$", "caf\u00e9 \u2603", "{n}*?[0]"])
def test_markup_and_other_scripts_are_names(name):
    registry: Registry[object] = Registry("workload", "transect.training.workloads")
    kind = object_of_this_file()
    assert registry.register(name)(kind) is kind


def object_of_this_file() -> type[object]:
    return type("Thing", (), {"__module__": __name__})
