"""The generative model of synthetic tickets, what its texts say about a label, and how well anyone can predict it.

A ticket has an owner o, of frequency P(o); a topic t, that of the owner's queue with probability `focus`
and else any; a writer w of the replies, the owner with probability 1 - `stand_in` and else any other;
and a half e of the time. In each of its slots the writer's words are those of a habit h(e, w, slot) with
probability `strength`, and else any of the slot's alternatives. With probability `addressed` the first
question names the owner, and with probability `signed` the replies name the writer. All else in the text
(language, customers, number of follow-ups, other words) is drawn without a look at any of these, so that

    P(o | text) ~ P(o) P(t | o) sum_w P(w | o) P(name | w) mean_e prod_slot P(words | e, w, slot)

is all that a text tells. The best classifier takes the likeliest label, and is right with probability
E[max P(label | text)]: the sum over all texts, which is finite here, of the largest joint probability.
Pseudonyms are as good as names: each person has one and no two share one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import factorial

import numpy as np

from transect.text.synthetic.options import SyntheticOptions

# Slots of the first reply, of each later one, and the words to choose from in each.
REPLY_SLOTS, FOLLOW_UP_SLOTS, ALTERNATIVES = 4, 2, 4
LABELS = ("owner", "queue")


@dataclass(frozen=True, slots=True)
class Features:
    """What of one ticket depends on its owner.

    `choices` are slot and alternative of each word; slots from REPLY_SLOTS on are those of later replies.
    """

    owner: int
    topic: int
    writer: int
    late: bool
    addressed: bool
    signed: bool
    choices: tuple[tuple[int, int], ...]


class Model:
    """One help desk: its owners' frequencies, queues and habits, drawn with a seed.

    `prior` (owners,), `home` (owners,) the number of an owner's queue, `habits` (2, owners, slots) the
    alternative of each slot in the first and second half of the time.
    """

    def __init__(self, options: SyntheticOptions, seed: int) -> None:
        generator = np.random.default_rng([seed, 14])
        owners, slots = options.owners, REPLY_SLOTS + FOLLOW_UP_SLOTS
        self.options = options
        self.prior = np.arange(1, owners + 1) ** -float(options.skew)
        self.prior /= self.prior.sum()
        self._up_to = np.cumsum(self.prior)
        self.home = np.arange(owners) % options.queues
        early, late = generator.integers(0, ALTERNATIVES, (2, owners, slots))
        changes = generator.random((owners, slots)) < options.drift
        self.habits = np.stack([early, np.where(changes, late, early)])
        # P(words | e, w, slot): (2, owners, slots, alternatives).
        by_habit = self.habits[..., None] == np.arange(ALTERNATIVES)
        self._words = (1 - options.strength) / ALTERNATIVES + options.strength * by_habit
        # P(o) P(t | o): (topics, owners).
        own_topic = self.home == np.arange(options.queues)[:, None]
        self._topics = self.prior * ((1 - options.focus) / options.queues + options.focus * own_topic)
        # P(w | o): (owners, writers).
        self._writers = np.full((owners, owners), options.stand_in / (owners - 1))
        np.fill_diagonal(self._writers, 1 - options.stand_in)
        self._late_share = (options.tickets // 2) / options.tickets

    def draw(self, late: bool, generator: np.random.Generator) -> Features:
        """Draw what a ticket of the first or second half of the time is about."""
        options = self.options
        owner = min(int(np.searchsorted(self._up_to, generator.random(), "right")), options.owners - 1)
        topic = int(self.home[owner])
        if generator.random() >= options.focus:
            topic = int(generator.integers(options.queues))
        writer = owner
        if generator.random() < options.stand_in:
            writer = int((owner + generator.integers(1, options.owners)) % options.owners)
        later = int(generator.integers(options.follow_ups + 1))
        slots = [*range(REPLY_SLOTS)] + later * [*range(REPLY_SLOTS, self.habits.shape[2])]
        choices = []
        for slot in slots:
            word = int(self.habits[int(late), writer, slot])
            if generator.random() >= options.strength:
                word = int(generator.integers(ALTERNATIVES))
            choices.append((slot, word))
        return Features(
            owner=owner,
            topic=topic,
            writer=writer,
            late=late,
            addressed=bool(generator.random() < options.addressed),
            signed=bool(generator.random() < options.signed),
            choices=tuple(choices),
        )

    def confidence(self, features: Features) -> dict[str, dict[str, dict[str, float]]]:
        """Return the largest P(label | text) by label, view and treatment of names."""
        asked = self._topics[features.topic]
        words = np.ones(self.habits.shape[:2])
        for slot, alternative in features.choices:
            words = words * self._words[:, :, slot, alternative]
        nameless = asked * (self._writers @ self._over_time(words.T))
        named = asked * self._writers[:, features.writer] if features.signed else nameless
        by_label = {}
        for label in LABELS:
            certain = 1.0 if features.addressed else None
            by_label[label] = {
                "first": self._by_names(certain, asked, asked, label),
                "conversation": self._by_names(certain, named, nameless, label),
            }
        return by_label

    def _by_names(self, certain: float | None, named: np.ndarray, nameless: np.ndarray, label: str) -> dict[str, float]:
        kept, removed = (float(self._by_label(joint, label).max() / joint.sum()) for joint in (named, nameless))
        kept = kept if certain is None else certain
        return {"kept": kept, "pseudonyms": kept, "removed": removed}

    def _over_time(self, words: np.ndarray) -> np.ndarray:
        """Average likelihoods (…, halves of the time) over the time."""
        over: np.ndarray = words @ np.array([1 - self._late_share, self._late_share])
        return over

    def _by_label(self, joint: np.ndarray, label: str) -> np.ndarray:
        """Add up the probabilities (…, owners) of each label."""
        if label == "owner":
            return joint
        queues: np.ndarray = joint @ (self.home[:, None] == np.arange(self.options.queues))
        return queues

    def accuracy(self, label: str) -> dict[str, dict[str, float]]:
        """Return the Bayes-optimal accuracy by view and names: exact but for rounding.

        It is that of a ticket drawn from the whole time, not of one of a known half.
        """
        options = self.options
        asked = self._best(self._topics, label)
        by_words = np.mean([self._by_words(later, label) for later in range(options.follow_ups + 1)])
        # By topic and writer, whose words then add nothing.
        by_name = self._best(self._topics[:, None, :] * self._writers.T, label)
        nameless = float(by_words)
        named = options.signed * by_name + (1 - options.signed) * nameless
        by_view = {}
        for view, kept, removed in (("conversation", named, nameless), ("first", asked, asked)):
            kept = options.addressed + (1 - options.addressed) * kept
            by_view[view] = {"kept": kept, "pseudonyms": kept, "removed": removed}
        return by_view

    def _best(self, joint: np.ndarray, label: str) -> float:
        """Return the sum of the largest joint probabilities (…, owners) over all texts."""
        return float(self._by_label(joint, label).max(axis=-1).sum())

    def _by_words(self, later: int, label: str) -> float:
        """Return the accuracy from topic and words of replies, `later` of them after the first."""
        total = 0.0
        replies = self._blocks(range(REPLY_SLOTS), 1)
        more = self._blocks(range(REPLY_SLOTS, self.habits.shape[2]), later)
        for reply in replies:
            # (texts, halves, writers) -> (texts, owners)
            words = self._over_time(np.moveaxis(reply * more, 1, 2)) @ self._writers.T
            total += self._best(self._topics * words[:, None, :], label)
        return total

    def _blocks(self, slots: range, times: int) -> np.ndarray:
        """Return the probability of all that writers can say in `slots`, each used so many times.

        Shape (texts, 2, owners). The order of a slot's uses tells nothing: it counts how often each
        alternative is there, times the number of orders.
        """
        texts = np.ones((1, *self.habits.shape[:2]))
        for slot in slots:
            uses = np.stack(
                [
                    orders * np.prod(self._words[:, :, slot, :] ** counts, axis=-1)
                    for counts, orders in _multisets(times)
                ]
            )
            texts = (texts[:, None] * uses).reshape(-1, *self.habits.shape[:2])
        return texts


def _multisets(times: int) -> Iterator[tuple[np.ndarray, int]]:
    for used in combinations_with_replacement(range(ALTERNATIVES), times):
        counts = np.bincount(used, minlength=ALTERNATIVES) if used else np.zeros(ALTERNATIVES, int)
        orders = factorial(times)
        for count in counts:
            orders //= factorial(int(count))
        yield counts, orders
