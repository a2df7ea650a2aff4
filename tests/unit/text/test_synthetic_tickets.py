"""Synthetic tickets: what is said of the best classifier is held against ones that know the model."""

from __future__ import annotations

import itertools
import json
import math
import re

import numpy as np
import pytest
from best_classifier import Likelihood

from transect.domain.errors import BadInput
from transect.text.formats import FORMATS
from transect.text.synthetic.model import ALTERNATIVES
from transect.text.synthetic.wording import MESSAGES, QUEUES, SLOTS, TOPICS, people
from warm import warm

SYNTHETIC = FORMATS.get("synthetic")
DESKS = {
    "usual": {"tickets": 1201, "owners": 8},
    "stand-ins and drift": {
        "tickets": 701,
        "owners": 11,
        "queues": 5,
        "stand_in": 0.3,
        "drift": 0.6,
        "skew": 1.1,
        "strength": 0.8,
        "signed": 0.4,
        "addressed": 0.3,
        "focus": 0.4,
        "german": 0.2,
    },
}


@pytest.mark.parametrize("desk", DESKS)
def test_who_knows_the_model_and_reads_the_text_is_as_often_right_as_is_said(desk):
    options, seed = DESKS[desk], 5
    known = Likelihood(options, seed)
    tickets = [*SYNTHETIC.tickets(None, options, seed)]
    right, best = {}, {}
    for ticket in tickets:
        truth = {"owner": known.owners.index(ticket.owner), "queue": QUEUES.index(ticket.queue)}
        for view, treatments in known.by_view(ticket).items():
            for names, seen in treatments.items():
                for label, chances in known.posterior(*seen).items():
                    case = label, view, names
                    right.setdefault(case, []).append(chances.argmax() == truth[label])
                    best.setdefault(case, []).append(chances.max())
                    assert ticket.truth[label][view][names] == pytest.approx(chances.max(), rel=1e-9)
        kept = ticket.truth["owner"]["conversation"]
        assert kept["pseudonyms"] == kept["kept"]
    for (label, view, names), hits in right.items():
        exact = SYNTHETIC.accuracy(options, seed, label)[view][names]
        error = math.sqrt(exact * (1 - exact) / len(tickets))
        # Nothing here is drawn anew from run to run.
        assert abs(np.mean(hits) - exact) < 3.5 * error, (label, view, names)
        chances = best[label, view, names]
        assert abs(np.mean(chances) - exact) < 3.5 * np.std(chances) / math.sqrt(len(chances)) + 1e-9


def test_the_exact_accuracy_is_the_sum_over_all_texts():
    options = {
        "tickets": 5,
        "owners": 3,
        "queues": 2,
        "stand_in": 0.2,
        "drift": 0.7,
        "skew": 0.6,
        "strength": 0.6,
        "focus": 0.5,
        "follow_ups": 1,
    }
    known = Likelihood(options, 2)
    weights = np.array([(owner + 1) ** -0.6 for owner in range(3)])
    total = {"owner": 0.0, "queue": 0.0}
    for topic, slots in itertools.product(range(2), ([0, 1, 2, 3], [0, 1, 2, 3, 4, 5])):
        for words in itertools.product(range(ALTERNATIVES), repeat=len(slots)):
            choices = [*zip(slots, words, strict=True)]
            joint = [known.joint(owner, topic, None, None, choices) for owner in range(3)]
            # Half of the tickets have a follow-up.
            total["owner"] += max(joint) / 2 / weights.sum()
            total["queue"] += max(joint[0] + joint[2], joint[1]) / 2 / weights.sum()
    for label, value in total.items():
        accuracy = SYNTHETIC.accuracy(options, 2, label)
        assert accuracy["conversation"]["removed"] == pytest.approx(value, rel=1e-10)


def test_no_two_people_share_a_part_of_their_names():
    tickets = [*SYNTHETIC.tickets(None, {"tickets": 300, "owners": 144}, 1)]
    owners, customers = people(144, 1)
    assert len(customers) == 96
    parts = [part for name in owners + customers for part in name.split()]
    assert len(set(parts)) == len(parts) == 480
    for ticket in tickets:
        assert {m.author for m in ticket.messages if m.role == "agent"} <= set(owners)
        assert {m.author for m in ticket.messages if m.role == "customer"} <= set(customers)


def words_of(text):
    return re.findall(r"[^\W\d_]+", text.lower())


@pytest.mark.parametrize("language", sorted(SLOTS))
def test_what_tells_stands_nowhere_else(language):
    telling = [word.lower() for words in TOPICS[language] + SLOTS[language] for word in words]
    assert len(set(telling)) == len(telling)
    plain = set()
    for texts in MESSAGES[language].values():
        for text in [texts] if isinstance(texts, str) else texts:
            plain |= set(words_of(text))
    owners, customers = people(144, 0)
    named = {word for name in owners + customers for word in words_of(name)}
    assert not set(telling) & plain
    assert not (set(telling) | plain) & named


def test_no_word_that_tells_is_a_stop_word(text_python):
    words = {w.lower() for texts in (TOPICS, SLOTS) for slots in texts.values() for s in slots for w in s}
    code = (
        "import json, sys, stopwordsiso; "
        "print(json.dumps(sorted(stopwordsiso.stopwords(['en', 'de']) & set(json.load(sys.stdin)))))"
    )
    run = warm(text_python).run("-c", code, input=json.dumps(sorted(words)).encode())
    assert (run.returncode, run.stdout.strip()) == (0, "[]"), run.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"owners": 145}, "there.owners: Input should be less than or equal to 144, given 145"),
        ({"owners": 4}, "there: .*8 queues and 4 owners"),
    ],
)
def test_options_that_cannot_be_used_are_bad_input(options, message):
    with pytest.raises(BadInput, match=message):
        SYNTHETIC.check(options, "there")
