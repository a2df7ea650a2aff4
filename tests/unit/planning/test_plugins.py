"""Every plug-in of every registry keeps its protocol; duplicates and broken files are refused."""

from __future__ import annotations

import os
import subprocess
import sys
from abc import ABC

import pytest

from checkouts import ROOT
from transect.cli.plugin_checks import KINDS, answers
from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.domain.registry import Registry
from transect.launch import Request
from transect.launch.rendezvous import RENDEZVOUS
from transect.onnx_models.exporters import EXPORTERS
from transect.planning.stage import STAGES

ALL = [(kind, name) for kind, known in KINDS.items() for name in known.registry]
OTHERS = [(registry, name) for registry in (EXPORTERS, RENDEZVOUS) for name in registry]


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_plugin_does_what_its_kind_has_to(kind, name, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    checks = [*answers(kind, name)]
    assert len(checks) >= 2 and [check for check in checks if not check.holds] == []


@pytest.mark.parametrize(("registry", "name"), OTHERS, ids=lambda v: getattr(v, "kind", v))
def test_plugin_is_documented_and_in_a_file(registry, name):
    plugin = registry.get(name)
    assert type(plugin).__doc__ or sys.modules[type(plugin).__module__].__doc__
    assert registry.source(name).is_file()


def test_duplicate_name_is_refused(tmp_path, monkeypatch):
    registry: Registry[object] = Registry("thing", "transect.training.workloads", object)
    registry.register("a")(Cell)
    with pytest.raises(BadInput, match="registered twice"):
        registry.register("a")(Request)


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
        (
            "from transect.training.frameworks import FRAMEWORKS\n@FRAMEWORKS.register('mine')\nclass Mine: pass\n",
            "framework 'mine' is no transect.training.frameworks.Framework",
        ),
        (
            "from transect.training.frameworks import *\n@FRAMEWORKS.register('mine')\n"
            "class Mine(Framework):\n    environment = 'base'\n    def supports(self, cell): pass\n",
            "framework 'mine' lacks libraries, trainer",
        ),
        *(
            (f"from transect.runtimes import *\n@RUNTIMES.register{how}\nclass Mine(Runtime): pass\n", told)
            for how, told in {
                "": "expected a name of letters, digits and ._+- in register(...), got <class",
                "('a>b')": "expected a name of letters, digits and ._+- in register(...), got 'a>b'",
                "('mine')\ndef mine(): pass\n": "runtime 'mine' is no transect.runtimes.Runtime",
            }.items()
        ),
        (
            "from transect.runtimes.python import *\n@RUNTIMES.register('mine')\nclass Mine(PythonRuntime): pass\n"
            "@RUNTIMES.register('mine')\nclass Other(Mine): pass\n",
            "runtime 'mine' is registered twice",
        ),
        (
            "from transect.runtimes.python import *\n@RUNTIMES.register('mine')\n"
            "class Mine(PythonRuntime):\n    provider = ('cpu',)\n",
            "runtime 'mine' has `provider`: did you mean `providers`?",
        ),
        (
            "from transect.runtimes._programs import *\nfrom transect.runtimes import RUNTIMES\n"
            "@RUNTIMES.register('mine')\nclass Mine(PythonProgram):\n    environment = 'base'\n",
            "runtime 'mine' lacks imports, program",
        ),
        (
            "from transect.hpc.base import *\n@PARSERS.register('mine')\n"
            "class Mine(Parser):\n    benchmark = 'mine'\n    def parse(self, block): pass\n",
            "parser 'mine' lacks description, line_patterns, start_patterns",
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


def test_a_shared_base_may_name_what_its_constructor_sets():
    registry: Registry[ABC] = Registry("thing", "transect.training.workloads", ABC)
    shared = type("Shared", (ABC,), {"__annotations__": {"_home": str}})
    assert registry.register("a")(type("Mine", (shared,), {"__module__": __name__})).__name__ == "Mine"


@pytest.mark.parametrize("name", STAGES.names())
def test_the_folder_of_a_stage_has_no_code_of_its_own(name):
    # It would be part of whatever stands in it.
    folder = STAGES.source(name).parent
    assert folder.name == "stages" or (folder / "__init__.py").read_text() == ""
