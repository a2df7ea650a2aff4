"""The fast search finds every line that `re` finds, and no other."""

from __future__ import annotations

import re
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transect.hpc.base import PARSERS
from transect.hpc.prefilter import LinePattern
from transect.hpc.rules import searched
from transect.hpc.text import line_pattern

ASCII = st.characters(codec="ascii", exclude_categories=("Cc",), include_characters="\t")


# Made once for all examples of a test: reading the patterns takes longer than they do.
@cache
def lines_like(*patterns: str) -> st.SearchStrategy[list[str]]:
    shaped = st.one_of(*(st.from_regex(re.compile(p), alphabet=ASCII) for p in patterns))
    label = st.sampled_from(["", "3: ", "[7] ", "  ", "2026-11-21T00:00:00Z ", "[1,2]<stdout>:"])
    return st.lists(st.tuples(label, shaped).map("".join), min_size=1, max_size=6)


@pytest.mark.parametrize("name", PARSERS.names())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_line_is_lost(name, data):
    parser = PARSERS.get(name)
    alternatives = [*parser.start_patterns, *(parser.line_patterns or ())]
    fast = line_pattern(alternatives)
    assert isinstance(fast, LinePattern) and fast.fast
    lines = data.draw(lines_like(*alternatives))
    buffer = ("\n" + "\n".join(lines)).encode()
    exact = re.compile(fast.exact)
    place, found = 0, []
    while (match := fast.search(buffer, place, len(buffer))) is not None:
        found.append(match.start())
        place = match.start() + 1
    wanted = [place for place in range(len(buffer)) if exact.match(buffer, place)]
    assert found == wanted


def test_a_pattern_that_re2_cannot_express_is_searched_by_re():
    pattern = LinePattern(r"\n(a|b)\1")
    assert not pattern.fast
    match = pattern.search(b"\nab\nbb", 0, 6)
    assert match is not None and match.start() == 3


def test_a_line_at_the_end_of_the_region_is_found_by_its_end():
    pattern = LinePattern(r"\n(?:Poses|SCALE)(?=[\r\n]|\Z)")
    assert pattern.fast
    buffer = b"\nany\nSCALE\nrest"
    match = pattern.search(buffer, 0, buffer.rindex(b"\n"))
    assert match is not None and match.start() == 4
    # A line that only begins there is no part of the region.
    assert pattern.search(b"\nany\nSCALE", 0, 4) is None


@pytest.mark.parametrize(
    ("rule", "line", "unmatched"),
    [
        (re.compile(r"(N|NB)\s{0,3}:\s{1,3}(\S.*)$"), "NB :  5 6  ", "NB :\n5"),
        (re.compile(r"(?P<what>rate)[^=]{0,9}=\s*(\d+)"), "rate of it = 7", "rate\n= 7"),
        (re.compile(r"HPL error", re.IGNORECASE), "hpl ERROR", "hpl"),
        (re.compile(r"a[\s,]b(?:c|d)$"), "a bd", "a\nbd"),
    ],
)
def test_what_is_searched_for_follows_from_the_rule(rule, line, unmatched):
    (pattern,) = searched(rule)
    compiled = re.compile(pattern)
    assert compiled.groups == 0
    assert rule.match(line.strip()) and compiled.match(line)
    # It never reaches into the next line.
    assert not compiled.match(unmatched)
    fast = line_pattern([pattern])
    assert isinstance(fast, LinePattern) and fast.fast
    assert fast.search(f"\nx\n{line}\ny".encode(), 0, len(line) + 5) is not None
