"""Tickets, classifiers, hyper-parameters, doubts about a published study: what is said of known effects."""

from __future__ import annotations

import pytest
from make_records import make_record
from make_ticket_records import classify_record, effects, seeds, text_records
from said_of_records import Made, Sets, context, findings, prose

from transect.domain.axes.text import SearchCell
from transect.domain.claims import Work
from transect.domain.record import Cause, Status
from transect.report.engine.collect import make_findings
from transect.report.engine.deciding import tally_of
from transect.report.engine.parts import all_parts
from transect.report.topics.classifiers.doubt_facts import DOUBTS, cases
from transect.report.topics.classifiers.facts import selected
from transect.stats.comparisons import Confidence
from transect.stats.samples import Spread

SWEEPS = "classifier-hyperparameters"
FOUR_HEADS = {
    "key": "four-heads",
    "says": "four heads tell less",
    "where": "table",
    "kind": "order",
    "published": {1: 0.563, 4: 0.385},
    "rule": {"test": "order", "factor": 1.05},
    "measured": [{"study": "s", "stage": "classify", "metric": "accuracy", "along": {"axis": "heads"}}],
}
WORK = Work.model_validate(
    {"title": "T", "short": "T 2024", "cite": "T", "hardware": "laptop", "conditions": {}, "claims": [FOUR_HEADS]}
)


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
    sweeps=lambda: [*seeds(0.6, heads=1), *seeds(0.603, heads=4), *seeds(0.8, heads=1, layers=2)],
    texts=text_records,
    reasons=lambda: [*effects(), *text_records()],
)


