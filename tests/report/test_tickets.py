"""Tickets, classifiers, knobs and doubts: what is said of effects that are known."""

from __future__ import annotations

import re

import pytest
from make_records import make_record
from make_ticket_records import (
    classify_record,
    effects,
    seeds,
    text_records,
    write_ticket_study,
)

from transect.analysis.classifiers import selected, sweeps
from transect.analysis.comparisons import Sureness
from transect.analysis.load import Loaded
from transect.domain.record import Cause, Status
from transect.report.blocks import Chart, Charts, Chip, Table
from transect.report.build import build_report
from transect.report.context import Context
from transect.report.findings.finding import Finding
from transect.report.making import all_parts, make_findings, make_section
from transect.report.sections.doubts import verdict
from transect.stages.search.cell import SearchCell

LOST = {"status": Status.FAILED, "cause": Cause.TIMEOUT, "message": "ended after 300 s"}


def context(*records, published=()) -> Context:
    return Context(Loaded(study="s", records=list(records)), title="t", published=published)


def findings(*records) -> dict[str, list[Finding]]:
    made = context(*records)
    found: dict[str, list[Finding]] = {}
    for one in make_findings(made, all_parts().findings):
        found.setdefault(one.kind, []).append(one)
    assert not made.problems, made.problems
    return found


def only(kind: str, *records) -> Finding:
    [found] = findings(*records)[kind]
    return found


class Made:
    """One section that records make."""

    def __init__(self, key: str, *records, **given) -> None:
        made = context(*records, **given)
        [section] = [one for one in all_parts().sections if one.key == key]
        body = make_section(section, made)
        assert body is not None and not made.problems, made.problems
        self.lead = body.body.lead
        self.charts = [c for b in body.body.blocks if isinstance(b, Charts) for c in b.items]
        self.tables = [b for b in body.body.blocks if isinstance(b, Table)]

    def chart(self, title: str) -> Chart:
        [found] = [one for one in self.charts if one.title.startswith(title)]
        return found

    def table(self, title: str) -> list[dict[str, str]]:
        [found] = [one for one in self.tables if (one.caption or one.folded).startswith(title)]
        return rows(found)


def rows(table: Table) -> list[dict[str, str]]:
    heads = [column.title for column in table.columns]
    plain = [[v.text if isinstance(v, Chip) else str(v) for v in row] for row in table.rows]
    return [dict(zip(heads, row, strict=True)) for row in plain]


@pytest.mark.parametrize("key", ["tickets", "classifiers", "knobs", "doubts"])
def test_without_tickets_there_is_nothing(key):
    [section] = [one for one in all_parts().sections if one.key == key]
    assert make_section(section, context()) is None


def test_every_doubt_has_one_finding_and_says_how_many_points_of_made_up_tickets():
    found = findings(*effects())
    doubts = {kind: ones for kind, ones in found.items() if kind.startswith("doubt-")}
    assert sorted(doubts) == [
        f"doubt-{key}" for key in ("batch", "heads", "names", "split", "vectors", "view")
    ]
    assert all(len(ones) == 1 for ones in doubts.values())
    assert all("dialogues (synthetic)" in one.claim for [one] in doubts.values())
    [names] = doubts["doubt-names"]
    assert names.sureness is Sureness.TENTATIVE, (
        "a point of pseudonyms may be the draw of test tickets"
    )
    assert "kept → removed −30." in names.claim and "(95 % interval −3" in names.claim
    assert "kept → removed 90.0 % to 60.0 %" in names.claim
    assert "published → right +10." in doubts["doubt-heads"][0].claim
    assert doubts["doubt-heads"][0].sureness is Sureness.FIRM
    assert "batch 1 → 64 +20." in doubts["doubt-batch"][0].claim
    assert "200 of batch 1 and 12800 of batch 64" in doubts["doubt-batch"][0].claim


def test_an_effect_within_the_draw_of_test_tickets_is_not_firm():
    few = only(
        "doubt-heads", *seeds(0.83, tickets=100), *seeds(0.8, model="published", tickets=100)
    )
    assert few.sureness is Sureness.TENTATIVE
    assert (
        "another draw of test tickets alone may move an accuracy's difference by 10.8"
        in few.evidence
    )
    many = [*seeds(0.83, tickets=9000), *seeds(0.8, model="published", tickets=9000)]
    assert only("doubt-heads", *many).sureness is Sureness.FIRM


