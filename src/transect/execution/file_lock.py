"""One builder at a time, by `flock` where the file system has it and by files where it has not.

Many Lustre mounts answer `flock` with ENOSYS. There a lock is taken by a hard link to a file that says who
takes it, under the next number. A number is taken once: who finds the last holder dead and is too late
fails to make the next one, so that nobody removes the lock of another.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from transect.domain.terminal import say
from transect.execution.locks import process_start, still_lives, user_name

__all__ = ["FileLock", "one_builder"]

# ENOLCK: an NFS mount whose lock service is not there.
_NO_FLOCK = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)
_POLL_S = 0.5


class FileLock:
    """A lock beside `path`; a context manager that gives it back. It ends with the process at the latest."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stream: TextIO | None = None
        self._mine: Path | None = None

    def __enter__(self) -> FileLock:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.stream = self.path.open("a+")
        return self

    def __exit__(self, *_: object) -> None:
        if self._mine is not None:
            # Not removed: its number would be free again for one who has looked long ago.
            self._write({}).replace(self._mine)
            self._mine = None
        if self.stream is not None:
            self.stream.close()

    def take(self) -> bool:
        """Take it; return False when another process holds it. Raises OSError when nobody can."""
        assert self.stream is not None
        try:
            fcntl.flock(self.stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in _NO_FLOCK:
                raise
            return self._take_number()
        return True

    def holder(self) -> dict[str, Any]:
        """Return user, pid and host of who holds it without flock, and the `file` that says so, or nothing."""
        _, facts = self._last()
        return facts if facts and still_lives(facts) else {}

    def _take_number(self) -> bool:
        number, facts = self._last()
        if facts is None or (facts and still_lives(facts)):
            return False
        me = {
            "user": user_name(), "pid": os.getpid(), "host": os.uname().nodename,
            "created": process_start(),
        }  # fmt: skip
        mine, written = self._numbered(number + 1), self._write(me)
        try:
            os.link(written, mine)
        except FileExistsError:
            return False
        finally:
            written.unlink()
        if self._last()[0] != number + 1:
            mine.unlink(missing_ok=True)  # we looked long ago: others have gone on
            return False
        for old in self._numbers():
            if old <= number:
                self._numbered(old).unlink(missing_ok=True)
        self._mine = mine
        return True

    def _numbered(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")

    def _numbers(self) -> list[int]:
        ends = (path.name.removeprefix(f"{self.path.name}.") for path in self.path.parent.iterdir())
        return sorted(int(end) for end in ends if end.isdigit())

    def _last(self) -> tuple[int, dict[str, Any] | None]:
        """Return the last number and who took it: {} where it was given back, None where that changes now."""
        numbers = self._numbers()
        if not numbers:
            return 0, {}
        file = self._numbered(numbers[-1])
        try:
            facts: dict[str, Any] = json.loads(file.read_text())
        except FileNotFoundError:
            return numbers[-1], None
        return numbers[-1], facts and facts | {"file": str(file)}

    def _write(self, facts: dict[str, Any]) -> Path:
        written = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        written.write_text(json.dumps(facts))
        return written


@contextmanager
def one_builder(folder: Path) -> Iterator[None]:
    """Hold the lock of what is built in `folder`: two studies may ask at once, and the second one waits."""
    with FileLock(folder.parent / f"{folder.name}.lock") as lock:
        told = False
        while not lock.take():
            if not told:
                say(f"[transect] waits for another build of {folder}{_whose(lock.holder())}")
                told = True
            time.sleep(_POLL_S)
        yield


def _whose(holder: dict[str, Any]) -> str:
    if not holder:
        return ""
    text = f", by {holder['user']}, pid {holder['pid']} on {holder['host']}"
    if holder["host"] == os.uname().nodename:
        return text
    return f"{text}; if that one no longer lives, delete {holder['file']}"
