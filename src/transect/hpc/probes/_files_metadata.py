"""The part of the probe of files that makes, looks at, reads and removes many small files."""

from __future__ import annotations

import os
from collections.abc import Callable

from transect.hpc.probes._files_store import PAGE
from transect.hpc.probes._files_team import Team


class SmallFiles:
    """Files of one page, `count` of each rank: in a folder of each rank's own, or all in one. Ranks look at the next one's.

    Files are removed when all rounds are over: a file system may give no name's number (inode) again for a while, and
    looks through all that were given back, so that rounds which remove what they made become slower and slower.
    """

    def __init__(self, team: Team, kind: str, count: int, synced: int) -> None:
        self._team, self.kind, self.counts = team, kind, {"plain": count, "synced": synced}
        self.other = (team.rank + team.shift) % team.size
        self.wrong = 0
        self._turn = 0
        self._kept: list[int] = []

    def _open(self, owner: int) -> int:
        folder = self._team.folder / (f"files-{owner}" if self.kind == "own" else "files")
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)

    def _do(
        self, owner: int, count: int, each: Callable[[int, str, bytes], None], *, sync: bool = False, turn: int = 0
    ) -> float:
        """Return the slowest rank's seconds of `each(folder, name, contents)` over the files that a rank made last, or then."""
        names = [f"{turn or self._turn}-{owner}-{number}" for number in range(count)]
        contents = [f"{name}\n".encode().ljust(PAGE, b".") for name in names]
        folder = self._open(owner)

        def work() -> None:
            for name, content in zip(names, contents, strict=True):
                each(folder, name, content)
            if sync:
                os.fsync(folder)

        try:
            return self._team.phase(work)
        finally:
            os.close(folder)

    def make(self) -> None:
        """Make the folders."""
        self._team.phase(self._make)

    def _make(self) -> None:
        if self.kind == "own":
            (self._team.folder / f"files-{self._team.rank}").mkdir()
        elif self._team.rank == 0:
            (self._team.folder / "files").mkdir()

    def create(self, count: int, *, sync: bool = False) -> float:
        """Create files and write a page into each; with `sync` each is synced, and the folder in the end."""
        self._turn += 1

        def each(folder: int, name: str, content: bytes) -> None:
            handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
            try:
                if os.write(handle, content) != PAGE:
                    raise OSError("a small file was written in part: no room, or a quota")
                if sync:
                    os.fsync(handle)
            finally:
                os.close(handle)

        return self._do(self._team.rank, count, each, sync=sync)

    def stat(self, count: int) -> float:
        """Ask for each file's attributes."""

        def each(folder: int, name: str, content: bytes) -> None:
            self.wrong += os.stat(name, dir_fd=folder).st_size != PAGE

        return self._do(self.other, count, each)

    def read(self, count: int) -> float:
        """Read each file and compare every byte."""

        def each(folder: int, name: str, content: bytes) -> None:
            handle = os.open(name, os.O_RDONLY, dir_fd=folder)
            try:
                self.wrong += os.read(handle, PAGE + 1) != content
            finally:
                os.close(handle)

        return self._do(self.other, count, each)

    def round(self, keep: Callable[[str, float | None], None]) -> None:
        """Do every phase but removing once."""
        count, synced = self.counts["plain"], self.counts["synced"]
        for name, phase in (("create", self.create), ("stat", self.stat), ("read", self.read)):
            keep(f"{name}-{self.kind}-files", phase(count))
        self._kept.append(self._turn)
        keep(f"create-{self.kind}-files-synced", self.create(synced, sync=True))

    def remove(self, keep: Callable[[str, float | None], None]) -> None:
        """Remove the files of each round by those who made them."""

        def each(folder: int, name: str, content: bytes) -> None:
            os.unlink(name, dir_fd=folder)

        for turn in self._kept:
            seconds = self._do(self._team.rank, self.counts["plain"], each, turn=turn)
            keep(f"remove-{self.kind}-files", seconds)
