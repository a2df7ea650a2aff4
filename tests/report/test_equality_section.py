"""The equality section says until where a check can tell, and what restarts said."""

from __future__ import annotations

import pytest
from make_records import make_record

from factories import train_cell
from transect.analysis.load import Loaded
from transect.report.blocks import Chip, Table
from transect.report.context import Context
from transect.report.sections.equality import equality_body

RESTARTS = [{"step": step, "steps": 4, "ratio": 0.02, "sharp": True} for step in (30, 60)]


def row(details, **metrics):
    """Return the table's only row by the titles of its columns."""
    cell = train_cell(workload="w", batch=8)
    values = {"equality_ratio": 0.5, "weights_equality_ratio": 0.4, **metrics}
    record = make_record(cell, values, details=details)
    parts = equality_body(Context(Loaded(study="s", records=[record]), title="t"))
    (table,) = (part for part in parts if isinstance(part, Table))
    (cells,) = table.rows
    return dict(zip([column.title for column in table.columns], cells, strict=True))


@pytest.mark.parametrize(
    ("details", "metrics", "until", "restarts", "verdict"),
    [
        (
            {"not_checkable_from": None, "restarts": RESTARTS},
            {"sharp_steps": 90, "restart_ratio": 0.02},
            "90",
            "0.02 from 30, 60",
            Chip("equal", "good"),
        ),
        (
            {"not_checkable_from": 30, "restarts": RESTARTS},
            {"sharp_steps": 30, "restart_ratio": 0.02},
            "30",
            "0.02 from 30, 60",
            Chip("from step 30 in restarts", "plain"),
        ),
        (
            {"not_checkable_from": 30, "restarts": [], "restarts_not_checkable": "it has no `resume`"},
            {"sharp_steps": 30},
            "30",
            "not checkable: it has no `resume`",
            Chip("not checkable from step 30", "warn"),
        ),
        (
            {"not_checkable_from": 30, "restarts": RESTARTS},
            {"sharp_steps": 30, "restart_ratio": 7.0},
            "30",
            "7 from 30, 60",
            Chip("wrong result", "bad"),
        ),
        # A record from before says nothing of either.
        ({}, {}, "–", "–", Chip("equal", "good")),
    ],
)
def test_a_row_says_until_where_and_what_took_over(details, metrics, until, restarts, verdict):
    shown = row(details, **metrics)
    assert shown["Checkable until step"] == until
    assert shown["Restarts: largest ratio"] == restarts
    assert shown[""] == verdict
