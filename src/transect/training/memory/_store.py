"""Tensors that are somewhere else for a while: written behind the computing, read ahead of it.

A step puts tensors one after another, turns, and takes them back about in reverse. One thread
writes, in the order of puts; one reads, in the reverse. At most `window` bytes wait to be written,
and as many lie ready: a put or a read ahead that would exceed it waits. What is not written yet when the step turns is
not written at all: it is what will be asked for first.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol


class Backend(Protocol):
    """Where the bytes go. `save` and `load` are called by the store's threads."""

    def reserve(self, size: int) -> Any:
        """Return a place for `size` bytes. Called by the thread that computes; raises when full."""

    def note(self) -> Any:
        """Return what `save` needs to know of the moment of a put, such as an event of a device."""

    def save(self, place: Any, flat: Any, moment: Any) -> None: ...

    def load(self, place: Any, like: Any) -> Any:
        """Return a new flat tensor of the size and type of `like` (size, dtype) from its place."""

    def facts(self) -> dict[str, Any]:
        """Return what a record should say of it: JSON."""

    def begin(self) -> None: ...

    def close(self) -> None: ...


@dataclass(slots=True, eq=False)
class Kept:
    """A tensor that was put. `flat` is there while its bytes are in memory.

    `state`: waiting, saving, saved, loading, here. `uses`: times that it will be taken.
    """

    place: Any
    like: tuple[int, Any]
    size: int
    flat: Any
    moment: Any
    # Of torch's counter of changes in place, which all views of a storage share.
    version: int
    state: str = "waiting"
    uses: int = 1
    saved: bool = False
    # Keeps the address of its storage from being given to another one within the step.
    identity: Any = None
    counted: int = 0


