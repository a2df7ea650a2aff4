"""The badge of a replication: how many claims hold, as a picture that stands alone."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import escape

from transect.analysis.claims import Verdict

# White on each of these has a contrast of 5.5 or more (WCAG 2.2, 1.4.3), whatever lies behind the badge.
_LEFT, _GOOD, _BAD, _OPEN = "#4a4a4a", "#1e6b30", "#9c2a21", "#1f5a85"
_PX, _PAD, _HEIGHT = 6.6, 8, 22


def badge_words(counts: Mapping[str, int]) -> str:
    """Say how many claims hold.

    >>> badge_words({"holds": 4, "open": 8})
    '4 of 12 hold'
    """
    holds = counts.get(Verdict.HOLDS, 0)
    return f"{holds} of {sum(counts.values())} {'holds' if holds == 1 else 'hold'}"


def badge(counts: Mapping[str, int]) -> bytes:
    """Return `badge.svg`: green where all hold, red where one does not, else blue."""
    left, right = "replicated", badge_words(counts)
    fails, all_hold = counts.get(Verdict.FAILS, 0), counts.get(Verdict.HOLDS, 0) == sum(counts.values()) > 0
    colour = _BAD if fails else _GOOD if all_hold else _OPEN
    first, second = (round(len(text) * _PX) + 2 * _PAD for text in (left, right))
    label = escape(f"{left}: {right}")
    text = 'y="15" text-anchor="middle"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{first + second}" height="{_HEIGHT}" role="img" aria-label="{label}">'
        f"<title>{label}</title>"
        f'<rect width="{first}" height="{_HEIGHT}" fill="{_LEFT}"/>'
        f'<rect x="{first}" width="{second}" height="{_HEIGHT}" fill="{colour}"/>'
        f'<g fill="#fff" font-family="Liberation Sans, Arial, Helvetica, sans-serif" font-size="12">'
        f'<text x="{first / 2:g}" {text}>{left}</text><text x="{first + second / 2:g}" {text}>{right}</text></g></svg>\n'
    ).encode()
