"""No input crashes a parser or takes it super-linear time: fuzzing made from its own patterns."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from log_scan import scan

from transect.hpc.base import PARSERS

ASCII = st.characters(codec="ascii", exclude_categories=("Cc",), include_characters="\t")
NOISE = st.one_of(
    st.text(ASCII, max_size=60),
    st.sampled_from(
        [
            "",
            "   ",
            "-" * 70,
            "=" * 70,
            "nan nan nan",
            "-1 0 inf 1e400 -1e400",
            "1 2 3 4 5 6 7 8 9",
            "0: ",
            "[1] ",
            "srun: error: node1: task 0: Killed",
            "\x1b[31mred\x1b[0m",
            "\0\0\0",
            "{",
            "}",
            '{"a": [1, 2',
            "a = b = c",
            "key: value: more",
            "%s %d %n",
            "é" * 20,
        ]
    ),
)


def lines_like(patterns: tuple[str, ...] | None) -> st.SearchStrategy[str]:
    """Lines that the patterns let through, with more or less behind them."""
    if not patterns:
        return NOISE
    shaped = st.one_of(*(st.from_regex(re.compile(p), alphabet=ASCII) for p in patterns))
    numbers = st.lists(
        st.one_of(
            st.integers(-10, 10**12).map(str),
            st.floats(allow_nan=True, allow_infinity=True, width=32).map(repr),
            st.sampled_from(["PASSED", "FAILED", "-", "N/A", "GB/s", "MiB/sec", ":", "=", "|"]),
        ),
        max_size=10,
    ).map(" ".join)
    return st.tuples(shaped, numbers).map(lambda two: f"{two[0].strip()} {two[1]}")


def check(name: str, data: st.DataObject) -> None:
    """Read lines that a parser asks for, with noise between them."""
    parser = PARSERS.get(name)
    wanted = lines_like(parser.line_patterns)
    body = data.draw(st.lists(st.one_of(wanted, wanted, lines_like(parser.start_patterns), NOISE), max_size=25))
    first = data.draw(lines_like(parser.start_patterns))
    for run in scan("\n".join([first, *body])):
        assert run.model_dump_json()


FUZZED = settings(max_examples=5, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", PARSERS.names())
@FUZZED
@given(data=st.data())
def test_no_line_that_a_parser_asks_for_breaks_it(name, data):
    check(name, data)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", PARSERS.names())
@settings(FUZZED, max_examples=40)
@given(data=st.data())
def test_none_of_many_lines_that_a_parser_asks_for_breaks_it(name, data):
    check(name, data)


# Two drawings are made of each pattern: the shortest line, and any.
DRAWN = settings(FUZZED, max_examples=2, phases=[Phase.generate])


@pytest.mark.parametrize("size", [100_000, pytest.param(400_000, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("name", PARSERS.names())
@DRAWN
@given(data=st.data())
def test_a_long_log_of_its_own_lines_takes_linear_time(name, size, data):
    parser = PARSERS.get(name)
    patterns = (*parser.start_patterns, *(parser.line_patterns or ()))
    lines = [data.draw(st.from_regex(re.compile(one), alphabet=ASCII)).strip() for one in patterns]
    text = "\n".join([*lines, *(f"{line} 1 2 3.5 4e9" for line in lines)]) + "\n"
    repeated = text * (size // len(text) + 1)
    begin = time.process_time()
    scan(repeated)
    # Generous, hundreds of times what it takes: what grows with the square does not pass, whichever size.
    assert time.process_time() - begin < 60 * (size / 400_000) ** 2


@pytest.mark.parametrize("size", [200_000, pytest.param(1_000_000, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("name", PARSERS.names())
@DRAWN
@given(data=st.data())
def test_a_line_of_a_million_characters_is_survived(name, size, data):
    first = data.draw(st.from_regex(re.compile(PARSERS.get(name).start_patterns[0]), alphabet=ASCII))
    first = first.strip()
    for filler in ("x", " ", "9", "1 ", "=", ".", "a:"):
        begin = time.process_time()
        scan(f"{first}\n{first} {filler * (size // len(filler))}\n{first}\n")
        assert time.process_time() - begin < 30 * (size / 1_000_000) ** 2
