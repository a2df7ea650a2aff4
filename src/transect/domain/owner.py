"""Who holds or runs something: one process of one host, never taken for a later one of the same number."""

from __future__ import annotations

import getpass
import os
import signal
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

# Names the Snakemake that asked for what this process does, as `Owner.text` writes it.
# Set for everything that one run of Snakemake starts: who runs, and which plan.
SESSION = "TRANSECT_SNAKEMAKE"
# Whoever gave no sign of life for so long is dead. A file system that hangs for a minute, or shows
# times a minute late, kills nobody.
SILENT_S = 180.0


def user_name() -> str:
    """Return the name of this process's user; the number of one without, as in containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


@cache
def _kernel() -> str:
    """Tell apart hosts of one name, and containers of one host that do not see each other's processes."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink().name}"
    except OSError:
        return ""


def _start(pid: int) -> int | None:
    """Return when a process started, in ticks since this host's start, which no set clock changes.

    None: it is dead, and its parent has yet to ask for it. Raises OSError for one that is gone or hidden.
    """
    state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return None if state in "ZX" else int(fields[18])


@dataclass(frozen=True, kw_only=True, slots=True)
class Owner:
    """A process. `start` of 0 is not known; with an empty `kernel` the host's name alone says where it is."""

    host: str
    pid: int
    start: int = 0
    kernel: str = ""
    user: str = ""

    @classmethod
    def me(cls) -> Owner:
        """Return this process."""
        pid = os.getpid()
        return cls(host=os.uname().nodename, pid=pid, start=_start(pid) or 0, kernel=_kernel(), user=user_name())

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Owner:
        """Read what `facts` wrote, among other things. Raises ValueError, KeyError or TypeError for anything else."""
        texts = {name: str(facts.get(name, "")) for name in ("kernel", "user")}
        return cls(host=str(facts["host"]), pid=int(facts["pid"]), start=int(facts.get("start", 0)), **texts)

    def facts(self) -> dict[str, Any]:
        """Return what a JSON file says of it."""
        return asdict(self)

    @property
    def text(self) -> str:
        """What a variable says of it."""
        return ":".join(map(str, (self.pid, self.host, self.start, self.kernel)))

    @classmethod
    def of_text(cls, text: str) -> Owner:
        """Read what `text` wrote. Raises ValueError for anything else."""
        pid, host, start, kernel = text.split(":", maxsplit=3)
        return cls(host=host, pid=int(pid), start=int(start), kernel=kernel)

    @property
    def is_here(self) -> bool:
        """Whether it is one of the processes that can be seen from here."""
        return self.host == os.uname().nodename and self.kernel in ("", _kernel())

    def lives(self, silent_s: float = 0.0) -> bool:
        """Tell whether it still runs.

        Of one that cannot be seen, on another host or another user's hidden one: whether its last sign of
        life, `silent_s` seconds ago, is less than `SILENT_S` old.
        """
        if not self.is_here:
            return silent_s < SILENT_S
        try:
            start = _start(self.pid)
        except OSError:
            return self.user not in ("", user_name()) and silent_s < SILENT_S
        return start is not None and self.start in (0, start)


def is_abandoned(session: str | None = None) -> bool:
    """Whether the Snakemake of a session, this process's own by default, has gone.

    One on another host counts as alive: nobody can tell from here.
    """
    try:
        return not Owner.of_text(os.environ.get(SESSION, "") if session is None else session).lives()
    except ValueError:
        return False


def hear_children() -> None:
    """Undo an ignored SIGCHLD, which a process inherits: every child would seem to have ended with code 0."""
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
