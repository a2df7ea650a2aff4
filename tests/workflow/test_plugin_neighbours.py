"""An edit of what a plug-in imports from beside it, or of a file that its options name, runs its cells again."""

from __future__ import annotations

import pytest

from checkouts import edited

pytestmark = pytest.mark.study

STUDY = """
name: neighbours
plugins: [mine]
workloads:
  rows-net: {dataset_options: {table: tables/rows.csv}}
train:
  repeats: 1
  grids:
    - {workloads: [rows-net, iris-mlp-ce], frameworks: [numpy], strategies: [single]}
"""
# A workload, a dataset that says nothing of what its options name, and a package beside them.
FILES = {
    "neighbours.yaml": STUDY,
    "tables/rows.csv": "0.5,0\n1.5,1\n" * 20,
    "mine/rows.py": """
import csv
import sys
from pathlib import Path

import numpy as np

from transect.training.datasets import DATASETS, LoadedDataset, Samples
from transect.training.layers import Linear
from transect.training.workloads import WORKLOADS, Parameters, Workload

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))


@DATASETS.register("rows")
class Rows(LoadedDataset):
    '''Rows of a table.'''

    def load(self, options):
        from kit.scales import SCALE

        table = HERE.parent / options["table"]
        rows = np.array(list(csv.reader(table.open())), float)
        return Samples(
            x=rows[:, :1] * SCALE, y=rows[:, 1].astype(np.int64), classes=("a", "b"), source="rows", file=table
        )

    def normalise(self, train, other):
        return train, other


@WORKLOADS.register("rows-net")
class RowsNet(Workload):
    '''One layer.'''

    dataset = "rows"
    sample = (1,)
    layers = (Linear(1, 2),)
    defaults = Parameters(batch=4, epochs=1, learning_rate=0.02, momentum=0.9, quality_target=0.1)
""",
    "mine/kit/__init__.py": "",
    "mine/kit/scales.py": "from .deep.factors import FACTOR\n\nSCALE = 2 * FACTOR\n",
    "mine/kit/deep/__init__.py": "",
    "mine/kit/deep/factors.py": "FACTOR = 1\n",
}


def test_an_edit_beside_a_plug_in_or_behind_an_option_runs_its_cells_again(place):
    for name, text in FILES.items():
        (place.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (place.folder / name).write_text(text)
    run = place.make("neighbours.yaml", report=False)
    assert run.returncode == 0, run.stdout + run.stderr
    records = place.records("neighbours")
    assert [record["message"] for record in records.values() if record["status"] != "ok"] == []
    dependent = {name for name in records if "/rows-net" in name}
    assert place.why("neighbours.yaml") == {}
    with edited(place.folder / "mine/kit/deep/factors.py", "= 1", "= 3"):
        reasons_of = place.why("neighbours.yaml")
        verified = place.transect("verify", "neighbours.yaml")
    assert set(reasons_of) == dependent
    assert all(("source", "mine/kit/deep/factors.py") in reasons for reasons in reasons_of.values())
    assert verified.returncode == 0
    assert f"{len(dependent)} of them were made by another mine/kit/deep/factors.py" in verified.stdout
    with edited(place.folder / "tables/rows.csv", "1.5", "2.5"):
        reasons_of = place.why("neighbours.yaml")
        pending = place.pending("neighbours.yaml", report=False)
        verified = place.transect("verify", "neighbours.yaml")
    (data,) = (name for name in dependent if name.startswith("dataset/"))
    # What its arrays are is not known before it has run.
    assert reasons_of[data] == [("input", "rows.csv")] and set(reasons_of) == dependent
    assert pending == place.stamps("neighbours", dependent)
    assert verified.returncode == 1 and "rows.csv" in verified.stdout
