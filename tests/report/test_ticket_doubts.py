"""The doubts about a published study: what is said of effects that are known."""

from __future__ import annotations

import pytest
from make_ticket_records import classify_record, effects, seeds, text_records
from said_of_records import Sets, context, findings, prose

from transect.analysis.comparisons import Confidence
from transect.analysis.doubts import DOUBTS, cases
from transect.analysis.statistics import Spread
from transect.domain.record import Cause, Status

KINDS = [f"doubt-{key}" for key in ("batch", "heads", "names", "split", "vectors", "view")]
LOST = {"status": Status.FAILED, "cause": Cause.TIMEOUT, "message": "ended after 300 s"}


def drawn_once(**axes):
    return [*seeds(0.8, tickets=9000), *seeds(0.6, tickets=9000, **axes)]


def reshaped(tickets: int):
    return [*seeds(0.83, tickets=tickets), *seeds(0.8, model="published", tickets=tickets)]


def still_learning(*losses: float):
    def history(*losses):
        return {"history": [{"epoch": n, "valid_loss": loss} for n, loss in enumerate(losses)]}

    return [
        *seeds(0.8, names="kept", tickets=9000, details=history(2.0, 1.0, 1.1)),
        *seeds(0.5, names="removed", details=history(*losses)),
    ]


def other_width():
    """Make a model that differs in more than the reshape."""
    other = {"kind": "transformer", "options": {"reshape": "published", "width": 9}}
    return [
        r.model_copy(update={"parameters": r.parameters | {"model": other}}) if r.cell.model == "published" else r
        for r in [*seeds(0.8), *seeds(0.7, model="published")]
    ]


def fixed(removed: float):
    """Make one run a side of what draws nothing."""
    return [*seeds(0.8, 1, model="tfidf", names="kept"), *seeds(removed, 1, model="tfidf", names="removed")]


SETS = Sets(
    every=effects,
    with_texts=lambda: [*text_records(), *effects()],
    few_test_tickets=lambda: reshaped(100),
    many_test_tickets=lambda: reshaped(9000),
    vectors_once=lambda: drawn_once(vectors="all"),
    partition_once=lambda: drawn_once(partition="time"),
    learnt=lambda: still_learning(2.0, 1.0, 1.1),
    still_learning=lambda: still_learning(2.0, 1.5, 1.4),
    nothing=lambda: effects(published=0.8),
    one_seed=lambda: effects(1),
    three_seeds=lambda: effects(3),
    one_side_lost=lambda: [
        *seeds(0.8, names="kept"),
        *(classify_record(names="removed", repeat=n, fields=LOST) for n in range(6)),
    ],
    one_seed_lacks=lambda: [*seeds(0.8, 7, names="kept"), *seeds(0.5, 6, names="removed")],
    one_head=lambda: [
        *effects(),
        *seeds(0.6, heads=1, names="kept", spread=0.0),
        *seeds(0.6, heads=1, names="kept", model="published", spread=0.0),
    ],
    fixed_beside_seeds=lambda: [*seeds(0.7), *seeds(0.8, 1, model="tfidf")],
    fixed=lambda: fixed(0.5),
    fixed_and_near=lambda: fixed(0.79),
)


def test_prose(snapshot):
    assert prose(SETS, *KINDS, "classifier-best") == snapshot


def effect(name: str, doubt: str, after: object = None):
    """Return what a change does in a set: the difference of `after`, or of the only case."""
    [asked] = [one for one in DOUBTS if one.key == doubt]
    told = cases(asked, context(*SETS[name]).of("classify"))
    [found] = [one.effect for one in told if after in (None, one.after)]
    return found


def test_every_doubt_has_one_finding_and_says_how_many_points_of_made_up_tickets():
    found = SETS.findings("every")
    doubts = {kind: ones for kind, ones in found.items() if kind.startswith("doubt-")}
    assert sorted(doubts) == KINDS and all(len(ones) == 1 for ones in doubts.values())
    assert all("dialogues (synthetic)" in one.claim for [one] in doubts.values())
    [names], [heads], [batch] = (doubts[f"doubt-{key}"] for key in ("names", "heads", "batch"))
    # A point of pseudonyms may be the draw of test tickets.
    assert (names.confidence, heads.confidence) == (Confidence.PROVISIONAL, Confidence.CONFIRMED)
    # 0.8 with names to 0.5 without, where nobody can reach more than 60 %; 0.7 to 0.8; 0.5 to 0.7.
    assert "removed −30." in names.claim and "90.0 % to 60.0 %" in names.claim
    assert "right +10." in heads.claim and "1 → 64 +20." in batch.claim
    # 200 updates of each.
    assert "200 of batch 1" in batch.claim and "12800 of batch 64" in batch.claim


