"""A matrix of faults is whole on Python and C each day, and in every other language in three days."""

from __future__ import annotations

from itertools import product

import pytest

import thirds

LANGUAGES = ("python", "c", "go", "java", "browser")
FAULTS = [str(number) for number in range(84)]


@pytest.fixture
def days(monkeypatch: pytest.MonkeyPatch) -> list[set[tuple[str, str]]]:
    """What is run by default on each of three days."""
    found = []
    for third in range(3):
        monkeypatch.setattr(thirds, "THIRD", third)
        made = thirds.thirds(LANGUAGES, FAULTS)
        assert {one.values for one in made} == set(product(LANGUAGES, FAULTS))
        assert {mark.name for one in made for mark in one.marks} == {"exhaustive"}
        found.append({one.values for one in made if not one.marks})
    return found


def test_three_days_are_the_whole_matrix(days: list[set[tuple[str, str]]]) -> None:
    others = {pair for pair in product(LANGUAGES, FAULTS) if pair[0] != "browser"}
    assert others <= set.union(*days)
    assert all(set(product(("python", "c"), FAULTS)) <= day for day in days)


def test_a_day_has_a_third_of_it_and_few_in_the_browser(days: list[set[tuple[str, str]]]) -> None:
    for day in days:
        parts = {one: {fault for language, fault in day if language == one} for one in LANGUAGES}
        assert {one: len(parts[one]) for one in ("go", "java")} == {"go": 28, "java": 28}
        assert not parts["go"] & parts["java"]
        assert 5 <= len(parts["browser"]) <= 6
    assert sum(len(day) for day in days) == len(set.union(*days)) + 2 * 2 * len(FAULTS)
