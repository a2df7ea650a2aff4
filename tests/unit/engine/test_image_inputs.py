"""What a data cell of images depends on: every option, the manifest, and every file of the folder."""

from __future__ import annotations

import pytest
import yaml

from transect.adapters.snakemake.flow import facts_of_plan
from transect.planning.blocks import make_blocks
from transect.planning.plan import make_plan
from transect.planning.study import find_system


@pytest.fixture
def state(tmp_path):
    """Return what says of the data cell's block what it is made from."""
    for name in ("a/1.jpg", "b/1.jpg"):
        (tmp_path / "set" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "set" / name).write_text(name)
    (tmp_path / "set.manifest").write_text("one")
    (tmp_path / "other.manifest").write_text("two")

    def look(**options):
        grid = {"workloads": ["images-mlp"], "frameworks": ["numpy"], "strategies": ["single"], "ranks": [1]}
        given = {"folder": "set", "manifest": "set.manifest", **options}
        study = {"name": "s", "workloads": {"images-mlp": {"dataset_options": given}}, "train": {"grids": [grid]}}
        (tmp_path / "s.yaml").write_text(yaml.safe_dump(study))
        plan = make_plan(tmp_path / "s.yaml", find_system("laptop"), tmp_path / "results")
        (block,) = (b for b in facts_of_plan(plan, make_blocks(plan)).blocks if b.rule == "prepare")
        return block.state

    return look


def test_what_is_edited_runs_the_data_cell_again(state, tmp_path):
    before = state()
    assert state() == before
    options = (
        {"layout": "class-folders"},
        {"manifest": "other.manifest"},
        {"manifest": None},
        {"classes": 2},
        {"classes": ["a", "b"]},
        {"per_class": 2},
    )
    seen = [before, *(state(**option) for option in options)]
    for file in ("set.manifest", "set/b/1.jpg", "set/b/2.jpg"):
        (tmp_path / file).write_text("another")
        seen.append(state())
    assert len(set(seen)) == 10