@pytest.mark.parametrize(
    ("doubt", "after", "points"),
    [
        ("names", "removed", -30),
        ("names", "pseudonyms", -1),
        ("heads", None, 10),
        ("batch", 64, 20),
        ("view", None, -40),
        ("vectors", None, 0.2),
        ("split", None, -20),
    ],
)
def test_an_effect_is_the_difference_within_a_seed(doubt, after, points):
    one = effect("every", doubt, after).summary
    assert one.median == pytest.approx(points / 100, abs=1e-3) and one.spread is Spread.INTERVAL
    assert one.low <= one.median <= one.high and one.count == 6


@pytest.mark.parametrize(
    ("name", "doubt", "confidence", "why"),
    [
        # The draw of test tickets alone may move an accuracy.
        ("few_test_tickets", "heads", Confidence.PROVISIONAL, "by 10.8"),
        ("many_test_tickets", "heads", Confidence.CONFIRMED, ""),
        # What is drawn once for all seeds makes nothing confirmed.
        ("vectors_once", "vectors", Confidence.PROVISIONAL, "draw of each set of vectors"),
        ("partition_once", "split", Confidence.PROVISIONAL, "draw of each partition"),
        # Runs that were still learning.
        ("learnt", "names", Confidence.CONFIRMED, ""),
        ("still_learning", "names", Confidence.PROVISIONAL, "6 runs ended"),
        ("one_seed_lacks", "names", Confidence.PROVISIONAL, "1 seed of one"),
    ],
)
def test_what_keeps_an_effect_from_being_confirmed_is_named(name, doubt, confidence, why):
    found = SETS.only(f"doubt-{doubt}", name)
    assert found.confidence is confidence and why in found.evidence
    assert ("runs ended" in found.evidence) is (name == "still_learning")
    assert effect(name, doubt).shown and [one.claimed for one in found.tests] == [True]


def test_vectors_fitted_to_more_tickets_are_said_to_be():
    found = SETS.only("doubt-vectors", "with_texts")
    assert "600 tickets" in found.claim and "840: more text" in found.claim


def test_what_contains_0_tells_nothing():
    found = SETS.only("doubt-heads", "nothing")
    assert found.confidence is Confidence.INCONCLUSIVE and not effect("nothing", "heads").shown
    assert "Nothing can be" in found.claim and "contains 0" in found.claim


@pytest.mark.parametrize(
    ("name", "spread", "words", "confidence"),
    [
        ("one_seed", Spread.SINGLE, "(one seed)", Confidence.INCONCLUSIVE),
        ("three_seeds", Spread.RANGE, "(range of 3", Confidence.PROVISIONAL),
    ],
)
def test_few_seeds_are_no_interval(name, spread, words, confidence):
    found = SETS.only("doubt-names", name)
    assert effect(name, "names", "removed").summary.spread is spread
    assert words in found.claim and "95 %" not in found.claim and found.confidence is confidence


def test_a_side_without_result_is_named_and_nothing_is_told():
    found = SETS.only("doubt-names", "one_side_lost")
    assert effect("one_side_lost", "names") is None and "kept → removed" in found.claim
    assert found.confidence is Confidence.INCONCLUSIVE and LOST["message"] in found.evidence


def test_a_model_that_differs_in_more_than_the_reshape_decides_nothing():
    assert "doubt-heads" in findings(*seeds(0.8), *seeds(0.7, model="published"))
    assert "doubt-heads" not in findings(*other_width())


def test_one_head_is_the_control_of_the_reshape():
    found = SETS.only("doubt-heads", "one_head")
    assert "one head" in found.claim and "0.0 (in each of 6" in found.claim


def test_one_run_of_what_draws_nothing_stands_for_all_seeds():
    found = SETS.only("classifier-best", "fixed_beside_seeds")
    assert found.confidence is Confidence.CONFIRMED
    assert "loses, −9.9 (95" in found.claim and "6 seeds" in found.evidence
    names = SETS.only("doubt-names", "fixed")
    told = effect("fixed", "names")
    assert told.fixed and told.alone == pytest.approx(0.028, abs=1e-3)
    assert "no seed plays" in names.claim and "± 2." in names.claim
    assert names.confidence is Confidence.CONFIRMED
    assert SETS.only("doubt-names", "fixed_and_near").confidence is Confidence.INCONCLUSIVE
