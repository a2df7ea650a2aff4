"""Logs made of logs by cutting, mixing and decorating. Everything follows from the logs and `SEED`."""

from __future__ import annotations

import importlib
import random
import re
import sys
from collections.abc import Callable, Iterator

from checkouts import ROOT

SEED = 18
# Of each source: cuts, decorations; of all: mixtures.
_CUTS, _DAMAGES, _MIXTURES = 12, 8, 3000
_MODULES = ("compute_logs", "hpc_logs", "io500_logs", "learning_logs", "network_logs", "solver_logs", "storage_logs")
_NOISE = (
    "Loading module gcc/13.2.0",
    "The following have been reloaded with a version change:",
    "  1) openmpi/4.1.5 => openmpi/5.0.3",
    "+ srun --mpi=pmix -n 64 ./prepare",
    "srun: warning: can't run 1 processes on 2 nodes, setting nnodes to 1",
    "slurmstepd: info: task_p_pre_launch: Using sched_affinity for tasks",
    "WARNING: There was an error initializing an OpenFabrics device.",
    "Mon Nov 23 10:00:00 UTC 2026",
    "N  :  12 of something else",
    "srun: error: node17: task 3: Killed",
    "",
    "=" * 60,
)
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])")
_VERDICTS = (
    ("PASSED", "FAILED"),
    ("Pass", "Fail"),
    ("VALID", "INVALID"),
    ("SUCCESSFUL", "UNSUCCESSFUL"),
    ("Validates", "Fails"),
    ("success", "aborted"),
    ("OK", "FAILED"),
    ("true", "false"),
)
_LENT = (
    "slurmstepd: error: *** JOB 17 ON node1 CANCELLED AT 2026-01-02T03:04:05 DUE TO TIME LIMIT ***",
    "mpirun noticed that process rank 3 with PID 0 on node node1 exited on signal 9 (Killed).",
    "Segmentation fault (core dumped)",
)


def _lines(text: str) -> list[str]:
    return text.split("\n")


def _each_line(change: Callable[[random.Random, int, str], str]) -> Callable[[random.Random, str], str]:
    def changed(rng: random.Random, text: str) -> str:
        lines = _lines(text)
        last = lines.pop() if lines[-1] == "" else None
        lines = [change(rng, number, line) for number, line in enumerate(lines)]
        return "\n".join([*lines, *([last] if last is not None else [])])

    return changed


def _stamp(rng: random.Random, number: int, line: str) -> str:
    return f"2026-11-23T10:{number // 60 % 60:02d}:{number % 60:02d}.{number % 1000:03d}Z {line}"


def _coloured(rng: random.Random, number: int, line: str) -> str:
    return f"\x1b[0;3{number % 8}m{line}\x1b[0m" if line and number % 3 == 0 else line


