"""Cells: their axes and their ids."""

from __future__ import annotations

import re
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from factories import TRAIN
from transect.domain.axes.train import TrainCell
from transect.domain.cell import Axis, Cell, OpenCell, axes_of, class_of
from transect.planning.stage import STAGES

NAMES = st.text(min_size=1, max_size=20)


@given(NAMES, NAMES, NAMES, st.integers(1, 64), st.integers(1, 64), st.integers(0, 9))
def test_any_cell_has_a_safe_id(workload, framework, strategy, nodes, ranks, repeat):
    axes = {"workload": workload, "framework": framework, "strategy": strategy, "nodes": nodes, "repeat": repeat}
    cell = Cell.of(**TRAIN | axes, ranks_per_node=ranks)
    assert re.fullmatch(r"[A-Za-z0-9_.+-]+~[0-9a-f]{8}", cell.id)
    assert cell.id == Cell.of(**cell.axes()).id
    assert cell.ranks == nodes * ranks


def test_a_new_axis_with_a_default_keeps_old_ids():
    class Wider(TrainCell):
        compression: Annotated[str, Axis(place=170)] = "none"

    old = Cell.of(**TRAIN)
    assert Wider(**TRAIN).id == old.id
    wider = Wider(**TRAIN, compression="topk")
    assert wider.id != old.id and ".topk~" in wider.id


def test_a_long_name_still_names_a_folder(tmp_path):
    ids = {TrainCell(workload="w" * length, framework="f", strategy="s", batch=1).id for length in (300, 301)}
    assert len(ids) == 2
    for cell_id in ids:
        (tmp_path / cell_id).mkdir()


# Ids from before cells were typed by stage: records that lie in results keep theirs.
OLD_IDS = {
    "digits-cnn.torch.ddp-gloo.n2x3.t2.b64.fp64.sum.linear.synthetic.ib.r2~7d73fc8c": {
        "stage": "train",
        "workload": "digits-cnn",
        "framework": "torch",
        "strategy": "ddp-gloo",
        "batch": 64,
        "nodes": 2,
        "ranks_per_node": 3,
        "threads": 2,
        "precision": "fp64",
        "network": "ib",
        "reduce": "sum",
        "learning_rate_rule": "linear",
        "input": "synthetic",
        "device": "cuda",
        "repeat": 2,
    },
    "iris-mlp.dynamo.python.cuda.t2.b8.fp32.r1~bda56f1d": {
        "stage": "infer",
        "workload": "iris-mlp",
        "runtime": "python",
        "provider": "cuda",
        "exporter": "dynamo",
        "batch": 8,
        "threads": 2,
        "repeat": 1,
    },
    "hpl.n1x2.t1.N100.NB8~eab4ea8d": {
        "stage": "bench",
        "benchmark": "hpl",
        "options": [["N", 100], ["NB", 8]],
        "ranks_per_node": 2,
    },
    "iris-mlp~35b83e28": {"stage": "dataset", "workload": "iris-mlp"},
}


@pytest.mark.parametrize("expected", OLD_IDS)
def test_old_ids_survive(expected):
    assert Cell.of(**OLD_IDS[expected]).id == expected


def test_a_cell_of_an_unknown_stage_keeps_its_axes():
    cell = Cell.of(stage="gone", flavour="sweet", threads=2)
    assert isinstance(cell, OpenCell)
    assert (cell.get("flavour"), cell.get("framework"), cell.threads) == ("sweet", None, 2)
    assert Cell.of(**cell.axes()).id == cell.id
    assert Cell.of(stage="gone", flavour="sour", threads=2).id != cell.id


def test_every_axis_of_every_stage_has_its_own_place_in_the_id():
    for stage in STAGES:
        kind = class_of(stage)
        axes = axes_of(kind)
        places = [axis.place for axis in axes.values()]
        assert len(places) == len(set(places)), stage
        assert set(kind.always) <= set(axes), stage
        # A field without an `Axis` would be in no label and no id.
        assert set(kind.model_fields) - set(axes) == {"stage"}, stage


def test_cell_refuses_what_it_does_not_know():
    with pytest.raises(ValidationError, match="rank"):
        Cell.of(**TRAIN, rank=2)
    with pytest.raises(ValidationError, match="nodes"):
        Cell.of(**TRAIN, nodes=0)
    with pytest.raises(ValidationError, match="runtime"):
        Cell.of(**TRAIN, runtime="python")
    with pytest.raises(ValidationError, match="framework"):
        Cell.of(stage="train", workload="w", strategy="s", batch=16)


def test_a_changed_cell_has_an_id_of_its_own():
    cell = Cell.of(stage="train", workload="w", framework="f", strategy="s", batch=4, repeat=2)
    assert cell.id.endswith(cell.changed(repeat=2).id[-8:])
    first = cell.without_repeat()
    assert first.id == Cell.of(**first.axes()).id != cell.id
