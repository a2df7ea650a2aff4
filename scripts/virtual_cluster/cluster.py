"""Starts, ends and changes clusters, from outside of their worlds."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from . import daemons, network, nodes, requirements
from .accounting import TEMPLATE
from .errors import BadInput, ClusterError, NotPossible
from .options import CONTROL, Node, Options
from .processes import Process, call, wait_until
from .state import Folder, clusters, locked, root
from .status import Status, status

BOOT_TIMEOUT_S = 1200
SCRIPT = Path(__file__).parents[1] / "virtual-cluster"


def up(folder: Folder, options: Options) -> tuple[Status, float | None]:
    """Have a healthy cluster with these options.

    Returns its status and how many seconds the start took, None when it was up already.
    """
    requirements.check(options)
    with locked():
        if folder.options() == options and (now := status(folder)).healthy:
            return now, None
        started = time.monotonic()
        _end(folder)
        folder.make(options)
        try:
            _start(folder)
        except BaseException as error:
            _end(folder, keep_logs=isinstance(error, ClusterError))
            raise
        took = time.monotonic() - started
    return status(folder), took


def _start(folder: Folder) -> None:
    with (folder.log / "world.log").open("w") as log:
        starter = subprocess.Popen(
            [sys.executable, str(SCRIPT), "_world", str(folder.path)],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def settled() -> bool:
        return folder.ready.exists() or folder.failed.exists() or died()

    def died() -> bool:
        world = folder.world()
        return starter.poll() is not None and (world is not None and not world.alive())

    try:
        wait_until(settled, BOOT_TIMEOUT_S)
    except BaseException:
        starter.wait(300)  # until then nobody knows which process to end
        raise
    if folder.ready.exists():
        return
    reason = folder.failed.read_text() if folder.failed.exists() else daemons.last_line(folder.log / "world.log")
    raise ClusterError(f"cluster {folder.name} did not come up: {reason}")


def _end(folder: Folder, *, keep_logs: bool = False) -> bool:
    """Kill the world and remove the folder; True when there was one."""
    world = folder.world()
    if world is not None:
        # All processes, mounts and interfaces of the cluster live in its namespaces.
        world.kill()
    there = folder.path.exists()
    if keep_logs:
        kept = root() / f"{folder.name}.failed-logs"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.move(folder.log, kept)
        print(f"its logs are in {kept}", file=sys.stderr)
    for _ in range(600):  # the kernel may still be busy with what was mounted there
        shutil.rmtree(folder.path, ignore_errors=True)
        if not folder.path.exists():
            return there
        time.sleep(0.1)
    raise ClusterError(f"cannot remove {folder.path}; see what is mounted there")


def down(folder: Folder) -> bool:
    """End a cluster and remove all that it left; False when there was none."""
    if not root().is_dir():
        return False
    with locked():
        shutil.rmtree(root() / f"{folder.name}.failed-logs", ignore_errors=True)
        there = _end(folder)
    _remove_root()
    return there


def down_all() -> list[str]:
    """End all clusters, remove the database template too, and return their names."""
    ended = clusters()
    for folder in ended:
        down(folder)
    if root().is_dir():
        shutil.rmtree(root() / TEMPLATE, ignore_errors=True)
        for logs in root().glob("*.failed-logs"):
            shutil.rmtree(logs)
    _remove_root()
    return [folder.name for folder in ended]


def _remove_root() -> None:
    with contextlib.suppress(OSError):  # it is not empty: other clusters are there
        root().rmdir()


def options_of(folder: Folder) -> Options:
    """Return what a cluster is; raises NotPossible when it is not up."""
    world_of(folder)
    options = folder.options()
    if options is None:
        raise NotPossible(f"cluster {folder.name}: {folder.path}/options.json cannot be read")
    return options


def world_of(folder: Folder) -> Process:
    """Return the first process of a cluster that is up; raises NotPossible."""
    world = folder.world()
    if world is None or not world.alive() or not folder.ready.exists():
        raise NotPossible(
            f"cluster {folder.name} is not up (state folder {folder.path});"
            f" start it with: virtual-cluster up --name {folder.name}"
        )
    return world


def init_of(folder: Folder, node: Node) -> Process:
    """Return the first process of a node; raises NotPossible when its power is off."""
    world_of(folder)
    init = folder.node_init(node)
    if init is None or not init.alive():
        raise NotPossible(f"node {node.name} is off; start it with: start-node {node.name}")
    return init


def kill_node(folder: Folder, name: str) -> bool:
    """Cut a node's power; False when it was off already."""
    node = options_of(folder).node(name)
    init = folder.node_init(node)
    if init is None or not init.alive():
        return False
    init.kill()
    return True


def start_node(folder: Folder, name: str) -> bool:
    """Power a node on; False when it was on already."""
    node = options_of(folder).node(name)
    init = folder.node_init(node)
    if init is not None and init.alive():
        return False
    call(world_of(folder), lambda: nodes.start(folder, node))
    return True


def restart(folder: Folder, daemon: str, name: str | None) -> None:
    """Restart slurmctld, or the slurmd of a node."""
    options = options_of(folder)
    if daemon == "slurmctld":
        if name is not None:
            raise BadInput(f"restart slurmctld {name}: expected no node; it runs on the login node")
        call(world_of(folder), lambda: daemons.restart_slurmctld(folder))
        return
    if name is None:
        raise BadInput("restart slurmd: expected a node, such as: restart slurmd n1")
    node = options.node(name)
    call(init_of(folder, node), lambda: daemons.restart_slurmd(folder, node))


def shape(folder: Folder, name: str, rate: str | None, delay: str | None) -> Options:
    """Change a link's rate and delay; what is not given stays, an empty text means none."""
    before = options_of(folder)
    link = before.link(name)
    if rate is None and delay is None:
        raise BadInput(f"shape {name}: expected --rate, --delay or both")
    if delay and name == CONTROL:
        raise BadInput(f"--delay {delay}: {CONTROL} can have a rate only; use another link")
    given = {key: value for key, value in (("rate", rate), ("delay", delay)) if value is not None}
    link = replace(link, **given)
    after = before.with_link(link)
    call(world_of(folder), lambda: network.reshape(folder, before, link))
    folder.save(after)
    return after
