"""Measuring until it is known, in a real run: why each cell's repeats end, and what another maximum runs again."""

from __future__ import annotations

import json

import pytest

from checkouts import edited

pytestmark = pytest.mark.study

PLUGIN = """
from transect.training.frameworks import FRAMEWORKS
from transect.training.frameworks.numpy_ import NumpyFramework


@FRAMEWORKS.register("test-broken")
class Broken(NumpyFramework):
    def trainer(self, plan):
        raise RuntimeError("broken on purpose")
"""
# No clock is as steady as that: who has a result goes on to the maximum.
STUDY = """
name: known
plugins: [until-plugins]
limits: {repeats_if_disturbed: 0}
workloads: {iris-mlp-ce: {epochs: 1}}
train:
  repeats: 2
  repeat_until: {ci_half_width: 0.00001 %, max_repeats: 3}
  grids:
    - {workloads: [iris-mlp-ce], frameworks: [numpy, test-broken], strategies: [single]}
"""
STAMP = "results/known/blocks/train/iris-mlp-ce.n1.json"
FILE = "known.yaml"


@pytest.fixture(scope="module")
def measured(place):
    """The project's folder after the study ran once."""
    (place.folder / "until-plugins").mkdir()
    (place.folder / "until-plugins" / "broken.py").write_text(PLUGIN)
    (place.folder / "known.yaml").write_text(STUDY)
    run = place.make(FILE, report=False)
    assert run.returncode == 0, run.stderr
    return place


def stamp(place):
    return json.loads((place.folder / STAMP).read_text())


def repeats(records):
    """Return which repeats of each framework have a record, and when each began."""
    found = {"numpy": {}, "test-broken": {}}
    for record in records.values():
        cell = record["cell"]
        found[cell["framework"]][cell.get("repeat", 0)] = record["started"]
    return found


def why_ended(place):
    return {name.split(".")[1]: why for name, why in stamp(place)["stop_reasons"].items()}


def test_each_cell_stops_for_a_reason_and_a_higher_maximum_runs_only_what_it_adds(measured):
    before = repeats(measured.records("known", "train"))
    assert {name: sorted(own) for name, own in before.items()} == {"numpy": [0, 1, 2], "test-broken": [0, 1]}
    assert why_ended(measured) == {"numpy": "max_repeats", "test-broken": "no result"}
    told = stamp(measured)
    assert len(told["skipped_optional"]) == 1
    assert {name.partition("/")[0] for name in told["completed_optional"]} == {"reference", "train"}
    others = {key: one["started"] for key, one in measured.records("known").items()}
    with edited(measured.folder / "known.yaml", "max_repeats: 3", "max_repeats: 5"):
        # Which of them run is only known when their block looks: all that may are told.
        may = measured.why(FILE, "train")
        more = {key: [kind for kind, _ in may[key]] for key in may.keys() - others.keys()}
        assert len(more) == 5 and all(kinds == ["repeat_until"] for kinds in more.values())
        run = measured.make(FILE, report=False)
        assert run.returncode == 0, run.stderr
        assert measured.why(FILE) == {}
        after = measured.records("known")
        again = {key for key in others if after[key]["started"] != others[key]}
        # It draws a start for each repeat that there may be; those that were there are the same.
        assert {key.partition("/")[0] for key in again} == {"data"}
        own = repeats({key: one for key, one in after.items() if key.startswith("train/")})
        assert {name: sorted(one) for name, one in own.items()} == {"numpy": [0, 1, 2, 3, 4], "test-broken": [0, 1]}
        assert why_ended(measured) == {"numpy": "max_repeats", "test-broken": "no result"}
        assert len(stamp(measured)["skipped_optional"]) == 3
