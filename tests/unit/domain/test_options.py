"""What options of strategies take, and what is said of what they do not."""

from __future__ import annotations

import pytest

from transect.domain.options import Option

COUNT = Option(default=4, min=1, description="")
SHARE = Option(default=0.5, description="")
WORD = Option(default="compute", description="")
NAME = Option(default="a", choices=("a", "b"), description="")
NUMBER = Option(default=1, choices=(1, 2), description="")
SIZE = Option(default="4k", pattern=r"[0-9]+k", example="16k", description="")
CUT = Option(default="a", choices=("a", "b"), pattern=r"[0-9]+-[0-9]+", example="3-7", description="")


@pytest.mark.parametrize(
    ("option", "taken", "refused", "expected"),
    [
        (COUNT, [1, 10**20], [0, 1.0, "4", True], "a whole number from 1 on"),
        (SHARE, [0, -1.5], ["0.5", False], "a number"),
        (WORD, ["x"], ["", 3], "a text in quotes"),
        (NAME, ["b"], ["c", "", 1], "one of a, b"),
        (NUMBER, [2], [3, True, "1", 1.0], "one of 1, 2"),
        (SIZE, ["1k"], ["1", "k", "", 1], "a text in quotes such as '16k'"),
        (CUT, ["b", "3-7"], ["c", "3", "3-7-", 3], "one of a, b, or a text in quotes such as '3-7'"),
    ],
)
def test_values(option, taken, refused, expected):
    assert [option.takes(value) for value in taken] == [True] * len(taken)
    assert [option.takes(value) for value in refused] == [False] * len(refused)
    assert option.expected == expected
