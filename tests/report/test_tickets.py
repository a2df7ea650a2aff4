"""Tickets, classifiers and knobs: what is said of effects that are known."""

from __future__ import annotations

import pytest
from make_records import make_record
from make_ticket_records import effects, seeds, text_records
from said_of_records import Made, Sets, context, prose

from transect.analysis.classifiers import difference, selected, sweeps
from transect.analysis.comparisons import Confidence
from transect.domain.axes.text import SearchCell
from transect.report.sections.doubts import verdict

FIGURE = {
    "study": "T 2024",
    "what": "4 heads",
    "knob": "heads",
    "published": 0.385,
    "measured": {"stage": "classify", "metric": "accuracy", "heads": 4},
}


def two_settings():
    """Make settings of which validation and the test prefer another."""
    return [*seeds(0.6, valid=0.9, heads=1), *seeds(0.7, valid=0.5, heads=4)]


SETS = Sets(
    loses=lambda: [*seeds(0.7, bayes=0.9), *seeds(0.8, model="tfidf", bayes=0.9), *seeds(0.4, model="majority")],
    two_settings=lambda: [*two_settings(), *seeds(0.5, model="tfidf")],
    two_rivals=lambda: [
        *seeds(0.7, valid=0.7),
        *seeds(0.8, model="tfidf", valid=0.6),
        *seeds(0.75, model="majority", valid=0.9),
    ],
    knobs=lambda: [*seeds(0.6, heads=1), *seeds(0.603, heads=4), *seeds(0.8, heads=1, layers=2)],
    texts=text_records,
    reasons=lambda: [*effects(), *text_records()],
)


def unpublished():
    """Make figures of which two cells are meant, and none."""
    both = FIGURE | {"measured": {"stage": "classify", "metric": "accuracy"}}
    none = FIGURE | {"measured": both["measured"] | {"heads": 3}}
    heads = [*seeds(0.6, heads=1), *seeds(0.7, heads=4)]
    return Made("published", *heads, published=[FIGURE, both, none])


def searched():
    cells = [
        SearchCell(corpus="places", search="placement", kind="transformer", rung=rung, place=place)
        for rung, place in ((0, 0), (0, 1), (1, 0))
    ]
    return [
        make_record(
            cell,
            {"valid_accuracy": 0.5 + 0.1 * n},
            details={
                "point": {"learning_rate": 0.01, "batch": 8},
                "from": cells[1].id if cell.rung else None,
                "history": [{"epoch": 1}],
            },
        )
        for n, cell in enumerate(cells)
    ]


def test_prose(snapshot):
    kinds = (
        "classifier-best",
        "knobs",
        "tickets-rejected",
        "ticket-lengths",
        "doubt-vectors",
        "doubt-view",
        "doubt-split",
    )
    sections = {
        f"section {key}": Made(key, *SETS[name]).prose
        for key, name in (("tickets", "texts"), ("classifiers", "loses"), ("knobs", "knobs"), ("doubts", "reasons"))
    }
    once = [*seeds(0.8, tickets=9000), *seeds(0.6, tickets=9000, vectors="all"), *seeds(0.6, tickets=9000, heads=4)]
    heads = [*seeds(0.6, heads=1), *seeds(0.7, heads=4)]
    given = {"details": {"unseen_classes": ["a", "b"]}}
    unseen = [*seeds(0.7, **given), *seeds(0.8, model="tfidf", **given)]
    other = FIGURE | {"knob": "layers", "published": 0.1}
    sections |= {
        "section knobs of what is drawn once": Made("knobs", *once).prose,
        "section knobs with published values": Made("knobs", *heads, published=[other, FIGURE]).prose,
        "section classifiers of unseen classes": Made("classifiers", *unseen).prose,
        "section published": unpublished().prose,
        "section searches": Made("searches", *searched()).prose,
    }
    assert prose(SETS, *kinds) | sections == snapshot


def groups_of(name):
    """Return a set's groups by the kind of their model, in order of their cells."""
    found = {}
    for group in context(*SETS[name]).of("classify"):
        found.setdefault(group.cell.kind, []).append(group)
    return found


def test_a_transformer_that_loses_to_tfidf_is_said_to():
    found, groups = SETS.only("classifier-best", "loses"), groups_of("loses")
    assert found.subject == "dialogues (synthetic)" and found.confidence is Confidence.CONFIRMED
    [lost] = found.tests
    told = difference([(groups["tfidf"][0], groups["transformer"][0])])
    assert told.summary.median == pytest.approx(-0.1, abs=1e-3) and told.confirmed and lost.claimed


def test_of_several_settings_validation_chooses_not_the_test():
    low, high = context(*two_settings()).of("classify")
    assert selected([low, high]) is low
    found = SETS.only("classifier-best", "two_settings")
    assert low.cell.id in found.evidence


def test_a_sweep_holds_all_else_equal():
    groups = context(*seeds(0.6, heads=1), *seeds(0.7, heads=4), *seeds(0.5, heads=4, layers=2)).of("classify")
    found = {sweep.axis: sweep for sweep in sweeps(groups)}
    assert [g.cell.heads for g in found["heads"].groups] == [1, 4]
    assert found["heads"].effects[4].shown and found["heads"].effects[4].confirmed
    assert [g.cell.layers for g in found["layers"].groups] == [1, 2]


def test_what_draws_nothing_is_not_said_to_lack_seeds():
    records = [*seeds(0.8, 1, model="tfidf"), *seeds(0.79, 1, model="tfidf", vectors="all")]
    [effect] = [sweep.effects["all"] for sweep in sweeps(context(*records).of("classify"))]
    assert verdict(effect).text == "may be the draw"
