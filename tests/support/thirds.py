"""What is too large for every day: a matrix of faults, frameworks and languages, or a list, of which one has a third a day.

Which third is `TRANSECT_TEST_THIRD`: 0, 1 or 2, by default that of the day; the head of a run says it.
Three days meet every fault in every language but the browser, which has a few; `--exhaustive` runs all at once.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable
from typing import Any

import pytest

# Where the contract is written down first, and where a fault costs most: memory is not checked there.
WHOLE = ("python", "c")
# A start of Chromium takes seconds; what it shares with Node.js is tested there.
FEW = {"browser": 5}

# Workers inherit it, so that all agree on a run that crosses midnight.
_TODAY = str(datetime.datetime.now(datetime.UTC).toordinal() % 3)
if (_given := os.environ.setdefault("TRANSECT_TEST_THIRD", _TODAY)) not in ("0", "1", "2"):
    raise pytest.UsageError(f"TRANSECT_TEST_THIRD={_given}: expected 0, 1 or 2")
THIRD = int(_given)


def pytest_report_header() -> str:
    """Say which third it is, and how to have the same again."""
    return f"third of matrices: TRANSECT_TEST_THIRD={THIRD}"


def thirds(languages: Iterable[str], faults: Iterable[str], whole: Iterable[str] = WHOLE) -> list[Any]:
    """Return every pair of them as parameters; those that are not of today are marked `exhaustive`."""
    faults, whole = list(faults), set(whole)
    return [
        pytest.param(language, fault, marks=() if today else pytest.mark.exhaustive)
        for place, language in enumerate(languages)
        for number, fault in enumerate(faults)
        for today in [language in whole or _is_today(language, place + number, len(faults))]
    ]


def third(names: Iterable[str]) -> list[Any]:
    """Return all names as parameters; those that are not of today are marked `exhaustive`."""
    return [
        pytest.param(name, marks=() if number % 3 == THIRD else pytest.mark.exhaustive)
        for number, name in enumerate(names)
    ]


def _is_today(language: str, number: int, faults: int) -> bool:
    # The same fault comes to different languages on different days.
    if language in FEW:
        return number % max(faults // FEW[language], 3) == THIRD
    return number % 3 == THIRD
