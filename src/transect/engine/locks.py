"""Files that one process at a time holds, on any shared file system and on whatever host.

A file is taken by an exclusive create, which needs no `flock`. Who holds it touches it every few
seconds; a process on another host that has not done so for a while counts as dead. One that was
only suspended, and finds its file taken when it wakes up, gives up by itself.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from transect.domain.errors import Interruption, TransectError
from transect.domain.owner import SILENT_S, Owner, is_abandoned
from transect.domain.paths import StudyPaths
from transect.domain.terminal import say
from transect.engine.scheduler import scheduler

_BEAT_S = 15.0


def still_lives(facts: dict[str, Any], silent_s: float = 0.0) -> bool:
    """Tell whether the owner that a file names still runs; for one on another host its scheduler may know.

    Raises ValueError, KeyError or TypeError where the facts are none.
    """
    owner, job = Owner.of(facts), facts.get("job")
    # A job that was requeued is not what it was before.
    if job and not owner.is_here and job != scheduler().job():
        runs = scheduler().runs(str(job))
        if runs is not None:
            return runs
    return owner.lives(silent_s)


class Held:
    """A lock file that names its owner: user, process, host and `more`."""

    def __init__(self, path: Path, on_loss: Callable[[], None], **more: Any) -> None:
        self.path = path
        self._on_loss, self._more = on_loss, more
        self._token = secrets.token_hex(8)
        self._ended, self._turn = threading.Event(), threading.Lock()
        self.held = False

    def take(self) -> dict[str, Any] | None:
        """Take it and return None, or the facts of who holds it and `silent_s`, or {} of one unknown.

        Raises OSError when the folder cannot be written.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        for _ in range(5):
            if self._create():
                self.held = True
                threading.Thread(target=self._beat, daemon=True).start()
                return None
            text, holder = self._look()
            if holder is not None:
                return holder
            self._remove(text)
        return {}  # others take it at the same time

    def holder(self, *, probe: bool = True) -> dict[str, Any] | None:
        """Return the facts of another one that lives and holds it, or None.

        Without `probe` nothing is written: how long it was silent is told by this host's clock.
        """
        return None if self.held else self._look(probe)[1]

    def give_back(self) -> None:
        """End it, if it is ours."""
        self._ended.set()
        with self._turn:
            if self.held and self._is_ours():
                self.path.unlink(missing_ok=True)
            self.held = False

    def _create(self) -> bool:
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        facts = Owner.me().facts() | {"since": since, "token": self._token} | self._more
        try:
            handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            return False
        try:
            with os.fdopen(handle, "w") as stream:
                json.dump(facts, stream)
        except OSError:
            # One that says nothing would keep everybody out.
            self.path.unlink(missing_ok=True)
            raise
        return True

    def _look(self, probe: bool = True) -> tuple[str | None, dict[str, Any] | None]:
        """Return what the file says, None where there is none, and who holds it; None when that one has died."""
        try:
            text = self.path.read_text(errors="replace")
            silent_s = self._silent_s(self.path) if probe else time.time() - self.path.stat().st_mtime
        except FileNotFoundError:
            return None, None
        except PermissionError:
            return "", {}  # another user's: nobody can tell from here
        try:
            facts: dict[str, Any] = json.loads(text) | {"silent_s": silent_s}
            return text, facts if still_lives(facts, silent_s) else None
        except (ValueError, KeyError, TypeError):
            # Its holder writes right after the create.
            return text, {} if silent_s < SILENT_S else None

    def _silent_s(self, path: Path) -> float:
        """Return for how long a file's owner gave no sign of life, by the file system's own clock."""
        now, probe = time.time(), self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        with contextlib.suppress(OSError):
            probe.touch()
            now = probe.stat().st_mtime
            probe.unlink()
        return now - path.stat().st_mtime

    def _remove(self, seen: str | None) -> None:
        """Remove the file of a dead holder, but not one that another put in its place meanwhile.

        One at a time, by a file beside it: nobody else may between the look and the removal.
        """
        turn = self.path.with_name(f".{self.path.name}.removal")
        try:
            os.close(os.open(turn, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        except FileExistsError:
            with contextlib.suppress(FileNotFoundError):
                if self._silent_s(turn) > SILENT_S:  # it was killed right there
                    turn.unlink()
            return
        try:
            with contextlib.suppress(FileNotFoundError):
                if self.path.read_text(errors="replace") == seen:
                    self.path.unlink()
        finally:
            turn.unlink(missing_ok=True)

    def _is_ours(self) -> bool | None:
        """Tell whether the file says that we hold it; None when there is none or it cannot be read."""
        try:
            facts = json.loads(self.path.read_text())
            return bool(facts["token"] == self._token)
        except (ValueError, KeyError, TypeError):
            return False
        except OSError:
            return None

    def _beat(self) -> None:
        while not self._ended.wait(_BEAT_S):
            self.beat()

    def beat(self) -> None:
        """Give a sign of life, and give up where another one has taken over."""
        ours = None
        with self._turn, contextlib.suppress(OSError):
            if self._ended.is_set():
                return
            ours = self._is_ours()
            if ours is None and not self.path.exists():
                ours = self._create() or self._is_ours()  # somebody removed it: we live
            if ours:
                os.utime(self.path)
        if ours is False:
            self._ended.set()
            self.held = False
            self._on_loss()


# A job that was cancelled ends its payload, and its nodes clean up.
_PATIENCE_S = 600.0
_POLL_S = 2.0


class Busy(TransectError):
    """Another job runs these cells: no fault; try again later."""

    exit_code = 75


def _lease(path: Path, block: str, **more: object) -> Held:
    def lost() -> None:
        say(f"[transect] {block}: another process has taken over: this one ends")
        os.kill(os.getpid(), signal.SIGTERM)

    return Held(path, lost, block=block, job=scheduler().job(), **more)


def _describe(holder: dict[str, Any]) -> str:
    job, log = holder.get("job"), holder.get("log")
    where = f"pid {holder.get('pid', '?')} on {holder.get('host', '?')}"
    owner = f"job {job} ({where})" if job else f"{holder.get('user', '?')}'s {where}"
    return f"{owner}; its log is {log}" if log else owner


def who_runs(paths: StudyPaths) -> str | None:
    """Return who makes a study now: its run, or whoever runs a block of it. Raises OSError where nobody can tell."""
    files = (paths.claim, *sorted(paths.lease("", "").parent.glob("*.json")))
    return next(filter(None, map(who_holds, files)), None)


def runs_elsewhere(paths: StudyPaths, rule: str, name: str) -> str | None:
    """Return who runs the cells of a block now, or None."""
    return who_holds(paths.lease(rule, name))


@contextmanager
def _held(path: Path, block: str, patience_s: float = math.inf, **more: object) -> Iterator[None]:
    lock, begin, announced = _lease(path, block, **more), time.monotonic(), False
    while (holder := lock.take()) is not None:
        if is_abandoned():
            raise Interruption(1)
        if time.monotonic() - begin >= patience_s:
            job = holder.get("job")
            how = f": end it by `{scheduler().how_to_cancel(job)}`, or wait for its end" if job else ""
            raise Busy(f"{block}: its cells are run by {_describe(holder)}{how}")
        if not announced:
            say(f"[transect] {block} waits: {holder.get('block', 'what it needs')} is run by {_describe(holder)}")
            announced = True
        time.sleep(_POLL_S)
    try:
        yield
    finally:
        lock.give_back()


# Beside the folder that is built.
BUILDER = ".builder"


@contextmanager
def one_builder(folder: Path, log: Path | None = None, patience_s: float = math.inf) -> Iterator[None]:
    """Hold what is built in `folder`: two studies may ask at once, and the second one waits.

    Raises Busy where that takes longer than `patience_s`.
    """
    with _held(folder.with_name(f"{folder.name}{BUILDER}"), str(folder), patience_s, log=log and str(log)):
        yield


def who_holds(file: Path) -> str | None:
    """Return who holds a file of these now, or None."""
    holder = Held(file, lambda: None).holder()
    if holder is None:
        return None
    return _describe(holder) if holder else f"somebody unknown, for {file} cannot be read"


@contextmanager
def on_machine(file: Path | None, what: str) -> Iterator[None]:
    """Hold this machine by its file, outside of a job; wait as long as another study measures or builds on it."""
    if file is None or scheduler().job():
        yield
        return
    with _held(file, what):
        yield


@contextmanager
def leased(paths: StudyPaths, blocks: Collection[tuple[str, str]]) -> Iterator[None]:
    """Hold the cells of blocks, each a rule and a name; outside of a job this machine before them.

    Waits for the machine as long as another study measures on it, and ten minutes for a job that
    runs the same cells, such as one that was just cancelled. Raises Busy when that goes on, and
    Interruption when the Snakemake that asked for this has gone.
    """
    with ExitStack() as stack:
        stack.enter_context(on_machine(paths.machine, f"study '{paths.study}'"))
        for rule, name in blocks:
            stack.enter_context(_held(paths.lease(rule, name), f"{rule}.{name}", _PATIENCE_S))
        yield
