"""Tickets, classifiers and knobs: what is said of effects that are known."""

from __future__ import annotations

import pytest
from make_records import make_record
from make_ticket_records import effects, seeds, text_records, write_ticket_study
from said_of_records import Made, context, findings, only, rows

from transect.analysis.classifiers import selected, sweeps
from transect.analysis.comparisons import Sureness
from transect.analysis.load import Loaded
from transect.report.blocks import Chip
from transect.report.build import build_report
from transect.report.context import Context
from transect.report.making import all_parts, make_section
from transect.report.sections.doubts import verdict
from transect.stages.search.cell import SearchCell


@pytest.mark.parametrize("key", ["tickets", "classifiers", "knobs", "doubts"])
def test_without_tickets_there_is_nothing(key):
    [section] = [one for one in all_parts().sections if one.key == key]
    assert make_section(section, context()) is None


def test_a_transformer_that_loses_to_tfidf_is_said_to():
    records = [
        *seeds(0.7, bayes=0.9),
        *seeds(0.8, model="tfidf", bayes=0.9),
        *seeds(0.4, model="majority"),
    ]
    found = only("classifier-best", *records)
    assert found.subject == "dialogues (synthetic)" and found.sureness is Sureness.FIRM
    assert (
        "TF-IDF with logistic regression 79.9 %" in found.claim and "it loses, −10." in found.claim
    )
    assert "the largest class for all 4" in found.evidence and "is 90.0 %" in found.claim


def test_of_several_settings_validation_chooses_not_the_test():
    [low] = Context(Loaded(study="s", records=seeds(0.6, valid=0.9, heads=1)), title="t").of(
        "classify"
    )
    [high] = Context(Loaded(study="s", records=seeds(0.7, valid=0.5, heads=4)), title="t").of(
        "classify"
    )
    assert selected([low, high]) is low
    found = only("classifier-best", *low.records, *high.records, *seeds(0.5, model="tfidf"))
    assert "the transformer tells 6" in found.claim and "of 2 settings" in found.evidence


def test_of_several_rivals_validation_chooses_not_the_test():
    records = [*seeds(0.7, valid=0.7), *seeds(0.8, model="tfidf", valid=0.6),
               *seeds(0.75, model="majority", valid=0.9)]  # fmt: skip
    found = only("classifier-best", *records)
    assert "the largest class for all 7" in found.claim and "it loses, −5." in found.claim
    assert "others: TF-IDF with logistic regression 8" in found.evidence


def test_a_sweep_holds_all_else_equal():
    groups = context(*seeds(0.6, heads=1), *seeds(0.7, heads=4), *seeds(0.5, heads=4, layers=2)).of(
        "classify"
    )
    found = {sweep.axis: sweep for sweep in sweeps(groups)}
    assert [g.cell.heads for g in found["heads"].groups] == [1, 4]
    assert found["heads"].effects[4].shown and found["heads"].effects[4].firm
    assert [g.cell.layers for g in found["layers"].groups] == [1, 2]


def test_knobs_are_told_the_strongest_first():
    found = only(
        "knobs", *seeds(0.6, heads=1), *seeds(0.603, heads=4), *seeds(0.8, heads=1, layers=2)
    )
    assert found.scope == "whole conversation, transformer"
    assert found.claim.startswith("one knob at a time, in points of accuracy: layers 1 → 2 +20.")
    assert " and heads 1 → 4 +0." in found.claim and found.sureness is Sureness.TENTATIVE


def test_published_values_stand_beside_the_knob_and_in_their_section():
    figure = {"study": "T 2024", "what": "4 heads", "knob": "heads", "published": 0.385,
              "measured": {"stage": "classify", "metric": "accuracy", "heads": 4}}  # fmt: skip
    records = [*seeds(0.6, heads=1), *seeds(0.7, heads=4)]
    table = Made(
        "knobs", *records, published=[{**figure, "knob": "layers", "published": 0.1}, figure]
    ).table("Every value")
    assert [row["Published"] for row in table] == ["–", "38.5 %"]
    [row] = rows(Made("published", *records, published=[figure]).tables[0])
    assert row["Measured here"].startswith("0.69") or row["Measured here"].startswith("0.7")
    assert row["Runs"] == "6" and " – " in row["Measured here"]


def test_a_published_figure_that_names_no_cell_or_several_says_so():
    both = {
        "study": "T",
        "what": "w",
        "published": 1,
        "measured": {"stage": "classify", "metric": "accuracy"},
    }
    made = Made("published", *seeds(0.6, heads=1), *seeds(0.7, heads=4), published=[
        both, {**both, "measured": {**both["measured"], "heads": 3}}])  # fmt: skip
    first, second = rows(made.tables[0])
    assert first["Measured here"] == "–" and first["Note"].startswith(
        "2 cells of classify are meant"
    )
    assert second["Note"].startswith("no record of such a cell")


