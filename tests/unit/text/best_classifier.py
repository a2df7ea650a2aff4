"""The best classifier of synthetic tickets: it reads their texts, and knows how they were made."""

from __future__ import annotations

import math
import re

import numpy as np

from transect.text.synthetic.model import ALTERNATIVES, Model
from transect.text.synthetic.options import SyntheticOptions
from transect.text.synthetic.wording import SLOTS, TOPICS, people


def read(language, texts):
    """Tell from a ticket's texts alone what its model has drawn: topic, names and words."""
    question = texts[0]
    (topic,) = {
        number for number, words in enumerate(TOPICS[language]) for word in words if re.search(rf"\b{word}\b", question)
    }
    hello = re.match(r"H[ae]llo (\w+ \w+),", question)
    signatures, words = [], []
    for text in texts[1::2]:
        signatures += re.findall(r"(?:Yours|Ihr) (\w+ \w+)$", text)
        words += [
            (slot, number)
            for slot, alternatives in enumerate(SLOTS[language])
            for number, word in enumerate(alternatives)
            if re.search(rf"\b{word}\b", text)
        ]
    assert len(set(signatures)) <= 1
    return topic, hello and hello[1], signatures[0] if signatures else None, words


class Likelihood:
    """The best classifier in plain loops, from the definition in the model's docstring."""

    def __init__(self, options, seed):
        self.options = SyntheticOptions(**options)
        self.owners, customers = people(self.options.owners, seed)
        self.everybody = [*self.owners, *customers]
        self.model = Model(self.options, seed)
        n = self.options.tickets
        self.late = {0: 1 - (n // 2) / n, 1: (n // 2) / n}

    def joint(self, owner, topic, hello, signature, words):
        o, queue = self.options, owner % self.options.queues
        asked = (owner + 1) ** -o.skew * ((1 - o.focus) / o.queues + o.focus * (topic == queue))
        if hello is not None and self.owners[owner] != hello:
            return 0.0
        total = 0.0
        for writer, name in enumerate(self.owners):
            if signature in (None, name):
                chance = 1 - o.stand_in if writer == owner else o.stand_in / (o.owners - 1)
                total += chance * sum(
                    share
                    * math.prod(
                        (1 - o.strength) / ALTERNATIVES + o.strength * (self.model.habits[half, writer, slot] == word)
                        for slot, word in words
                    )
                    for half, share in self.late.items()
                )
        return asked * total

    def posterior(self, *read):
        joint = [self.joint(owner, *read) for owner in range(self.options.owners)]
        by_queue = [sum(joint[queue :: self.options.queues]) for queue in range(self.options.queues)]
        return {"owner": np.array(joint) / sum(joint), "queue": np.array(by_queue) / sum(joint)}

    def by_view(self, ticket):
        texts = [message.text for message in ticket.messages]
        topic, hello, signature, words = read(ticket.language, texts)
        kept = (topic, hello, signature, words)
        return {
            "conversation": {"kept": kept, "removed": (topic, None, None, words)},
            "first": {"kept": (topic, hello, None, []), "removed": (topic, None, None, [])},
        }