def searched():
    cells = [
        SearchCell(corpus="places", search="placement", kind="transformer", rung=rung, place=place)
        for rung, place in ((0, 0), (0, 1), (1, 0))
    ]
    return [
        make_record(
            cell,
            {"validation_accuracy": 0.5 + 0.1 * n},
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
        "hyperparameter",
        "tickets-rejected",
        "ticket-lengths",
        "doubt-embeddings",
        "doubt-view",
        "doubt-split",
    )
    sections = {
        f"section {key}": Made(key, *SETS[name]).prose
        for key, name in (("tickets", "texts"), ("classifiers", "loses"), (SWEEPS, "sweeps"), ("doubts", "reasons"))
    }
    once = [*seeds(0.8, tickets=9000), *seeds(0.6, tickets=9000, embeddings="all"), *seeds(0.6, tickets=9000, heads=4)]
    heads = [*seeds(0.6, heads=1), *seeds(0.7, heads=4)]
    given = {"details": {"unseen_classes": ["a", "b"]}}
    unseen = [*seeds(0.7, **given), *seeds(0.8, model="tfidf", **given)]
    sections |= {
        "section hyper-parameters of what is drawn once": Made(SWEEPS, *once).prose,
        "section hyper-parameters with published values": Made(SWEEPS, *heads, works=[WORK]).prose,
        "section classifiers of unseen classes": Made("classifiers", *unseen).prose,
        "section searches": Made("searches", *searched()).prose,
    }
    assert prose(SETS, *kinds) | sections == snapshot


def test_of_several_settings_validation_chooses_not_the_test():
    low, high = context(*two_settings()).of("classify")
    assert selected([low, high]) is low
    found = SETS.only("classifier-best", "two_settings")
    assert low.cell.id in found.evidence


KINDS = [f"doubt-{key}" for key in ("batch", "heads", "names", "split", "embeddings", "view")]
LOST = {"status": Status.FAILED, "cause": Cause.TIMEOUT, "message": "ended after 300 s"}


def test_answers_that_are_sure_by_their_own_tests_are_counted_as_different():
    made = context(*SETS["loses"])
    found = make_findings(made, all_parts().findings)
    tally = tally_of(found, made)
    sure = [one for one in found if one.kind == "classifier-best" and one.confidence == "confirmed"]
    assert sure and tally.different >= len(sure)


def drawn_once(**axes):
    return [*seeds(0.8, tickets=9000), *seeds(0.6, tickets=9000, **axes)]


def reshaped(tickets: int):
    return [*seeds(0.83, tickets=tickets), *seeds(0.8, model="published", tickets=tickets)]


def still_learning(*losses: float):
    def history(*losses):
        return {"history": [{"epoch": n, "validation_loss": loss} for n, loss in enumerate(losses)]}

    return [
        *seeds(0.8, names="kept", tickets=9000, details=history(2.0, 1.0, 1.1)),
        *seeds(0.5, names="removed", details=history(*losses)),
    ]


def other_width():
    """Make a model that differs in more than the reshape."""
    wider = {"kind": "transformer", "options": {"reshape": "published", "width": 9}}
    return [
        r.model_copy(update={"parameters": r.parameters | {"model": wider}}) if r.cell.model == "published" else r
        for r in [*seeds(0.8), *seeds(0.7, model="published")]
    ]


def fixed(removed: float):
    """Make one run a side of what draws nothing."""
    return [*seeds(0.8, 1, model="tfidf", names="kept"), *seeds(removed, 1, model="tfidf", names="removed")]


DOUBTS_SETS = Sets(
    every=effects,
    with_texts=lambda: [*text_records(), *effects()],
    few_test_tickets=lambda: reshaped(100),
    many_test_tickets=lambda: reshaped(9000),
    vectors_once=lambda: drawn_once(embeddings="all"),
    partition_once=lambda: drawn_once(split="time"),
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


def test_prose_doubts(snapshot):
    assert prose(DOUBTS_SETS, *KINDS, "classifier-best") == snapshot


def effect(name: str, doubt: str, after: object = None):
    """Return what a change does in a set: the difference of `after`, or of the only case."""
    [asked] = [doubted for doubted in DOUBTS if doubted.key == doubt]
    found_cases = cases(asked, context(*DOUBTS_SETS[name]).of("classify"))
    [found] = [case.effect for case in found_cases if after in (None, case.after)]
    return found


@pytest.mark.parametrize(
    ("doubt", "after", "points"),
    [
        ("names", "removed", -30),
        ("names", "pseudonyms", -1),
        ("heads", None, 10),
        ("batch", 64, 20),
        ("view", None, -40),
        ("embeddings", None, 0.2),
        ("split", None, -20),
    ],
)
def test_an_effect_is_the_difference_within_a_seed(doubt, after, points):
    summary = effect("every", doubt, after).summary
    assert summary.median == pytest.approx(points / 100, abs=1e-3) and summary.spread is Spread.INTERVAL
    assert summary.low <= summary.median <= summary.high and summary.count == 6


def test_a_model_that_differs_in_more_than_the_reshape_decides_nothing():
    assert "doubt-heads" in findings(*seeds(0.8), *seeds(0.7, model="published"))
    assert "doubt-heads" not in findings(*other_width())


def test_two_seeds_that_agree_tell_nothing():
    # Half of all pairs of seeds agree where there is no difference at all.
    two = [classify_record(right, repeat, names="kept") for repeat, right in enumerate((0.80, 0.82))]
    other = [classify_record(right, repeat, names="removed") for repeat, right in enumerate((0.805, 0.84))]
    [found] = findings(*two, *other)["doubt-names"]
    assert found.confidence is Confidence.INCONCLUSIVE
    assert "range of 2 seeds +0.5 to +2.0, which may be chance" in found.claim
    assert "0 lies within" not in found.claim


def test_nobody_is_said_to_be_first_whom_their_common_seeds_show_to_be_behind():
    lucky = [*seeds(0.6, 7, tickets=9000), *(classify_record(0.95, n, tickets=9000) for n in range(7, 17))]
    [chart, *_] = Made("classifiers", *lucky, *seeds(0.7, 7, model="tfidf", tickets=9000)).charts
    assert (
        chart.title
        == "Which of the transformer and TF-IDF with logistic regression tells most tickets right is not known"
    )


def test_who_is_beside_the_second_best_only_is_not_first_of_three():
    far = [classify_record(right, n, model="majority") for n, right in enumerate((0.2, 0.4, 0.5, 0.95, 0.95, 0.97))]
    [chart, *_] = Made("classifiers", *seeds(0.8), *seeds(0.75, model="tfidf"), *far).charts
    assert chart.title == "Which of the transformer and the largest class for all tells most tickets right is not known"


def _drawn(heads, shares, repeats=2, **axes):
    """Make runs that were scored after each epoch, of a value of heads."""
    history = [{"epoch": at, "validation_accuracy": share, "seconds": 1.0} for at, share in enumerate(shares, 1)]
    return [
        classify_record(
            0.6, repeat, valid=shares[-1], details={"history": history[: len(shares) - repeat]}, heads=heads, **axes
        )
        for repeat in range(repeats)
    ]


def test_accuracy_over_epochs_has_a_line_for_each_value_and_the_published_best_beside_it():
    one, four = _drawn(1, [0.1, 0.3, 0.5, 0.7, 0.65, 0.6]), _drawn(4, [0.1, 0.2, 0.2, 0.3, 0.3, 0.3])
    said = Made(SWEEPS, *one, *four, works=[WORK]).prose
    assert "Heads over 5 epochs: most at best with 1, 70.0 %" in said
    # As long as the shortest run, which has no sixth epoch.
    assert "\n  1 | 70.0 % | 4 | 65.0 % | 56.3 % | 5 | 2\n  4 | 30.0 % | 4 | 30.0 % | 38.5 % | 5 | 2\n" in said
    assert "Published best, of other tickets, at the values that these stand for: 1: 56.3 %, 4: 38.5 %." in said
    # A run that goes on after the shortest has its best where it is, and whom nothing tells apart are both named.
    late = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    fewer = [run for heads in (1, 4) for run in _drawn(heads, late[:5], 1, layers=3)]
    said = Made(SWEEPS, *_drawn(1, late), *_drawn(4, late), *fewer).prose
    assert "Heads over 5 epochs: most at best with 1 and 4, 55.0 %" in said and "\n  1 | 55.0 % | 6 | 50.0 % |" in said
    assert "Of 2 such series the longest: layers 1." in said
    # Runs of few epochs are no course.
    assert "epochs:" not in Made(SWEEPS, *_drawn(1, [0.1, 0.2, 0.3]), *_drawn(4, [0.1, 0.2, 0.3])).prose


def test_tickets_that_were_generated_for_want_of_a_file_are_said_to_be():
    made = [
        record.model_copy(update={"details": record.details | {"instead_of": "owners.jsonl"}})
        if record.stage == "corpus"
        else record
        for record in text_records()
    ]
    found, *_ = findings(*made)["tickets-made-up"]
    assert "its tickets are generated: owners.jsonl was not there" in found.claim
    assert "Generated for want of" in Made("tickets", *made).prose
    assert "tickets-made-up" not in findings(*text_records())
    rules = classify_record(heads=1).parameters | {"corpus": {"synthetic": True, "instead_of": "owners.jsonl"}}
    sides = [
        classify_record(0.6, repeat, heads=heads, fields={"parameters": rules})
        for heads in (1, 4)
        for repeat in range(3)
    ]
    assert "generated, as owners.jsonl was not there" in Made("claims", *sides, works=[WORK]).prose