def _noisy(rng: random.Random, text: str) -> str:
    lines = _lines(text)
    for _ in range(max(2, len(lines) // 12)):
        lines.insert(rng.randrange(len(lines)), rng.choice(_NOISE))
    return "\n".join(lines)


def _two_ranks(rng: random.Random, text: str) -> str:
    lines = _lines(text)
    waiting: dict[int, list[str]] = {0: list(reversed(lines)), 1: list(reversed(lines))}
    found = []
    while any(waiting.values()):
        rank = rng.choice([rank for rank, rest in waiting.items() if rest])
        found.append(f"{rank}: {waiting[rank].pop()}")
    return "\n".join(found) + "\n"


def _progress(rng: random.Random, text: str) -> str:
    lines = _lines(text)
    place = rng.randrange(len(lines))
    lines[place] = "".join(f"working {n} %\r" for n in range(0, 100, 9)) + lines[place]
    return "\n".join(lines)


# What a launcher, a terminal or a file system does to a log.
DECORATIONS: dict[str, Callable[[random.Random, str], str]] = {
    "stamps": _each_line(_stamp),
    "rank 0": _each_line(lambda rng, number, line: f"0: {line}"),
    "wide ranks": _each_line(lambda rng, number, line: f" 12: {line}"),
    "tags": _each_line(lambda rng, number, line: f"[1,0]<stdout>:{line}"),
    "hosts": _each_line(lambda rng, number, line: f"node{number % 2 + 1}: {line}"),
    "colours": _each_line(_coloured),
    "indented": _each_line(lambda rng, number, line: f"    {line}"),
    "crlf": lambda rng, text: text.replace("\r\n", "\n").replace("\n", "\r\n"),
    "upper": lambda rng, text: text.upper(),
    "lower": lambda rng, text: text.lower(),
    "noise": _noisy,
    "two ranks": _two_ranks,
    "progress": _progress,
    "twice": lambda rng, text: text + "\n" + text,
}


def _damaged(rng: random.Random, text: str) -> str:
    """Change a few numbers or words of success, so that what agreed contradicts itself."""
    places = [match.span() for match in _NUMBER.finditer(text)]
    for start, end in sorted(rng.sample(places, min(len(places), rng.choice((1, 1, 3)))), reverse=True):
        change = rng.choice(("nan", "0", "-1", "inf", "0.000", "9" + text[start:end], "7"))
        text = text[:start] + change + text[end:]
    if rng.random() < 0.3:
        text = text.replace(*rng.choice(_VERDICTS))
    return text


def own_logs() -> dict[str, str]:
    """Return the logs that the tests of the parsers are written with, by module and name."""
    folder = str(ROOT / "tests" / "unit" / "hpc")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    found: dict[str, str] = {}
    for module in _MODULES:
        for name, value in sorted(vars(importlib.import_module(module)).items()):
            if name.isupper() and isinstance(value, str) and "\n" in value:
                found[f"{module}.{name}"] = value
            elif name.isupper() and isinstance(value, dict):
                texts = {k: v for k, v in value.items() if isinstance(v, str) and "\n" in v}
                found |= {f"{module}.{name}[{key}]": text for key, text in texts.items()}
    return found


def _mixed(rng: random.Random, one: str, other: str) -> str:
    """Lines of two programs that print into one file, in bursts."""
    rest = [list(reversed(_lines(one))), list(reversed(_lines(other)))]
    found: list[str] = []
    while any(rest):
        source = rng.choice([lines for lines in rest if lines])
        for _ in range(min(len(source), rng.choice((1, 1, 2, 7, 30)))):
            found.append(source.pop())
    return "\n".join(found)


def variants(logs: dict[str, str], seed: int = SEED, *, mixtures: int = _MIXTURES) -> Iterator[tuple[str, bytes]]:
    """Yield every log whole, cut, decorated and mixed with others, each with a name of its own."""
    names = sorted(logs)
    for name in names:
        rng, text = random.Random(f"{seed} {name}"), logs[name]
        yield name, _bytes(text)
        for number in range(_CUTS):
            place, rest = rng.randrange(len(text) + 1), text
            if number % 4 == 1:  # its head is lost
                rest = text[place:]
            elif number % 4 == 3:  # it was stopped, and the log says so
                rest = f"{text[:place]}\n{rng.choice(_LENT)}\n"
            else:
                rest = text[:place]
            yield f"{name} cut {number} at {place}", _bytes(rest)
        for number in range(_DAMAGES):
            yield f"{name} damaged {number}", _bytes(_damaged(rng, text))
        for kind, change in DECORATIONS.items():
            yield f"{name} {kind}", _bytes(change(rng, text))
            if kind in ("stamps", "rank 0", "crlf", "two ranks"):
                place = rng.randrange(len(text) + 1)
                yield f"{name} {kind} cut at {place}", _bytes(change(rng, text[:place]))
    rng = random.Random(seed)
    for number in range(mixtures):
        one, other = rng.choice(names), rng.choice(names)
        pieces = logs[one][:6000], logs[other][-6000:]
        kind = ("behind", "within", "mixed")[number % 3]
        if kind == "behind":
            text = "\n".join(pieces)
        elif kind == "within":
            place = rng.randrange(len(pieces[0]) + 1)
            text = f"{pieces[0][:place]}\n{pieces[1]}\n{pieces[0][place:]}"
        else:
            text = _mixed(rng, *pieces)
        yield f"{number} {kind}: {one} + {other}", _bytes(text)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
