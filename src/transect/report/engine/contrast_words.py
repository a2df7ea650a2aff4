"""What a contrast is called in tables and sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from transect.analysis.contrast import Contrast
from transect.report.engine.blocks import Chip, Column, digits, words
from transect.report.engine.text import count, ends, factor, with_ends
from transect.stats.verdicts import Answer

# How a ratio was estimated: a reader may find another one by dividing what a table shows.
_BY = {"turn": "turn by turn", "seed": "seed by seed", "run": "run by run"}


def verdict_chip(contrast: Contrast | None, less: str = "shorter", more: str = "longer") -> Chip | None:
    """Return how a contrast ends for the group: `less` or `more` than the base of what is better when it is less."""
    if contrast is None:
        return None
    if contrast.over_subscribed:
        return Chip("not known: shared cores", "warn", contrast.reason)
    if not contrast.shown:
        same = contrast.answer is Answer.SAME
        return Chip("the same" if same else "not known", "plain", contrast.reason)
    better = contrast.better is contrast.group
    return Chip(less if better else more, "good" if better else "plain", contrast.reason)


def contrast_columns(title: str, of: Callable[[Any], Contrast | None], **how: str) -> list[Column[Any]]:
    """Return the columns of a ratio, with its interval, and of how the contrast ends."""
    return [
        digits(title, lambda row: with_ends(found.ratio) if (found := of(row)) else None),
        words("Verdict", lambda row: verdict_chip(of(row), **how)),
    ]


def ratio_words(contrast: Contrast) -> str:
    """Write the ratio of a group to its base: `1.9 times (95 % interval 1.7 to 2.1)`."""
    return f"{factor(contrast.ratio.value)} times ({ends(contrast.ratio, factor)})"


def doubt_words(contrast: Contrast) -> str:
    """Say why a ratio decides nothing; empty where it does."""
    if contrast.over_subscribed:
        return "; ranks share cores, so this decides nothing"
    if contrast.answer is Answer.SAME:
        return f"; the same within {100 * contrast.comparison.margin:g} %"
    return "" if contrast.shown else f"; which is faster is not known{needs_words(contrast)}"


def needs_words(contrast: Contrast) -> str:
    """Say what would tell, where that is known: `: to know takes about 9 more runs a side`."""
    return f": to know takes {contrast.needs}" if contrast.needs else ""


def basis_words(contrast: Contrast) -> str:
    """Say what a ratio rests on: `ratio turn by turn of 3 pairs of launches, 1 disturbed left out`."""
    how = f"ratio {_BY[contrast.by]} of {count(contrast.pairs, 'pair')}" if contrast.by in _BY else ""
    left = f"{contrast.left_out} disturbed left out" if contrast.left_out else ""
    return ", ".join(filter(None, [how, left]))
