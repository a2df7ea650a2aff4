"""Ends detached processes of a container program or of mpiexec when we are ended by SIGKILL.

The kernel ends our children then (`transect.launch.parent.die_with_parent`), and podman's `conmon`, which is none, would
keep its container; Open MPI's mpiexec, told to end, now and then leaves a rank. `python -m transect.launch.orphans
SESSION` waits for the end of its standard input, which is that of the process that started it, and ends every process
of the payload.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence

from transect.launch.processes import end_all


@contextlib.contextmanager
def guarded(
    processes: Sequence[tuple[list[str], Mapping[str, str]]], session: str, *, launcher: bool = False
) -> Iterator[None]:
    """Watch over a payload as long as this lasts, where one of its processes starts others apart.

    `launcher`: it does, whatever its variables say.
    """
    if not launcher and not any("TRANSECT_DETACHED" in variables for _, variables in processes):
        yield
        return
    # Its own session: what ends ours by signals to all must not end it.
    watcher = subprocess.Popen(
        [sys.executable, "-m", "transect.launch.orphans", session],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        assert watcher.stdin is not None
        with contextlib.suppress(OSError):
            watcher.stdin.write(b"over")
            watcher.stdin.close()
        watcher.wait()


def main() -> int:
    """Wait, and end what is left unless a message says that all is over."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if sys.stdin.buffer.read() != b"over":
        end_all([], sys.argv[1], grace_s=2.0)
    return 0


if __name__ == "__main__":
    # A payload's mark, should we have inherited one, is not ours.
    os.environ.pop("TRANSECT_PAYLOAD", None)
    sys.exit(main())
