"""Runs a command, or an interactive shell, on the login node or on a compute node."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from .kernel import die_with_parent
from .processes import Process, children_inside, enter

FORWARDED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}


def shell(init: Process, argv: Sequence[str]) -> int:
    """Run a command in the namespaces of this init, in the current folder and environment.

    Signals are forwarded. Returns the exit code; 128 + the number of the signal that ended it;
    127 when there is no such program.
    """
    folder = str(Path.cwd())
    terminal = os.isatty(0)
    waited = FORWARDED | {signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    with children_inside(init) as descriptor:

        def prepare() -> None:
            # At a terminal the command must stay in the foreground group. Else a signal sent to
            # our whole group would reach it twice: once itself and once forwarded.
            if not terminal:
                os.setpgid(0, 0)
            enter(descriptor, folder)
            die_with_parent(signal.SIGKILL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, waited)

        try:
            child = subprocess.Popen(list(argv), preexec_fn=prepare)
        except OSError as error:
            reason = os.strerror(error.errno or errno.EIO)
            print(f"virtual-cluster: cannot run {argv[0]!r}: {reason}", file=sys.stderr)
            return 127 if error.errno == errno.ENOENT else 126
    while child.poll() is None:
        received = signal.sigwaitinfo(waited)
        # What the terminal sends (si_code > 0), it has sent to the command as well.
        if received.si_signo != signal.SIGCHLD and not (terminal and received.si_code > 0):
            child.send_signal(received.si_signo)
    code = child.returncode
    return code if code >= 0 else 128 - code