@pytest.mark.parametrize(
    ("kind", "axes"),
    [("doubt-vectors", {"vectors": "all"}), ("doubt-split", {"partition": "time"})],
)
def test_what_is_drawn_once_for_all_seeds_makes_nothing_firm(kind, axes):
    found = only(kind, *seeds(0.8, tickets=9000), *seeds(0.6, tickets=9000, **axes))
    assert found.sureness is Sureness.TENTATIVE
    assert re.search("one draw of each (set of vectors|partition) for all seeds", found.evidence)


def test_vectors_fitted_to_more_tickets_are_said_to_be():
    found = only("doubt-vectors", *text_records(), *effects())
    assert "fitted to 600 tickets, the second to 840: more text may help" in found.claim


def test_runs_that_were_still_learning_make_a_difference_tentative():
    def history(*losses):
        return {"history": [{"epoch": n, "valid_loss": loss} for n, loss in enumerate(losses)]}

    done = seeds(0.8, names="kept", tickets=9000, details=history(2.0, 1.0, 1.1))
    same = only("doubt-names", *done, *seeds(0.5, names="removed", details=history(2.0, 1.0, 1.1)))
    assert same.sureness is Sureness.FIRM and "still got better" not in same.evidence
    short = only("doubt-names", *done, *seeds(0.5, names="removed", details=history(2.0, 1.5, 1.4)))
    assert short.sureness is Sureness.TENTATIVE
    assert "6 runs ended while validation still got better" in short.evidence


def test_what_contains_0_tells_nothing():
    found = only("doubt-heads", *effects(published=0.8))
    assert (
        found.sureness is Sureness.OPEN
        and "Nothing can be told, since 0 lies within." in found.claim
    )
    assert "which contains 0" in found.claim


@pytest.mark.parametrize(("amount", "words"), [(1, "(one seed)"), (3, "(range of 3 seeds ")])
def test_few_seeds_are_no_interval(amount, words):
    found = only("doubt-names", *effects(amount))
    assert words in found.claim and "95 % interval" not in found.claim
    assert found.sureness is (Sureness.OPEN if amount == 1 else Sureness.TENTATIVE)


def test_a_side_without_result_is_named_and_nothing_is_told():
    bad = [classify_record(names="removed", repeat=n, fields=LOST) for n in range(6)]
    found = only("doubt-names", *seeds(0.8, names="kept"), *bad)
    assert "Nothing can be told: no seed has both sides of kept → removed" in found.claim
    assert found.sureness is Sureness.OPEN and "ended after 300 s" in found.evidence


def test_a_seed_of_one_side_only_is_counted_and_makes_nothing_firm():
    records = [*seeds(0.8, 7, names="kept"), *seeds(0.5, 6, names="removed")]
    found = only("doubt-names", *records)
    assert found.sureness is Sureness.TENTATIVE and "1 seed of one side only" in found.evidence


def test_a_model_that_differs_in_more_than_the_reshape_decides_nothing():
    records = [*seeds(0.8), *seeds(0.7, model="published")]
    assert "doubt-heads" in findings(*records)
    other = [r.model_copy(update={"parameters": r.parameters | {
        "model": {"kind": "transformer", "options": {"reshape": "published", "width": 9}}}})
        if r.cell.model == "published" else r for r in records]  # fmt: skip
    assert "doubt-heads" not in findings(*other)


def test_one_head_is_the_control_of_the_reshape():
    found = only("doubt-heads", *effects(), *seeds(0.6, heads=1, names="kept", spread=0.0),
                 *seeds(0.6, heads=1, names="kept", model="published", spread=0.0))  # fmt: skip
    assert "With one head, where both are one function: 0.0 (in each of 6 seeds)." in found.claim


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


def test_one_run_of_what_draws_nothing_stands_for_all_seeds():
    found = only("classifier-best", *seeds(0.7), *seeds(0.8, 1, model="tfidf"))
    assert (
        found.sureness is Sureness.FIRM
        and "it loses, −9.9 (95 %" in found.claim
        and "6 seeds" in found.evidence
    )
    both = [
        *seeds(0.8, 1, model="tfidf", names="kept"),
        *seeds(0.5, 1, model="tfidf", names="removed"),
    ]
    names = only("doubt-names", *both)
    assert "(no seed plays a part, test tickets alone ± 2." in names.claim
    assert names.sureness is Sureness.FIRM
    near = [*both[:1], *seeds(0.79, 1, model="tfidf", names="removed")]
    assert only("doubt-names", *near).sureness is Sureness.OPEN


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
    assert "median of 6 runs, 95 % interval" in row["Note"]


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
