"""No log of a parser's own lines takes it super-linear time."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from log_scan import scan

from transect.hpc.base import PARSERS

ASCII = st.characters(codec="ascii", exclude_categories=("Cc",), include_characters="\t")


# Two drawings are made of each pattern: the shortest line, and any.
DRAWN = settings(max_examples=2, suppress_health_check=list(HealthCheck), phases=[Phase.generate])


@pytest.mark.parametrize("size", [100_000, pytest.param(400_000, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("name", PARSERS.names())
@DRAWN
@given(data=st.data())
def test_a_long_log_of_its_own_lines_takes_linear_time(name, size, data):
    parser = PARSERS.get(name)
    patterns = (*parser.start_patterns, *(parser.line_patterns or ()))
    lines = [data.draw(st.from_regex(re.compile(pattern), alphabet=ASCII)).strip() for pattern in patterns]
    text = "\n".join([*lines, *(f"{line} 1 2 3.5 4e9" for line in lines)]) + "\n"
    repeated = text * (size // len(text) + 1)
    begin = time.process_time()
    scan(repeated)
    # Generous, hundreds of times what it takes: what grows with the square does not pass, whichever size.
    assert time.process_time() - begin < 60 * (size / 400_000) ** 2
