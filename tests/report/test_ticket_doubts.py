"""The doubts about a published study: what is said of effects that are known."""

from __future__ import annotations

import re

import pytest
from make_ticket_records import classify_record, effects, seeds, text_records
from said_of_records import findings, only

from transect.analysis.comparisons import Sureness
from transect.domain.record import Cause, Status

LOST = {"status": Status.FAILED, "cause": Cause.TIMEOUT, "message": "ended after 300 s"}


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
