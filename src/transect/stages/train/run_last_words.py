"""What a program in Go said when it died of itself: a panic that nobody recovered, or the runtime's own end."""

from __future__ import annotations

import re

from transect.domain.record import Cause

# A goroutine's panic, or what the runtime finds, ends the process at once: no code of the program's is asked.
_END = re.compile(r"^(?:panic: |fatal error: |runtime: out of memory)")
_MEMORY = re.compile(r"out of memory|cannot allocate memory|cannot map pages")
# Where the goroutine was: the first function of its own, and its file.
_GOROUTINE = re.compile(r"^goroutine \d+.*\[running")
_FILE = re.compile(r"^\s+(\S+\.go:\d+)")
_RUNTIME = ("runtime.", "panic(", "runtime:")
_MOST_LINES = 60
# What Open MPI's mpiexec says of the rank that ended first.
_RANK = re.compile(r"Process name: \[\S+?,\s*(\d+)\]\s+Exit code")


def last_words(log: str) -> tuple[Cause, str] | None:
    """Return the cause and the first lines of a death in Go, or None where the log has none.

    >>> last_words("x\\npanic: boom\\n\\ngoroutine 7 [running]:\\nmain.f()\\n\\tmain.go:3 +0x1\\n")
    (<Cause.CRASH: 'crash'>, 'panic: boom, in main.f() (main.go:3)')
    """
    lines = log.splitlines()
    at = next((number for number, line in enumerate(lines) if _END.match(line)), None)
    if at is None:
        return None
    said = lines[at].strip()
    tail = lines[at + 1 : at + _MOST_LINES]
    cause = Cause.CRASH
    if said.startswith(("fatal error: ", "runtime: ")) and _MEMORY.search(said):
        cause = Cause.OUT_OF_MEMORY
    told = _RANK.search(log)
    who = f"rank {told[1]}: " if told else ""
    return cause, f"{who}{said}{_place(tail)}"


def _place(tail: list[str]) -> str:
    running = next((n for n, line in enumerate(tail) if _GOROUTINE.match(line)), None)
    if running is None:
        return ""
    for function, file in zip(tail[running + 1 :], tail[running + 2 :], strict=False):
        found = _FILE.match(file)
        if found and not function.startswith((*_RUNTIME, " ", "\t")):
            return f", in {function} ({found[1]})"
    return ""
