"""What Slurm's programs say of partitions and nodes, read as Slurm means it.

Manuals of sinfo (NODE STATE CODES), sbatch (--constraint) and scontrol (show partition), Slurm 21.08 to 24.11.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product

from transect.domain.errors import BadInput

# Slurm prints it for what a node or a partition does not have.
_NULL = "(null)"
# In sinfo's long and short form. What is powered down is started for a job.
_STATES = re.compile(
    r"(?:alloc(?:ated)?|comp(?:leting)?|idle|mix(?:ed)?|planned|plnd|resv|reserved|pow\w*"
    r"|reboot_requested)([*~#!%$@^+-]*)"
)
# Does not respond, in a maintenance reservation, reboots now.
_UNUSABLE = frozenset("*$^")
_WORDS = re.compile(r"[\w.:/=+-]+|[&|*()\[\]]")


def absent(text: str) -> str:
    """Return `text`, empty where Slurm means that there is nothing."""
    return "" if text.strip() in (_NULL, "none", "N/A") else text.strip()


def minutes(text: str) -> float:
    """Return Slurm's `days-hours:minutes:seconds` in minutes; what has no limit is infinite."""
    if not absent(text) or text in ("UNLIMITED", "INFINITE", "NONE"):
        return float("inf")
    days, _, rest = text.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    hours, minutes_, seconds = [0, 0, 0, *parts][-3:]
    return int(days or 0) * 1440 + hours * 60 + minutes_ + seconds / 60


def gpus(gres: str, kind: str | None) -> int:
    """Return how many GPUs, of a kind if that is given, a node's `gres` has."""
    found = re.finditer(r"gpu:(?:([\w.-]+):)?(\d+)", gres)
    return sum(int(match[2]) for match in found if kind is None or match[1] == kind)


def usable(state: str) -> bool:
    """Tell whether a node in a state such as `mixed-` or `idle*` serves jobs, now or in its turn."""
    match = _STATES.fullmatch(state.lower())
    return match is not None and not _UNUSABLE & {*match[1]}


class _Constraint:
    """Reads one from left to right, as Slurm does: `&` and `|` bind alike, parentheses group.

    A value is a list of alternatives, each the nodes that may serve one job together, by index.
    """

    def __init__(self, text: str, features: Sequence[frozenset[str]]) -> None:
        self._text, self._features = text, features
        self._words: list[str] = _WORDS.findall(text)
        if "".join(self._words) != re.sub(r"\s", "", text):
            raise self._error()

    def _error(self) -> BadInput:
        return BadInput(f"{self._text!r} is no constraint of Slurm's, such as a&b, (a|b)&c, [a|b] or a*2&b*1")

    def read(self) -> list[frozenset[int]]:
        value = self._several("")
        if self._words:
            raise self._error()
        return value

    def _next(self) -> str:
        if not self._words:
            raise self._error()
        return self._words.pop(0)

    def _several(self, end: str) -> list[frozenset[int]]:
        value, counted = self._one()
        while self._words and self._words[0] in ("&", "|"):
            sign = self._next()
            other, also = self._one()
            if sign == "|" and end == "]":
                value = value + other  # all nodes of the job have the same one
            elif sign == "&" and not (counted and also):
                value = [a & b for a, b in product(value, other)]
            elif sign == "&":
                # So many nodes of each: all of these are part of it, or there is none.
                value = [a | b if a and b else frozenset() for a, b in product(value, other)]
            else:
                value = [a | b for a, b in product(value, other)]
        if end and self._next() != end:
            raise self._error()
        return value

    def _one(self) -> tuple[list[frozenset[int]], bool]:
        word = self._next()
        if word in ("(", "["):
            value = self._several(")" if word == "(" else "]")
        elif re.fullmatch(r"\w.*", word):
            value = [frozenset(i for i, has in enumerate(self._features) if word in has)]
        else:
            raise self._error()
        if self._words[:1] != ["*"]:
            return value, False
        self._next()
        count = self._next()
        if not count.isdigit():
            raise self._error()
        return [nodes if len(nodes) >= int(count) else frozenset() for nodes in value], True


def fitting(constraint: str, features: Sequence[str]) -> list[int]:
    """Return which nodes can serve one job of a constraint, by index; none where too few have what it counts.

    `features`: of each node, as sinfo's %f has them. Raises BadInput for what is no constraint.
    """
    sets = [frozenset(absent(one).split(",")) - {""} for one in features]
    most: frozenset[int] = max(_Constraint(constraint, sets).read(), key=len)
    return sorted(most)