def test_the_best_is_looked_at_closely():
    made = Made("classifiers", *seeds(0.7, bayes=0.9), *seeds(0.8, model="tfidf", bayes=0.9))
    assert made.chart("Calibration").table.rows
    assert [row["Answered"] for row in rows(made.chart("“I do not know”").table)] == [
        "100.0 %",
        "70.0 %",
    ]
    at_k = rows(made.chart("Accuracy at k").table)
    assert at_k[0]["k = 3"] == "100.0 %" and len(at_k) == 2
    assert len(made.table("Confusions")) == 3
    [first, second] = made.table("The setting of each kind")
    assert first["Against the first, in points"] == "–" and second[""] == "synthetic"
    assert second["Against the first, in points"].startswith("−10.")


def test_tickets_that_could_not_be_read_are_counted_by_cause():
    made = Made("tickets", *text_records())
    assert made.lead.startswith("2480 tickets read from 2 sources, 4 rejected.")
    assert [(row["Cause"], row["Tickets"]) for row in made.table("Rejected")] == [
        ("broken-json", "1"), ("no-text", "3"),
    ]  # fmt: skip
    assert made.table("Sources")[0][""] == "synthetic"
    chart = made.chart("dialogues (synthetic), whole conversation")
    assert "6 longer ones are not drawn" in chart.note
    found = findings(*text_records())
    assert found["tickets-rejected"][0].claim == "of 2484 tickets, 4 could not be read."
    assert "lengths are not Gaussian" in found["ticket-lengths"][0].claim


def test_reasons_come_from_the_cells_before():
    records = [*effects(), *text_records()]
    assert (
        "4.0 % are unknown to the first, 0.0 % to the second"
        in only("doubt-vectors", *records).claim
    )
    assert (
        "A first question has 9 words in the mean, a conversation 23."
        in only("doubt-view", *records).claim
    )
    assert "random 2.0 % and time 30.0 %" in only("doubt-split", *records).claim


def test_a_search_lists_its_last_rung_first_and_where_each_place_came_from():
    cells = [SearchCell(corpus="places", search="placement", kind="transformer", rung=rung, place=place)
             for rung, place in ((0, 0), (0, 1), (1, 0))]  # fmt: skip
    records = [
        make_record(cell, {"valid_accuracy": 0.5 + 0.1 * n}, details={
            "point": {"learning_rate": 0.01, "batch": 8}, "from": cells[1].id if cell.rung else None,
            "history": [{"epoch": 1}]})
        for n, cell in enumerate(cells)
    ]  # fmt: skip
    table = rows(Made("searches", *records).tables[0])
    assert [(row["Rung"], row["Place"], row["from"]) for row in table] == [
        ("1", "0", "place1"), ("0", "0", "None"), ("0", "1", "None"),
    ]  # fmt: skip
    assert table[0]["Point"] == "learning rate 0.01, batch 8" and table[0]["Validation"] == "70.0 %"


def test_a_whole_report_can_be_made_of_it(tmp_path):
    study = write_ticket_study(tmp_path)
    out = tmp_path / "report.html"
    summary = build_report(study, out, title="Tickets", questions=[])
    page = out.read_text()
    assert not summary["problems"] and "could not be made" not in page
    assert "Does a batch of one learn more" in page and "<script>window.HACKED" not in page


def test_a_difference_of_what_is_drawn_once_is_marked_as_not_firm():
    records = [*seeds(0.8, tickets=9000), *seeds(0.6, tickets=9000, vectors="all"),
               *seeds(0.6, tickets=9000, heads=4)]  # fmt: skip
    table = Made("knobs", *records).tables[-1]
    chips = {row[0]: chip for row in table.rows for chip in row if isinstance(chip, Chip)}
    assert {knob: chip.tone for knob, chip in chips.items()} == {
        "vectors": "plain",
        "heads": "good",
    }


def test_what_draws_nothing_is_not_said_to_lack_seeds():
    records = [*seeds(0.8, 1, model="tfidf"), *seeds(0.79, 1, model="tfidf", vectors="all")]
    [effect] = [sweep.effects["all"] for sweep in sweeps(context(*records).of("classify"))]
    assert verdict(effect).text == "may be the draw"


def test_classes_that_no_training_ticket_has_are_counted():
    details = {"unseen_classes": ["a", "b"]}
    records = [*seeds(0.7, details=details), *seeds(0.8, model="tfidf", details=details)]
    table = Made("classifiers", *records).table("The setting of each kind")
    assert [row["Classes without training tickets"] for row in table] == ["2", "2"]
    table = Made("classifiers", *seeds(0.7), *seeds(0.8, model="tfidf")).table("The setting of")
    assert "Classes without training tickets" not in table[0]