class Store:
    """Puts and takes of one trainer. Faults of its threads are raised by the next call."""

    def __init__(self, backend: Backend, window: int) -> None:
        self._backend, self._window = backend, window
        self._change = threading.Condition()
        self._fault: BaseException | None = None
        self._queue: deque[Kept] = deque()
        self._all: list[Kept] = []
        self._ahead: list[Kept] = []
        self._waiting = self._ready = 0
        self._turned = self._closed = False
        self.written = self.read = 0
        self.waited_s = 0.0
        self._threads = [
            threading.Thread(target=self._work, args=(step,), daemon=True, name=f"activations-{name}")
            for name, step in (("out", self._save_next), ("in", self._load_next))
        ]
        for thread in self._threads:
            thread.start()

    def begin(self) -> None:
        """Forget the last step, whatever became of it; counts begin anew."""
        with self._change:
            self._drop_all()
            self._wait(lambda: not any(k.state in ("saving", "loading") for k in self._all))
            self._all.clear()
            self._waiting = self._ready = 0
            self._turned = False
            self.written = self.read = 0
            self.waited_s = 0.0
            self._backend.begin()

    def put(self, flat: Any, size: int, identity: Any = None) -> Kept:
        """Take a flat tensor of `size` bytes over. Waits while too much is under way.

        Its numbers must stay as they are; the write fails when they have changed.
        """
        place = self._backend.reserve(size)
        kept = Kept(
            place=place,
            like=(flat.numel(), flat.dtype),
            size=size,
            flat=flat,
            moment=self._backend.note(),
            version=flat._version,
            identity=identity,
        )
        with self._change:
            self._wait(lambda: not self._waiting or self._waiting + size <= self._window)
            self._all.append(kept)
            self._queue.append(kept)
            self._waiting += size
            self._change.notify_all()
        return kept

    def turn(self) -> None:
        """From now on tensors are taken: what is not written stays, what was is read ahead."""
        with self._change:
            while self._queue:
                self._arrive(self._queue.pop())
            self._turned = True
            self._ahead = [kept for kept in self._all if kept.state in ("saving", "saved")]
            self._change.notify_all()

    def take(self, kept: Kept) -> Any:
        """Return the flat tensor; after the last of its uses the store lets go of it.

        Raises RuntimeError for one that was never written and is asked for again.
        """
        with self._change:
            if kept.state == "waiting":
                self._queue.remove(kept)
                self._arrive(kept)
            self._wait(lambda: kept.state not in ("saving", "loading"))
            mine = kept.state == "saved"
            if mine:
                self._start_load(kept)
        if mine:
            began = time.perf_counter()
            self._load(kept)
            self.waited_s += time.perf_counter() - began
        with self._change:
            self._raise()
            flat = kept.flat
            if flat is None:
                raise RuntimeError(
                    "a tensor of the forward pass is asked for again after the backward pass has let "
                    "go of it: one backward pass for each forward pass is expected"
                )
            kept.uses -= 1
            if kept.uses <= 0:
                self._let_go(kept)
            self._change.notify_all()
        return flat

    def facts(self) -> dict[str, Any]:
        return self._backend.facts()

    def close(self) -> None:
        with self._change:
            self._closed = True
            self._change.notify_all()
        for thread in self._threads:
            thread.join()
        self._backend.close()

    # What follows is called with the lock held, apart from `_load` and the threads' own loops.

    def _wait(self, ready: Callable[[], bool]) -> None:
        began = None
        while not ready():
            self._raise()
            began = time.perf_counter() if began is None else began
            self._change.wait()
        self._raise()
        if began is not None:
            self.waited_s += time.perf_counter() - began

    def _raise(self) -> None:
        if self._fault is not None:
            raise self._fault

    def _arrive(self, kept: Kept) -> None:
        kept.state, kept.counted = "here", kept.size
        self._waiting -= kept.size
        self._ready += kept.size

    def _let_go(self, kept: Kept) -> None:
        kept.flat = None
        self._ready -= kept.counted
        kept.counted = 0
        if kept.saved:
            kept.state = "saved"

    def _drop_all(self) -> None:
        self._queue.clear()
        self._ahead = []
        for kept in self._all:
            if kept.state not in ("saving", "loading"):
                kept.flat = None

    def _start_load(self, kept: Kept) -> None:
        kept.state, kept.counted = "loading", kept.size
        self._ready += kept.size

    def _load(self, kept: Kept) -> None:
        flat = self._backend.load(kept.place, kept.like)
        with self._change:
            kept.flat, kept.state = flat, "here"
            self.read += kept.size
            self._change.notify_all()

    def _save_next(self) -> Callable[[], None] | None:
        if not self._queue:
            return None
        kept = self._queue.popleft()
        kept.state = "saving"

        def save() -> None:
            self._backend.save(kept.place, kept.flat, kept.moment)
            with self._change:
                if kept.flat._version != kept.version:
                    raise RuntimeError("a tensor of the forward pass was changed in place before its backward pass")
                kept.saved = True
                self.written += kept.size
                if self._turned and kept.uses > 0:
                    # It came too late to be worth writing: it will be asked for soon.
                    self._arrive(kept)
                else:
                    kept.state, kept.flat = "saved", None
                    self._waiting -= kept.size
                self._change.notify_all()

        return save

    def _load_next(self) -> Callable[[], None] | None:
        while self._turned and self._ahead:
            kept = self._ahead[-1]
            if kept.state == "saved" and kept.uses > 0:
                if self._ready and self._ready + kept.size > self._window:
                    return None
                self._ahead.pop()
                self._start_load(kept)
                return lambda: self._load(kept)
            if kept.state == "saving":
                return None
            self._ahead.pop()
        return None

    def _work(self, next_one: Callable[[], Callable[[], None] | None]) -> None:
        while True:
            with self._change:
                work = None
                while not self._closed and (self._fault or (work := next_one()) is None):
                    self._change.wait()
                if work is None:
                    return
            try:
                work()
            except BaseException as error:  # raised where a person sees it
                with self._change:
                    self._fault = error
                    self._change.notify_all()
            # A thread that waits must not hold the last tensor.
            work = None
