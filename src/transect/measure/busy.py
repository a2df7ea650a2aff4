"""Whether anybody else used the machine during a turn: what all cores did, less what the contender's processes did.

A look of 50 ms before and after, as the guard takes, would cost half as much as a turn and miss what lies between.
"""

from __future__ import annotations

import os
import time

from transect.measure.guard import BUSY

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
# The kernel's totals are in ticks of 10 ms, four of which are read twice: in less time they tell nothing.
WINDOW_S = 0.1
_UNSURE_S = 2 * _TICK_S


def cpu_s(pid: int) -> float:
    """Return the processor time of a process with all its threads, in ns' steps; 0 of one that has gone."""
    try:
        # MAKE_PROCESS_CPUCLOCK of glibc's clock_getcpuclockid(3): no file tells more than ticks.
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def busy_s() -> float:
    """Return the seconds that all cores together have computed since boot, for whomever.

    Interrupts are left out: messages between a payload's own ranks arrive in them.
    """
    with open("/proc/stat", "rb") as stream:  # noqa: PTH123 it is read thousands of times
        user, nice, system, *rest = map(int, stream.readline().split()[1:9])
    return (user + nice + system + rest[-1]) * _TICK_S


class Window:
    """Turns until it can be told whether they were quiet: short ones are judged together."""

    def __init__(self) -> None:
        self._last = True
        self._open(0)

    def _open(self, turns: int) -> None:
        self._turns, self._own_s = turns, 0.0
        self._begin, self._busy_s = time.monotonic(), busy_s()

    def begin(self) -> None:
        """A turn begins."""
        if not self._turns:
            self._open(0)

    def end(self, own_s: float) -> list[bool]:
        """A turn has ended, in which its contender used so much processor time: return the verdicts that are due.

        They are those of the last turns that had none.
        """
        self._turns, self._own_s = self._turns + 1, self._own_s + own_s
        return self.judge() if time.monotonic() - self._begin >= WINDOW_S else []

    def judge(self) -> list[bool]:
        """Return whether each of the turns without a verdict was quiet; in too short a time as those before were."""
        turns, elapsed = self._turns, time.monotonic() - self._begin
        foreign = busy_s() - self._busy_s - self._own_s
        if turns and elapsed >= WINDOW_S / 2:
            self._last = foreign < BUSY * elapsed + _UNSURE_S
        self._open(0)
        return [self._last] * turns
