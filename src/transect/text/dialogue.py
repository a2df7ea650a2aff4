"""What is read of a ticket: which messages, and what becomes of the names of people in them."""

from __future__ import annotations

from typing import Any


def dialogue(ticket: dict[str, Any], view: str, names: str) -> tuple[str, int]:
    """Return one text of a ticket (a line of `tickets.jsonl`), and how many people it lost.

    `view`: `first` reads the first message of a customer, or the first where no role says
    `customer`; `conversation` joins all messages by line ends. `names`: see `treated`.
    """
    messages = ticket["messages"]
    if view == "first":
        asked = (message for message in messages if message.get("role") == "customer")
        messages = [next(asked, messages[0])] if messages else []
    texts, replaced = [], 0
    for message in messages:
        text, found = treated(message.get("text", ""), message.get("people", []), names)
        texts.append(text)
        replaced += found
    return "\n".join(texts), replaced


def treated(text: str, people: list[list[Any]], names: str) -> tuple[str, int]:
    """Return `text` with its people `kept`, as their `pseudonyms` or `removed`, and how many were not kept.

    `people`: start and end in code points, and a pseudonym. Raises ValueError for spans that leave
    the text or overlap: what remained would hold parts of names.
    """
    if names == "kept" or not people:
        return text, 0
    pieces, end = [], 0
    for start, stop, pseudonym in sorted(people):
        if not end <= start < stop <= len(text):
            raise ValueError(
                f"the span {start} to {stop} of a person: expected one after {end} in a text of {len(text)} characters"
            )
        pieces += [text[end:start], pseudonym if names == "pseudonyms" else ""]
        end = stop
    return "".join([*pieces, text[end:]]), len(people)
