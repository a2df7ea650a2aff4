"""A study with more cells than it says is refused before any cell is made."""

from __future__ import annotations

import pytest

from factories import plan_study
from transect.domain.errors import BadInput
from transect.planning.stage import STAGES

GRID = "workloads: [iris-mlp], frameworks: [numpy], strategies: [single]"
SLIPS = {
    "repeats": "train: {repeats: 1000000, grids: [{%s}]}",
    "repeats of a grid": "train: {grids: [{%s, repeats: 1000000000000}]}",
    "a product": "train: {repeats: 1, grids: [{%s, threads: [THOUSAND], ranks: [THOUSAND]}]}",
    "bench": "bench: {repeats: 300000, grids: [{benchmarks: [hpl]}]}",
}


def slip_plan(folder, text):
    numbers = ", ".join(str(n) for n in range(1, 1001))
    text = text.replace("%s", GRID).replace("THOUSAND", numbers)
    return plan_study(folder, f"name: slip\n{text}", name="slip.yaml")


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_of_the_pen_is_refused_before_a_cell_is_made(tmp_path, monkeypatch, name):
    for stage in ("train", "bench"):
        monkeypatch.setattr(type(STAGES.get(stage)), "cells", lambda *_: pytest.fail("expanded"))
    with pytest.raises(BadInput) as raised:
        slip_plan(tmp_path, SLIPS[name])
    for part in ("slip.yaml: max_cells", "100,000", "smaller", "write max_cells:"):
        assert part in str(raised.value)


def test_a_study_may_say_that_it_has_more(tmp_path):
    grid = "train: {repeats: 3, grids: [{%s, threads: [1, 2]}]}\nmax_cells: "
    # Six of training, and one of data and three references that they need.
    assert len(list(slip_plan(tmp_path, grid + "10"))) == 10
    for most in (5, 9):
        with pytest.raises(BadInput, match="max_cells"):
            slip_plan(tmp_path, f"{grid}{most}")
