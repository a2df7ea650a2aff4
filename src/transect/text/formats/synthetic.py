"""Format `synthetic`: made-up dialogues with owners, whose best possible accuracy is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from transect.text.formats import FORMATS, Generator
from transect.text.options import checked
from transect.text.synthetic.model import FOLLOW_UP_SLOTS, REPLY_SLOTS, Features, Model
from transect.text.synthetic.options import SyntheticOptions
from transect.text.synthetic.wording import MESSAGES, QUEUES, SLOTS, TOPICS, people
from transect.text.tickets import Message, Rejected, Ticket

_BEGIN = datetime(2022, 1, 1, tzinfo=UTC)
_SPAN = timedelta(days=730)


@FORMATS.register("synthetic")
class Synthetic(Generator[SyntheticOptions]):
    """Makes tickets of a help desk that does not exist; see `transect.text.synthetic.model`.

    A ticket's `truth` is, by label (`owner`, `queue`), view and names, the largest probability that a
    label has given its text: how often the best classifier is right on such a ticket.
    """

    options = SyntheticOptions

    def accuracy(self, options: dict[str, Any], seed: int, label: str) -> dict[str, Any]:
        """Return the Bayes-optimal accuracy of these tickets, exactly, by view and names."""
        return Model(checked(SyntheticOptions, options, "options"), seed).accuracy(label)

    def read(self, path: Path | None, given: SyntheticOptions, seed: int) -> Iterator[Ticket | Rejected]:
        """Yield each ticket, in the order of their time."""
        model = Model(given, seed)
        owners, customers = people(given.owners, seed)
        generator = np.random.default_rng([seed, 16])
        for number in range(given.tickets):
            # The second half has `tickets // 2`, as the model says.
            late = number >= given.tickets - given.tickets // 2
            features = model.draw(late, generator)
            language = "de" if generator.random() < given.german else "en"
            customer = customers[int(generator.integers(len(customers)))]
            begin = _BEGIN + _SPAN * ((number + generator.random()) / given.tickets)
            yield Ticket(
                id=f"synthetic-{number:07d}",
                messages=_messages(features, language, owners, customer, begin, generator),
                owner=owners[features.owner],
                queue=QUEUES[model.home[features.owner]],
                language=language,
                truth=model.confidence(features),
            )


def _messages(
    features: Features, language: str, owners: list[str], customer: str, begin: datetime, generator: np.random.Generator
) -> list[Message]:
    """Put a ticket into words: question and reply, then follow-ups with theirs."""

    def any_of(texts: Sequence[str]) -> str:
        return texts[int(generator.integers(len(texts)))]

    texts, writer = MESSAGES[language], owners[features.writer]
    first, second = generator.permutation(TOPICS[language][features.topic])[:2]
    hello = texts["hello"].format(name=owners[features.owner])
    hello = hello if features.addressed else any_of(texts["team"])
    question = any_of(texts["question"]).format(one=first, two=second)
    more = any_of(texts["more"]).format(number=generator.integers(100, 250))
    to_customer = texts["hello"].format(name=customer)
    signature = texts["signature"].format(name=writer) if features.signed else ""

    chosen = [SLOTS[language][slot][alternative] for slot, alternative in features.choices]
    replies = [texts["reply"].format(*chosen[:REPLY_SLOTS], one=first)]
    questions = [f"{hello} {question} {more} {customer}"]
    for place in range(REPLY_SLOTS, len(chosen), FOLLOW_UP_SLOTS):
        questions.append(f"{any_of(texts['team'])} {any_of(texts['again'])} {customer}")
        replies.append(texts["later"].format(*chosen[place : place + FOLLOW_UP_SLOTS]))

    messages, now = [], begin
    for asked, replied in zip(questions, replies, strict=True):
        answer = f"{to_customer} {replied} {signature}".rstrip()
        for role, author, text in (("customer", customer, asked), ("agent", writer, answer)):
            time = now.isoformat(timespec="seconds")
            messages.append(Message(text=text, author=author, role=role, time=time))
            now += timedelta(hours=generator.exponential(6))
    return messages
