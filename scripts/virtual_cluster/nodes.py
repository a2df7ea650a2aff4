"""One node: its namespaces and its first process, which starts slurmd and reaps.

`start` runs inside the world.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from pathlib import Path
from typing import NoReturn

from . import daemons
from .errors import ClusterError
from .kernel import MS_BIND, MS_REC, NEW_ALL, NEWNET, mount, setns, umount, unshare
from .options import Node
from .processes import Process, wait_until
from .state import Folder

START_TIMEOUT_S = 300


def start(folder: Folder, node: Node) -> None:
    """Power a node on and wait until its slurmd has started."""
    folder.node_file(node).unlink(missing_ok=True)
    problem = folder.run / f"node-{node.name}.problem"
    problem.unlink(missing_ok=True)
    folder.spool(node).mkdir(parents=True, exist_ok=True)
    child = os.fork()
    if child == 0:
        # This process cannot enter its own new PID namespace: only its child is born there.
        try:
            descriptor = os.open(folder.network_namespace(node), os.O_RDONLY)
            setns(descriptor, NEWNET)
            unshare(NEW_ALL & ~NEWNET)
            if os.fork() == 0:
                _first_process(folder, node, problem)
        except OSError as error:
            problem.write_text(str(error))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    done = wait_until(lambda: folder.node_file(node).exists() or problem.exists(), START_TIMEOUT_S)
    if problem.exists() or not done:
        reason = problem.read_text() if problem.exists() else f"no sign in {START_TIMEOUT_S} s"
        raise ClusterError(f"node {node.name} did not start: {reason}")


def own_sys(folder: Folder) -> None:
    """Mount a /sys that shows this network namespace's interfaces, with the old cgroups in it.

    A container may forbid it; then /sys/class/net shows the host's interfaces.
    """
    cgroups, hold = Path("/sys/fs/cgroup"), folder.path / "hold"
    with contextlib.suppress(OSError):
        mount(cgroups, hold, flags=MS_BIND | MS_REC)
        with contextlib.suppress(OSError):
            mount("sysfs", "/sys", "sysfs")
            mount(hold, cgroups, flags=MS_BIND | MS_REC)
        umount(hold)


def _first_process(folder: Folder, node: Node, problem: Path) -> NoReturn:
    try:
        os.setsid()
        _let_go(folder.log / f"node-{node.name}.out")
        mount("proc", "/proc", "proc")
        # Shared memory is what ranks of one node have in common, and ranks of two have not.
        mount("tmpfs", "/dev/shm", "tmpfs")  # noqa: S108
        own_sys(folder)
        socket.sethostname(node.name)
        daemons.start_slurmd(folder, node)
        Process.myself(folder.host_proc).save(folder.node_file(node))
    except (OSError, ClusterError) as error:
        problem.write_text(str(error))
        os._exit(1)
    reap_for_ever()


def _let_go(log: Path) -> None:
    """Hold nothing of the caller's open: a pipe to it would never end."""
    null = os.open("/dev/null", os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.closerange(3, 1024)


def reap_for_ever() -> NoReturn:
    """Be the first process of a PID namespace: collect the dead."""
    # Python's own handler would raise KeyboardInterrupt here.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            time.sleep(0.2)
