"""Runs a docking kernel that is a program of its own, and reads its energies and times.

The contract is docs/docking.md. Standard library and numpy.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from transect.hpc.probes._docking_deck import Deck, write_prepared
from transect.hpc.probes._docking_energy import constants
from transect.hpc.probes.common import cpu_flags
from transect.measure.turns import Turns

_OURS = "transect-docking-"
# What compilers call an error; the other lines tell where.
_ERROR = re.compile(r"\b(?:fatal )?error: ")
_MAX_WORDS = 400
_LINE = re.compile(r"(warm-up|time) (\d{1,9}) ([0-9.eE+-]{1,40})$")
_FACT = re.compile(r"fact ([a-z_]{2,20}) (.{1,400})$")
_REFUSED, _LACKS = 2, 3


class Lacks(Exception):
    """The machine lacks something that the kernel needs: one sentence."""


class Died(Exception):
    """The program ended as it should not."""


@dataclass(kw_only=True)
class Measured:
    """Energies of shape (poses,) in float32, seconds of each run, and facts that the program reported."""

    energies: np.ndarray
    warm_ups: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)


def find(program: str, bin: Path | None = None) -> str:
    """Return the path of a program: of ours beside this Python, of others on PATH.

    Raises Lacks, with the compiler's error where it could not build ours, or naming the vector
    instructions that it was built for and this CPU lacks.
    """
    if not program.startswith(_OURS):
        found = shutil.which(program)
        if found is None:
            raise Lacks(f"{program} is not on PATH")
        return found
    folder = Path(sys.executable).parent if bin is None else bin
    path, notes = folder / program, folder.parent / "share" / "docking"
    if not path.is_file():
        compiler_log = notes / f"{program.removeprefix(_OURS)}.txt"
        words = _words(compiler_log.read_text(errors="replace")) if compiler_log.is_file() else "nobody tried"
        raise Lacks(f"{program} could not be compiled: {words}")
    cpu = notes / "cpu.txt"
    wanted = set(cpu.read_text().split()) if cpu.is_file() else set()
    have = cpu_flags()
    if missing := sorted(wanted - have) if have else []:
        raise Lacks(
            f"{program} was compiled for a CPU with {', '.join(missing[:6])}, which this one has not: "
            "name another folder in TRANSECT_ENVS for this kind of machine"
        )
    return str(path)


def _words(text: str) -> str:
    """Return the first line in which a compiler speaks of an error, else its last one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    message = next((line for line in lines if _ERROR.search(line)), lines[-1] if lines else "nothing")
    return message if len(message) <= _MAX_WORDS else f"{message[:_MAX_WORDS]}…"


def measure(
    argv: Sequence[str], deck: Deck, folder: Path, variables: Mapping[str, str], turns: Turns | None = None
) -> Measured:
    """Run a program on a deck in `folder`, which exists; return what it measured.

    With `turns` it was told no number of runs: it asks before each turn. Raises Lacks when it says what the machine has not got, ValueError when it refuses what it was
    given, and Died for any other end or for an output that is not of the contract.
    """
    prepared, energies = folder / "deck", folder / "energies"
    write_prepared(deck, constants(deck.kinds), prepared)
    # A file: a pipe that nobody reads meanwhile may be full.
    with (folder / "stderr").open("w+", errors="replace") as errors:
        done = subprocess.Popen(
            [*argv, "--deck", str(prepared), "--energies", str(energies)],
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL if turns is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            errors="replace",
        )
        with done:
            output = list(_lines(done, turns))
        errors.seek(0)
        stderr = errors.read().strip()
    name = Path(argv[0]).name
    last = stderr.splitlines()[-1] if stderr else ""
    if done.returncode == _LACKS:
        raise Lacks(f"{name}: {last.removeprefix('lacks: ')}")
    if done.returncode == _REFUSED:
        raise ValueError(f"{name}: {last.removeprefix('error: ')}")
    if done.returncode < 0:
        raise Died(f"{name} died by {signal.Signals(-done.returncode).name}: {_words(stderr)}")
    if done.returncode:
        raise Died(f"{name} ended with exit code {done.returncode}: {_words(stderr)}")
    found = np.fromfile(energies, "<f4") if energies.is_file() else np.empty(0, np.float32)
    if len(found) != deck.poses.shape[1]:
        raise Died(f"{name} left {len(found)} energies, expected {deck.poses.shape[1]}")
    return _read(output, found)


def _lines(program: subprocess.Popen[str], turns: Turns | None) -> Iterator[str]:
    """Yield what a program prints; tell it how many runs its next turn has, when it is its turn."""
    assert program.stdout is not None
    first = True
    for line in program.stdout:
        if turns is None or program.stdin is None or line != "turn\n":
            yield line.rstrip("\n")
            continue
        count, first = turns.begin() if first else turns.wait(), False
        # One that has died says so by its exit code.
        with contextlib.suppress(BrokenPipeError):
            program.stdin.write(f"{count}\n")
            program.stdin.flush()


def _read(output: Sequence[str], energies: np.ndarray) -> Measured:
    measured = Measured(energies=energies)
    for line in output:
        if (match := _LINE.match(line)) is not None:
            series = measured.warm_ups if match[1] == "warm-up" else measured.times
            series.append(float(match[3]))
        elif (match := _FACT.match(line)) is not None:
            measured.facts[match[1]] = match[2]
    return measured
