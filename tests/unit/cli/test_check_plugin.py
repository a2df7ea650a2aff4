"""`transect check-plugin`: what is right holds, and each thing that is wrong fails, by name."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from checkouts import ROOT
from transect.cli.plugin_checks import answers
from transect.domain.errors import BadInput
from transect.federated.aggregations import AGGREGATIONS
from transect.federated.aggregations.median import Median
from transect.federated.methods import METHODS
from transect.federated.methods.ditto import Ditto
from transect.runtimes import RUNTIMES
from transect.runtimes.python import PythonRuntime
from transect.training.frameworks import FRAMEWORKS
from transect.training.frameworks.numpy_ import NumpyFramework
from transect.training.losses import LOSSES
from transect.training.losses.mse import MeanSquaredError
from transect.training.optimisers import OPTIMISERS
from transect.training.optimisers.sgd import Sgd
from transect.training.schedules import SCHEDULES
from transect.training.schedules.constant import Constant

PLUGINS = """
from transect.training.frameworks import FRAMEWORKS
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.frameworks.numpy_ import NumpyFramework


@FRAMEWORKS.register("right")
class Right(NumpyFramework):
    '''numpy under another name.'''


class OnePercent(NumpyTrainer):
    def update(self, learning_rate):
        self.flat_gradient *= 1.01
        super().update(learning_rate)


@FRAMEWORKS.register("wrong")
class Wrong(NumpyFramework):
    '''Its gradients are 1 % too large.'''

    def trainer(self, plan):
        return OnePercent(plan)
"""


def failed(checks):
    return [check.what for check in checks if not check.holds]


class TakesAll(NumpyFramework):
    """Says yes to everything."""

    environment = "nowhere"
    optimisers = ("sgd", "guesswork")

    def supports(self, cell):
        return None


class Wordy(PythonRuntime):
    """A text for a tuple, and words that are none."""

    providers = "cpu"

    def command(self, python, arguments):
        return [3, *arguments]

    def files(self, python):
        return python

    def tools(self):
        raise ValueError("no tools")


class Uphill(Sgd):
    """The wrong sign."""

    takes = ("momentum", "mood")

    def update(self, rule, weights, gradient, states, learning_rate, step):
        super().update(rule, weights, -2 * gradient, states, learning_rate, step)


class Steep(MeanSquaredError):
    """A gradient twice as long."""

    score = "beauty"

    def value_and_gradient(self, rule, outputs, y):
        value, gradient = super().value_and_gradient(rule, outputs, y)
        return value, 2 * gradient


class Below(Constant):
    """Up the hill."""

    def factors(self, options, step, steps):
        return -super().factors(options, step, steps)


class Inward(Median):
    """Away from the clients, in place."""

    def step(self, settings, model, change, state):
        state["rounds"] = np.ones(1)
        model += change
        return model.copy()

    def change(self, settings, updates, state):
        return -super().change(settings, updates, state)


class Forgetful(Ditto):
    """Has a second turn, from what no client keeps."""

    keeps = False


class Quiet(Ditto):
    """Pulls without a word, in place."""

    pulls = False

    def at_rest(self, terms, start):
        return start.astype(np.float64)

    def kept(self, terms, turn, reached, own, server):
        own += reached
        return own


@pytest.mark.parametrize(
    ("kind", "registry", "plugin", "wrong"),
    [
        (
            "framework",
            FRAMEWORKS,
            TakesAll,
            [
                "environment",
                "optimiser guesswork",
                "supports of a precision that is not there",
                "supports of a device that is not there",
            ],
        ),
        ("runtime", RUNTIMES, Wordy, ["members of a wrong type", "command", "files", "exceptions"]),
        ("optimiser", OPTIMISERS, Uphill, ["takes hyper-parameters that there are", "update with a gradient of 1"]),
        ("loss", LOSSES, Steep, ["score", "gradient beside differences of the value"]),
        ("schedule", SCHEDULES, Below, ["factors"]),
        (
            "aggregation",
            AGGREGATIONS,
            Inward,
            ["direction of the change that equal updates come to", "shapes and types of its state", "what it is given"],
        ),
        ("method", METHODS, Forgetful, ["what it says that clients cannot have who keep nothing"]),
        (
            "method",
            METHODS,
            Quiet,
            [
                "shapes and types of vectors",
                "what steps get that it does not say",
                "arrays that it was given and has changed",
            ],
        ),
    ],
)
def test_each_wrong_answer_fails_by_name(kind, registry, plugin, wrong, monkeypatch):
    monkeypatch.setitem(registry._entries, "mine", plugin)
    monkeypatch.setitem(registry._files, "mine", ROOT / "README.md")
    assert failed(answers(kind, "mine")) == wrong


def test_annotations_for_a_type_checker_alone_are_no_fault(monkeypatch):
    mine = type("Mine", (PythonRuntime,), {"__annotations__": {"levels": "OnlyThere"}, "__doc__": "Mine."})
    monkeypatch.setitem(RUNTIMES._entries, "mine", mine)
    monkeypatch.setitem(RUNTIMES._files, "mine", ROOT / "README.md")
    checks = [*answers("runtime", "mine")]
    assert not failed(checks) and "not looked at: name 'OnlyThere'" in checks[0].given


@pytest.mark.parametrize(
    ("kind", "registry"),
    [
        ("loss", LOSSES),
        ("schedule", SCHEDULES),
        ("optimiser", OPTIMISERS),
        ("aggregation", AGGREGATIONS),
        ("method", METHODS),
    ],
)
def test_the_project_s_own_rules_hold(kind, registry):
    for name in registry:
        assert failed(answers(kind, name)) == []


@pytest.mark.parametrize(("kind", "name", "hint"), [("framwork", "numpy", "framework"), ("framework", "nmpy", "numpy")])
def test_what_is_not_there_has_a_hint(kind, name, hint):
    with pytest.raises(BadInput, match=f"'{hint}'"):
        [*answers(kind, name)]


@pytest.mark.env
@pytest.mark.parametrize(("name", "code"), [("right", 0), ("wrong", 1)])
def test_a_framework_of_a_folder_trains_beside_the_reference(name, code, tmp_path, base_python):
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "mine.py").write_text(PLUGINS)
    command = ["check-plugin", "framework", name, "--plugins", str(tmp_path / "plugins"), "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "transect", *command],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    checks = json.loads(done.stdout)
    wrong = [check for check in checks if not check["holds"]]
    if name == "right":
        assert sum(check["what"].endswith("equality_ratio") for check in checks) == 3 and not wrong
    else:
        assert [check for check in wrong if "failed: wrong-result" in check["given"]], wrong
