"""A stretch of a log that belongs to one benchmark, as its parser sees it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from transect.hpc.text import Line, Reader, excerpt

# Lines with which launchers, schedulers and run-time systems say that a program was stopped.
TROUBLE = (
    r"srun: error:",
    r"slurmstepd: error:",
    r"flux-job: ",
    r"(?:pdsh@[\w.\-]{1,100}|clush): [\w.\-]{1,100}: (?:ssh )?exited with ",
    r"(?:mpirun|mpiexec|prterun|prun|orterun)(?: noticed|: [^\n]{0,200}(?:error|killed|signal))",
    r"MPI_ABORT was invoked",
    r"An error occurred in MPI_",
    r"Fatal error in ",
    r"={0,3}[ \t]*BAD TERMINATION",
    r"\[[\w.\-]{1,80}:\d+\] \*\*\*",
    r"(?:(?:bash|sh|/[^\s:]{1,120}): line \d+:[ \t]*\d+ )?"
    r"(?:Killed|Aborted|Terminated|Segmentation fault|Bus error)",
    r"forrtl: severe",
    r"terminate called ",
    r"Out of memory",
)

_TROUBLE = re.compile("|".join(TROUBLE))
_KEPT = 5

# By which list of a block's pattern a line may have been found (`Line.found_by`).
STARTS, TROUBLES = 1, 2
_MAY_BE_TROUBLE = (0, STARTS, TROUBLES)


class Block:
    """An iterator over the lines that a parser wants, from its start line on.

    Lines of `TROUBLE` are set aside for `take_trouble`: they stand in passing runs too, so they
    explain a run that is incomplete but do not condemn one that is whole.
    """

    def __init__(
        self,
        file: str,
        benchmark: str,
        reader: Reader,
        first: Line,
        ends: Callable[[Line], bool],
        wanted: re.Pattern[str] | None,
    ) -> None:
        self.file = file
        self.benchmark = benchmark
        self.first = first
        # What a launcher's line before it has started: the program and its arguments.
        self.command = ""
        # What a parser keeps over all outputs of the block.
        self.kept: dict[Any, Any] = {}
        self.pushed_back: Line | None = None
        self._reader = reader
        self._ends = ends
        self._wanted = wanted
        self._pending: Line | None = first
        self._trouble: list[str] = []
        self._exhausted = False
        self._last = ""

    def __iter__(self) -> Iterator[Line]:
        return self

    def __next__(self) -> Line:
        if self._pending is not None:
            pending, self._pending = self._pending, None
            return pending
        while not self._exhausted:
            line = self._reader.next_line()
            if line is None:
                self._finish(self._reader.last_line())
            elif self._ends(line):
                self.pushed_back = line
                self._finish(self._reader.last_line(before_match=True))
            else:
                text = line.text.lstrip()
                if line.found_by in _MAY_BE_TROUBLE and _TROUBLE.match(text):
                    if len(self._trouble) < _KEPT:
                        self._trouble.append(excerpt(text))
                    if self._wanted is not None and not self._wanted.match(text):
                        continue
                return line
        raise StopIteration

    def _finish(self, last: str) -> None:
        self._exhausted = True
        self._last = last

    def whole_line(self) -> str:
        """Return the line that was given last, however long: of others `Line.text` is all."""
        return self._reader.whole_line()

    def take_trouble(self) -> str:
        """Return what stopped a program since the last call, or an empty string."""
        text, self._trouble = "; ".join(self._trouble), []
        return text

    def last_words(self) -> str:
        """Return the last line before the present one, or of the whole block when it is over."""
        text = self._last if self._exhausted else self._reader.last_line(before_match=True)
        return excerpt(text)
