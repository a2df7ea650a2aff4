"""One builder of an environment or image at a time; who waits says for whom, and how far that one is."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transect.domain.terminal import say
from transect.engine.locks import Held, holding

# Who waits looks so often, and says so.
_POLL_S, _TELL_S = 0.5, 60.0
_MAX_LENGTH = 300


@contextmanager
def one_builder(folder: Path, log: Path | None = None) -> Iterator[None]:
    """Hold what is built in `folder`: two studies may ask at once, and the second one waits.

    It says every minute for whom, and what stands last in the other one's log.
    """
    said = 0.0

    def lost() -> None:
        say(f"[transect] {folder}: another builder has taken over: this one ends")
        os.kill(os.getpid(), signal.SIGTERM)

    def wait(holder: dict[str, Any], waited_s: float) -> None:
        nonlocal said
        if not said or waited_s - said >= _TELL_S:
            waited = f" ({waited_s:.0f} s by now)" if said else ""
            say(f"[transect] waits{waited} for {folder}, {builder(holder)}")
            said = waited_s or 1e-9

    with holding(Held(folder.parent / f"{folder.name}.builder", lost, log=log and str(log)), wait, _POLL_S):
        yield


def builder(facts: Mapping[str, Any]) -> str:
    """Say who builds, by the facts of the one that holds the lock, and what stands last in its log."""
    who = f"which {facts.get('user', '?')} builds (pid {facts.get('pid', '?')} on {facts.get('host', '?')})"
    if not facts.get("log"):
        return who
    log = Path(facts["log"])
    try:
        lines = log.read_text(errors="replace").splitlines()
        ago = max(0.0, time.time() - log.stat().st_mtime)
    except OSError:
        return f"{who}, without a log yet"
    last = next((line.strip() for line in reversed(lines) if line.strip()), "nothing yet")
    return f"{who}; its log {log} is {ago:.0f} s old and ends with: {last[:_MAX_LENGTH]}"
