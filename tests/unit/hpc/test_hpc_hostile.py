"""No input crashes a parser or takes it super-linear time: fuzzing made from its own patterns."""

from __future__ import annotations

import io
import re
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transect.hpc.base import PARSERS, Run, RunStatus
from transect.hpc.scan import Scanner

ASCII = st.characters(codec="ascii", exclude_categories=("Cc",), include_characters="\t")
NOISE = st.one_of(
    st.text(ASCII, max_size=60),
    st.sampled_from(
        [
            "", "   ", "-" * 70, "=" * 70, "nan nan nan", "-1 0 inf 1e400 -1e400", "1 2 3 4 5 6 7 8 9",
            "0: ", "[1] ", "srun: error: node1: task 0: Killed", "\x1b[31mred\x1b[0m", "\0\0\0",
            "{", "}", '{"a": [1, 2', "a = b = c", "key: value: more", "%s %d %n", "é" * 20,
        ]
    ),
)  # fmt: skip


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


def scan(text: str) -> list[Run]:
    raw = text.encode("utf-8", "surrogatepass")
    return list(Scanner().scan(io.BytesIO(raw), "log"))


@pytest.mark.parametrize("name", PARSERS.names())
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(data=st.data())
def test_no_line_that_a_parser_asks_for_breaks_it(name, data):
    parser = PARSERS.get(name)
    wanted = lines_like(parser.wants)
    body = data.draw(
        st.lists(st.one_of(wanted, wanted, lines_like(parser.starts), NOISE), max_size=25)
    )
    first = data.draw(lines_like(parser.starts))
    runs = scan("\n".join([first, *body]))
    assert runs
    assert not [run.reason for run in runs if "fault of the parser" in run.reason]
    # Whatever is believed can be said in JSON, and a status other than ok has its reason.
    for run in runs:
        assert run.model_dump_json()
        assert (run.status is RunStatus.OK) == (not run.reason), run


@pytest.mark.parametrize("name", PARSERS.names())
def test_a_long_log_of_its_own_lines_takes_linear_time(name):
    parser = PARSERS.get(name)

    def example(pattern: str) -> str:
        return st.from_regex(re.compile(pattern), alphabet=ASCII).example().strip()

    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one example is all that is wanted
        lines = [example(p) for p in (*parser.starts, *(parser.wants or ()))]
    text = "\n".join([*lines, *(f"{line} 1 2 3.5 4e9" for line in lines)]) + "\n"
    repeated = text * (400_000 // len(text) + 1)
    begin = time.process_time()
    runs = scan(repeated)
    # Generous, a thousand times what it takes: what grows with the square does not pass.
    assert time.process_time() - begin < 60
    assert runs


@pytest.mark.parametrize("name", PARSERS.names())
def test_a_line_of_a_million_characters_is_survived(name):
    parser = PARSERS.get(name)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = st.from_regex(re.compile(parser.starts[0]), alphabet=ASCII).example().strip()
    for filler in ("x", " ", "9", "1 ", "=", ".", "a:"):
        begin = time.process_time()
        assert scan(f"{first}\n{first} {filler * (1_000_000 // len(filler))}\n{first}\n")
        assert time.process_time() - begin < 30
