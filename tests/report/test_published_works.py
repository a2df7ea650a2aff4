"""Published works stand in a report where its study asks for them, and beside the same work alone."""

from __future__ import annotations

import pytest
from co_design_records import measured
from rank_records import repeated, scaling
from said_of_records import Made, context, findings

from transect.analysis.published_series import GO_WITH_MPI
from transect.analysis.rank_series import problems
from transect.domain.record import Record
from transect.report.context import Context
from transect.report.making import all_parts, make_findings, make_section

MPI = [*scaling((1, 2, 4)), *repeated(strategy="mpi-sendrecv", ranks=4)]
OTHER = {"epochs": 5, "learning_rate": 0.5, "loss": "mse"}
SAME = {"epochs": 100, "learning_rate": 0.01, "loss": "mse"}


def told(records: list[Record], parameters: dict) -> list[Record]:
    return [one.model_copy(update={"parameters": parameters}) for one in records]


def section(made: Context, key: str) -> str:
    (one,) = (part for part in all_parts().sections if part.key == key)
    found = make_section(one, made)
    return "" if found is None else f"{found.title} {found.body.lead} {found.body.blocks!r}"


def test_of_a_work_that_nobody_asked_for_nothing_is_said():
    made = context(*MPI, *measured(), asks=())
    every = make_findings(made, all_parts().findings)
    assert not [one.claim for one in every if one.subject == "claims" or GO_WITH_MPI in one.claim]
    assert section(made, "claims") == ""
    shown = section(made, "ranks")
    assert shown and "ublished" not in shown and "Point-to-point" in shown


ASKS = {
    "a question's rule": {"asks": ["rank.*"]},
    "a published figure of it": {"asks": (), "published": [{"study": GO_WITH_MPI}]},
}


@pytest.mark.parametrize("how", ASKS)
def test_a_study_asks_for_a_work_by(how):
    made = context(*MPI, **ASKS[how])
    said = [one.claim for one in make_findings(made, all_parts().findings)]
    assert any(GO_WITH_MPI in one for one in said) and "published" in section(made, "ranks")


def test_a_work_is_known_by_its_name_however_its_dash_is_written():
    made = context(published=[{"study": "ResNet in Go (Gorgonia), 2023-24"}], asks=())
    assert made.asks_for("ResNet in Go (Gorgonia), 2023–24")
    assert not made.asks_for(GO_WITH_MPI, "rank.stop") and not made.asks_for("", section="ranks")


def test_other_epochs_and_another_rate_are_not_the_same_work():
    other, same = told(MPI, OTHER), told(MPI, SAME)
    (problem,) = problems(context(*other).of("train"), [])
    assert problem.differs == ("epochs 5 here, 100 published", "learning rate 0.5 here, 0.01 published")
    (problem,) = problems(context(*same).of("train"), [])
    assert problem.differs == ()
    shown = Made("ranks", *other).prose
    assert "same work" not in shown and "epochs 5 here, 100 published" in shown
    assert "what the same work gives here" in Made("ranks", *same).prose
    # Ratios of published minutes stand beside equal work alone.
    for records, published in ((other, False), (same, True)):
        (messages,) = findings(*records)["point-to-point"]
        assert ("published on as many ranks" in messages.claim) is published
    (linear,) = findings(*other)["near-linear"]
    assert "learning rate 0.5 here, 0.01 published" in linear.claim
