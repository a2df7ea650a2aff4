"""Keeping code of others from changing a process of ours, and what its children inherit.

A runner has the cells of a whole block: what one plug-in leaves changed reaches the payloads of all
that come after it, and they would depend on their neighbours in the block.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

from transect.domain.terminal import say

# Variables that transect itself sets as it goes on.
_OWN = "TRANSECT_"
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
_LIMITS = ("AS", "CORE", "CPU", "DATA", "FSIZE", "NOFILE", "NPROC", "STACK")


def hear_children() -> None:
    """Undo an ignored SIGCHLD, which a process inherits: every child would seem to have ended with code 0."""
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _folder() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109 compared and put back as it is
    except FileNotFoundError:
        return None


def _umask() -> int:
    # It cannot be read without setting it.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _facets() -> dict[str, tuple[Any, Callable[[Any], object]]]:
    """Return each thing that is kept: its name, its value now, and what sets it."""
    found: dict[str, tuple[Any, Callable[[Any], object]]] = {
        "the working folder": (_folder(), os.chdir),
        "the umask": (_umask(), os.umask),
        "the cores that it may use": (os.sched_getaffinity(0), partial(os.sched_setaffinity, 0)),
    }
    for name in _LIMITS:
        number = getattr(resource, f"RLIMIT_{name}")
        found[f"RLIMIT_{name}"] = (resource.getrlimit(number), partial(resource.setrlimit, number))
    if _in_main_thread():
        for one in _SIGNALS:
            found[f"what {one.name} does"] = (signal.getsignal(one), partial(signal.signal, one))
    return found


def _restore_environment(before: dict[str, str]) -> list[str]:
    """Put variables back, but for those that transect added or changed; return their names."""
    now = dict(os.environ)
    changed = [
        name
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name) and not (name.startswith(_OWN) and name in now)
    ]
    for name in changed:
        if name in before:
            os.environ[name] = before[name]
        else:
            del os.environ[name]
    return changed


@contextmanager
def kept_state(whose: str) -> Iterator[None]:
    """Put back what code of others changes, and name it on stderr with `whose` code it was.

    Environment variables, working folder, umask, cores, soft and hard limits, handlers of the
    signals that end a process; and in silence filters of warnings and numpy's handling of errors,
    which decide whether the code that comes next raises. Not kept: what only Python code can see, such
    as a function that was replaced, closed streams, and what cannot be undone, such as niceness.
    """
    with ExitStack() as quiet:
        quiet.enter_context(warnings.catch_warnings())
        if "numpy" in sys.modules:
            quiet.enter_context(sys.modules["numpy"].errstate())
        environment, before = dict(os.environ), _facets()
        try:
            yield
        finally:
            changed = _restore_environment(environment)
            for name, (value, _) in _facets().items():
                if name in before and before[name][0] != value:
                    changed.append(name)
                    # A limit that was lowered for good, or a folder that is gone (None).
                    with suppress(OSError, ValueError, TypeError):
                        before[name][1](before[name][0])
            if changed:
                told = f"{whose} changed {', '.join(changed)} of this process: put back"
                say(f"[transect] {told}")
