"""The world of one cluster: namespaces with the login node in them, under which the nodes are."""

from __future__ import annotations

import os
import socket
import traceback
from pathlib import Path
from typing import NoReturn

from . import accounting, daemons, network, nodes, slurm_conf
from .errors import ClusterError
from .kernel import MS_BIND, MS_PRIVATE, MS_REC, NEW_ALL, mount, unshare
from .options import LOGIN, Options
from .processes import Process, gone, wait_until
from .state import Folder


def make(folder: Folder) -> NoReturn:
    """Become a world: its first process stays until it is killed, and all in it dies with it."""
    options = folder.options()
    assert options is not None
    try:
        unshare(NEW_ALL)
        child = os.fork()
    except OSError as error:
        _fail(folder, error)
    if child:
        # Whoever waits for this process knows the world after it, and can end it.
        wait_until(lambda: folder.world_file.exists() or gone(child), 300)
        os._exit(0)
    try:
        _boot(folder, options)
    except Exception as error:
        _fail(folder, error)
    nodes.reap_for_ever()


def _fail(folder: Folder, error: Exception) -> NoReturn:
    traceback.print_exc()
    reason = str(error) if isinstance(error, ClusterError | OSError) else repr(error)
    temporary = folder.path / "failed.new"
    temporary.write_text(reason)
    temporary.rename(folder.failed)
    os._exit(1)


def _boot(folder: Folder, options: Options) -> None:
    # As long as /proc is still that of whoever started the cluster: with its numbers.
    Process.myself(Path("/proc")).save(folder.world_file)
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    mount("/proc", folder.host_proc, flags=MS_BIND | MS_REC)
    mount("proc", "/proc", "proc")
    nodes.own_sys(folder)
    socket.sethostname(LOGIN)
    # Daemons wait for the disk with each job; neighbours that sync files must not make them late.
    for private in ("state", "spool"):
        mount("tmpfs", folder.path / private, "tmpfs")
    slurm_conf.write(folder, options)
    # At its standard place, since jobs lose SLURM_CONF: workflow engines unset SLURM_* variables.
    mount(folder.etc, "/etc/slurm", flags=MS_BIND)
    mount(folder.etc / "hosts", "/etc/hosts", flags=MS_BIND)
    network.build(folder, options)
    for node in options.all_nodes:
        for gpu in range(node.gpus):
            # Slurm asks for a character device; this one is /dev/null again.
            os.mknod(folder.device(node, gpu), 0o020666, os.makedev(1, 3))
    daemons.start_munged(folder)
    if options.accounting:
        accounting.start(folder)
    daemons.start_slurmctld(folder, first=True)
    for node in options.all_nodes:
        nodes.start(folder, node)
    daemons.wait_idle(folder, options)
    folder.ready.touch()
