"""Names of files that stay the same from run to run."""

from __future__ import annotations

import re
import unicodedata

_MAX_LENGTH = 80


def slug(text: str) -> str:
    """Return a name of lower-case letters, digits and single dashes; `unnamed` when nothing is left.

    >>> slug("Time to accuracy 0.95, 2 ranks"), slug("../../etc"), slug("<b>")
    ('time-to-accuracy-0-95-2-ranks', 'etc', 'b')
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
    return words[:_MAX_LENGTH].rstrip("-") or "unnamed"


class Names:
    """Gives every thing a name that nothing else has: of two with one name the second gets `-2`."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def of(self, text: str) -> str:
        """Return the name for a text; called in the order of the report, so it is the same each time."""
        base = name = slug(text)
        number = 1
        while name in self._taken:
            number += 1
            name = f"{base}-{number}"
        self._taken.add(name)
        return name
