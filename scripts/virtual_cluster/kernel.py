"""The system calls that Python 3.11 lacks: unshare, setns, mount."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

NEWNS = 0x00020000
NEWUTS = 0x04000000
NEWIPC = 0x08000000
NEWPID = 0x20000000
NEWNET = 0x40000000
ALL_BUT_PID = NEWNS | NEWUTS | NEWIPC | NEWNET
NEW_ALL = ALL_BUT_PID | NEWPID

MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
_MNT_DETACH = 2
_PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Leave the caller's namespaces for new ones; NEWPID concerns the next child. Raises OSError."""
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def setns(descriptor: int, flags: int) -> None:
    """Enter the namespaces of a pidfd (Linux 5.8) or of an open namespace file. Raises OSError."""
    _check(_libc.setns(ctypes.c_int(descriptor), ctypes.c_int(flags)), "setns")


def mount(source: Path | str, target: Path | str, kind: str = "", flags: int = 0) -> None:
    """Mount; raises OSError."""
    source_bytes, target_bytes = os.fsencode(source), os.fsencode(target)
    flag = ctypes.c_ulong(flags)
    result = _libc.mount(source_bytes, target_bytes, kind.encode() or None, flag, None)
    _check(result, f"mount {target}")


def umount(target: Path | str) -> None:
    """Detach a mount at once, also a busy one; raises OSError."""
    _check(_libc.umount2(os.fsencode(target), ctypes.c_int(_MNT_DETACH)), f"umount {target}")


def die_with_parent(signal_number: int) -> None:
    """Have the kernel send this signal to the calling process when its parent is gone."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
