"""Logs made of logs by cutting, mixing and decorating: what one state of the parsers says, another must say too.

Run as a program it keeps what this checkout's parsers find, or compares with what was kept:

    python tests/unit/hpc/log_variants.py keep FILE      # of the state to hold on to
    python tests/unit/hpc/log_variants.py compare FILE   # of the changed one; exit code 1 when a run differs

Sources are the corpora (`corpus.CORPORA`) and the logs of this project's tests. Everything follows from the
sources and `SEED`: the same checkout makes the same logs.
"""

from __future__ import annotations

import difflib
import gzip
import importlib
import io
import json
import random
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from checkouts import ROOT
from corpus import CORPORA
from transect.hpc.scan import Scanner
from transect.hpc.table import to_json

SEED = 18
# Of each source: cuts, decorations; of all: mixtures.
_CUTS, _DAMAGES, _MIXTURES = 12, 8, 3000
# A source is a window of a log: what is longer costs time and tells no more.
_WINDOW = 24_000
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


def sources() -> dict[str, str]:
    """Return all logs by name: of the corpora the first and the last part of what is long."""
    found = own_logs()
    for folder in CORPORA:
        for path in sorted(folder.rglob("*")):
            if not path.is_file() or path.suffix == ".md" or path.name == "INDEX.csv":
                continue
            text = path.read_bytes().decode("utf-8", "surrogateescape")
            name = f"{folder.name}/{path.relative_to(folder)}"
            if len(text) > _WINDOW:
                found[f"{name} begin"] = text[:_WINDOW]
                found[f"{name} end"] = text[-_WINDOW:]
            else:
                found[name] = text
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


def _found() -> Iterator[tuple[str, str]]:
    scanner = Scanner()
    for name, raw in variants(sources()):
        yield name, to_json(list(scanner.scan(io.BytesIO(raw), "log")))


def _keep(file: Path) -> int:
    count = 0
    with gzip.open(file, "wt", encoding="utf-8", compresslevel=3) as out:
        for name, text in _found():
            out.write(json.dumps([name, text]) + "\n")
            count += 1
    print(f"{count} logs kept in {file}")
    return 0


def _compare(file: Path, shown: int = 12) -> int:
    differing: dict[str, int] = {}
    count = 0
    with gzip.open(file, "rt", encoding="utf-8") as kept:
        for (name, now), line in zip(_found(), kept, strict=True):
            kept_name, before = json.loads(line)
            if kept_name != name:
                raise SystemExit(f"other logs than the kept ones: {name!r}, not {kept_name!r}")
            count += 1
            if now == before:
                continue
            lines = difflib.unified_diff(before.split("\n"), now.split("\n"), lineterm="", n=2)
            text = "\n".join(list(lines)[2:40])
            if sum(differing.values()) < shown:
                print(f"--- {name}\n{text}")
            source = name.split(" ")[0]
            differing[source] = differing.get(source, 0) + 1
    for source, number in sorted(differing.items(), key=lambda one: -one[1])[:40]:
        print(f"{number:5d} of {source}")
    print(f"{sum(differing.values())} of {count} logs differ")
    return 1 if differing else 0


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("keep", "compare"):
        raise SystemExit(__doc__)
    sys.exit((_keep if sys.argv[1] == "keep" else _compare)(Path(sys.argv[2])))
