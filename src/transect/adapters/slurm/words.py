"""What Slurm's programs say of partitions and nodes, read as Slurm means it.

Manuals of sinfo (NODE STATE CODES), sbatch (--constraint) and scontrol (show partition), Slurm 21.08 to 24.11.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# Slurm prints it for what a node or a partition does not have.
_NULL = "(null)"
# In sinfo's long and short form. What is powered down is started for a job.
_STATES = re.compile(
    r"(?:alloc(?:ated)?|comp(?:leting)?|idle|mix(?:ed)?|planned|plnd|resv|reserved|pow\w*"
    r"|reboot_requested)([*~#!%$@^+-]*)"
)
# Does not respond, in a maintenance reservation, reboots now.
_UNUSABLE = frozenset("*$^")


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


def fitting(constraint: str, features: Sequence[str]) -> list[int]:
    """Return which nodes satisfy a constraint, by index: `a&b|c`, read from left to right as Slurm does.

    `features`: of each node, as sinfo's %f has them. What else Slurm knows, such as counts and brackets, is left to
    the job that tries it: then all nodes that have one of its features are named.
    """
    sets = [{*absent(one).split(",")} - {""} for one in features]
    words = re.findall(r"[\w.:/=+-]+|[&|]", constraint)
    if not words or "".join(words) != constraint:
        return [i for i, has in enumerate(sets) if has & {*words}]
    found = {i for i, has in enumerate(sets) if words[0] in has}
    for sign, word in zip(words[1::2], words[2::2], strict=False):
        having = {i for i, has in enumerate(sets) if word in has}
        found = found & having if sign == "&" else found | having
    return sorted(found)
