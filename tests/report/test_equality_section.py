"""The equality section says until where a check can tell, and what restarts said."""

from __future__ import annotations

import pytest
from make_records import make_record
from said_of_records import Made, rows

from factories import train_cell

RESTARTS = [{"step": step, "steps": 4, "ratio": 0.02, "sharp": True} for step in (30, 60)]
SEEN = "0.02 from 30, 60"


@pytest.mark.parametrize(
    ("blind", "more", "metrics", "shown"),
    [
        (None, {"restarts": RESTARTS}, {"sharp_steps": 90, "restart_ratio": 0.02}, ("90", SEEN, "equal")),
        (
            30,
            {"restarts": RESTARTS},
            {"sharp_steps": 30, "restart_ratio": 0.02},
            ("30", SEEN, "from step 30 in restarts"),
        ),
        (
            30,
            {"restarts": [], "restarts_not_checkable": "it has no `resume`"},
            {"sharp_steps": 30},
            ("30", "not checkable: it has no `resume`", "not checkable from step 30"),
        ),
        (
            30,
            {"restarts": RESTARTS},
            {"sharp_steps": 30, "restart_ratio": 7.0},
            ("30", "7 from 30, 60", "wrong result"),
        ),
    ],
)
def test_a_row_says_until_where_and_what_took_over(blind, more, metrics, shown):
    values = {"equality_ratio": 0.5, "weights_equality_ratio": 0.4, **metrics}
    record = make_record(train_cell(workload="w", batch=8), values, details={"not_checkable_from": blind} | more)
    [table] = Made("equality", record).tables
    [row] = rows(table)
    assert (row["Checkable until step"], row["Restarts: largest ratio"], row[""]) == shown
