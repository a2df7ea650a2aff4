"""What the paths of logs say about their runs: which system, and when."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any

# A day, or a month parted by - or _: `2022.10` is a version, and six digits or those behind `slurm-` are a job's number.
DATE = re.compile(
    r"(?<!\d)(?:(20\d\d)([-_.])(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01])|(20\d\d)([-_])(0[1-9]|1[0-2])(?!\6\d)"
    r"|(?<!slurm-)(?<!job)(?<!job[-_])(20\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01]))(?!\d)"
)
_PRINTED = ("%a %b %d %H:%M:%S %Y", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y/%m/%d %H:%M:%S")
_WHEN = re.compile(r"^(?:date|began|start(?:ed)?|timestamp)$", re.I)
# What names of logs hold besides a system's: numbers of jobs and repeats, and what they are.
_NO_SYSTEM = re.compile(
    r"\d+|slurm|job|run|logs?|out|err|output|stdout|stderr|results?|bench(?:mark)?s?|tests?|txt|data|archive", re.I
)


def depth_of(files: Sequence[str], source: str) -> int:
    """Return how many parts of logs' paths lead to the path that was read, of which `source` is the name.

    Its name is its last part, or several joined by `-` (`log_sources`). Where it has another name, as a link has,
    it is taken to be the last folder that all share.

    >>> depth_of(["/home/a/logs/x/1.out", "/home/a/logs/x/2.out"], "a-logs")
    4
    """
    folders = [PurePosixPath(file).parts[:-1] for file in files]
    shared = [level[0] for level in takewhile(lambda level: len({*level}) == 1, zip(*folders, strict=False))]
    ends = (
        end for end in range(len(shared), 0, -1) if any("-".join(shared[start:end]) == source for start in range(end))
    )
    return next(ends, len(shared) if files and files[0].startswith("/") else 0)


def system_of(parts: Sequence[str], source: str, benchmark: str) -> str:
    """Name a run's system: by a folder below the path that was read, else by the log's own name, else by the path.

    Dates, numbers, words that any log may have and those of its benchmark's name name none.

    >>> system_of(["2026-08", "alpha", "stream-01.out"], "logs", "stream")
    'alpha'
    >>> system_of(["stream-2026-08-01.out"], "beta", "stream")
    'beta'
    >>> system_of(["nccl", "nccl-gamma-7.log"], "logs", "nccl-tests")
    'gamma'
    >>> system_of(["stream_c.out"], "beta", "stream")
    'beta'
    """
    stem = re.sub(r"\.[A-Za-z]{1,4}$", "", parts[-1]) if parts else ""
    whole = re.sub(r"[^a-z0-9]", "", benchmark.lower())
    of_benchmark = {whole, f"{whole}c", f"x{whole}", *benchmark.lower().split("-")}
    for name in (*parts[:-1], stem, source):
        words = re.split(r"[-_. ]+", name)
        left = [word for word in words if word and not _NO_SYSTEM.fullmatch(word)]
        naming = [word for word in left if word.lower() not in of_benchmark]
        if naming and "".join(left).lower() not in of_benchmark:
            return "-".join(naming)
    return ""


def when_of(parameters: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return when a run was, in UTC where the log tells no zone: as the log, else the names on its path tell."""
    for name, value in parameters.items():
        if _WHEN.match(name):
            for form in _PRINTED:
                try:
                    moment = datetime.strptime(" ".join(str(value).split())[:24].strip(), form)
                except ValueError:
                    continue
                return moment.replace(tzinfo=UTC).isoformat()
    # The last name is the log's own, and the nearest.
    for name in reversed(names):
        for found in DATE.finditer(name):
            year, month, *day = (part for part in found.groups() if part and part.isdecimal())
            try:
                return f"{date(int(year), int(month), int(*day or [1])).isoformat()}T00:00:00+00:00"
            except ValueError:
                continue
    return ""
