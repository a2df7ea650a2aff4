"""Sentences as they stand in the page: commands and keys in a face of their own, terms that lead to the glossary."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from transect.report.engine.glossary import anchor, pattern, term_of

_CODE = re.compile(r"`([^`\n]{1,200})`")


class Inline:
    """Writes the sentences of one section: the first time a term occurs, it leads to its entry.

    With `linked` False none does. Whatever is given is escaped; what lies between backticks becomes
    code.

    >>> str(Inline()("The `<cell>` and its median, a median"))
    'The <code>&lt;cell&gt;</code> and its <a class="term" href="#term-median">median</a>, a median'
    """

    def __init__(self, *, linked: bool = True) -> None:
        self._linked = linked
        self._seen: set[str] = set()

    def __call__(self, text: str) -> Markup:
        """Return a text as markup, its terms linked."""
        return Markup("").join(
            self.code(f"`{part}`") if place % 2 else self._terms(part) for place, part in enumerate(_CODE.split(text))
        )

    @staticmethod
    def code(text: str) -> Markup:
        """Return a text as markup, without links."""
        return Markup("").join(
            Markup("<code>{}</code>").format(part) if place % 2 else escape(part)
            for place, part in enumerate(_CODE.split(text))
        )

    def _terms(self, text: str) -> Markup:
        if not self._linked:
            return escape(text)
        parts: list[Markup] = []
        end = 0
        for found in pattern.finditer(text):
            target = anchor(term_of(found.group()))
            if target in self._seen or (len(found.group()) > 1 and found.group().isupper()):
                continue  # capitals are a name to fill in
            self._seen.add(target)
            parts.append(escape(text[end : found.start()]))
            parts.append(Markup('<a class="term" href="#{}">{}</a>').format(target, found.group()))
            end = found.end()
        parts.append(escape(text[end:]))
        return Markup("").join(parts)
