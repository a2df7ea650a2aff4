"""What the runner of a job knows of its allocation, and its guard over all nodes."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

from transect.domain.errors import BadInput
from transect.domain.terminal import say
from transect.engine.job import Job
from transect.engine.scheduler import scheduler
from transect.launch.hosts import HOSTS, allocation
from transect.launch.launchers.mpiexec import find_mpiexec, over_hosts
from transect.launch.processes import end_all
from transect.launch.slurm import is_local
from transect.measure.guard import Guard
from transect.measure.watcher import WATCHER_TOKEN

# Bounds for a node to join and to answer: both take a second, and more beside busy neighbours. A
# node that is gone ends the job before that.
_JOIN_S = 300.0
_ANSWER_S = 120.0
_POLL_S = 1.0
_END_S = 60.0


def prepare_allocation(jobs: Sequence[Job]) -> None:
    """Make known what provenance wants: the hosts of the job.

    This machine comes first, where cells of one node run, and is watched. Raises BadInput when another
    scheduler's hosts, or a user's own, do not have it.
    """
    job = scheduler().job()
    if job and not all(_asks_no_scheduler(cell_job.spec["system"]) for cell_job in jobs):
        # A login node's: `sbatch` hands it on, and srun knows the job's nodes alone.
        os.environ.pop(HOSTS, None)
    if (os.environ.get(HOSTS) or not job) and (given := allocation()) is not None:
        here = next(filter(is_local, given.hosts), None)
        if here is None:
            here_is = f"{given.source} names {','.join(given.hosts)}, and this machine is {socket.gethostname()}"
            raise BadInput(f"{here_is}: cells of one node run here, so start the study on one of these hosts")
        os.environ[HOSTS] = ",".join([here, *(host for host in given.hosts if host != here)])
    scheduler().hosts()


class AllocationGuard(Guard):
    """Asks a small watcher on each node. A node that does not answer is named, and not waited for."""

    def __init__(self, hosts: list[str], connections: dict[str, socket.socket]) -> None:
        self._hosts = hosts
        self._connections = connections

    def look(self) -> list[dict[str, Any]]:
        """Return one snapshot for each node, all taken at the same time."""
        found = self._ask("look")
        return [found.get(host, {"host": host, "missing": True}) for host in self._hosts]

    def died(self, step: str) -> list[str]:
        """Return the nodes on which the daemon of a job step has died."""
        found = self._ask(f"step {step}")
        return [host for host in self._hosts if found.get(host, {}).get("died")]

    def _ask(self, order: str) -> dict[str, dict[str, Any]]:
        """Return what each node answers, all asked at the same time; one that does not is asked no more."""
        if not self._connections:
            return {}
        with ThreadPoolExecutor(len(self._connections)) as pool:
            texts = pool.map(partial(_answer, order), self._connections.values())
            answers = dict(zip(self._connections, texts, strict=True))
        for host in [host for host, text in answers.items() if not text]:
            # An answer that comes late must not be taken for the next one.
            self._connections.pop(host).close()
        return {host: json.loads(text) for host, text in answers.items() if text}


def _answer(order: str, connection: socket.socket) -> str:
    try:
        connection.sendall(f"{order}\n".encode())
        with connection.makefile() as lines:
            line = lines.readline()
            return line if line.endswith("\n") else ""
    except OSError:
        return ""


class _Watchers:
    """The job step with one watcher on each node; begun again while Slurm refuses it."""

    def __init__(self, hosts: list[str], server: socket.socket, mpiexec: str | None) -> None:
        self._hosts, self._server, self._mpiexec = hosts, server, mpiexec
        # Who cannot be reached now will not be in a moment; Slurm may be busy.
        self._starts_left = 2 if mpiexec else 10**6
        self._token = secrets.token_hex(16)
        self._step: subprocess.Popen[bytes] | None = None
        self.connections: dict[str, socket.socket] = {}

    def _start(self) -> subprocess.Popen[bytes]:
        count = len(self._hosts)
        # An argument would be there for all to read, and mpiexec has one standard input for all.
        token = {WATCHER_TOKEN: self._token}
        if self._mpiexec:
            # Hosts that no Slurm gave know each other by the names of their list.
            name, start = self._hosts[0], over_hosts(self._mpiexec, self._hosts, (1,) * count, token)
        else:
            name, start = socket.gethostname(), scheduler().on_hosts(count)
        here = f"{name}:{self._server.getsockname()[1]}"
        command = [*start, sys.executable, "-m", "transect.measure.watcher", "--connect", here]
        # Apart from a terminal, of which ssh would ask a password.
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, env=os.environ | token, start_new_session=True)

    def join(self) -> None:
        """Accept one watcher from each host, each proving that it is ours."""
        end = time.monotonic() + _JOIN_S
        self._server.settimeout(_POLL_S)
        while len(self.connections) < len(self._hosts) and time.monotonic() < end:
            if self._step is None or self._step.poll() is not None:
                self._close()
                if not self._starts_left:
                    break
                self._starts_left -= 1
                self._step = self._start()
            try:
                connection, _ = self._server.accept()
            except TimeoutError:
                continue
            connection.settimeout(_ANSWER_S)
            try:
                given, _, host = connection.makefile().readline(512).strip().partition(" ")
            except (OSError, ValueError):  # a stranger, who sends anything or nothing
                given, host = "", ""
            if secrets.compare_digest(given.encode(), self._token.encode()) and host in self._hosts:
                self.connections[host] = connection
            else:
                connection.close()
        if away := [host for host in self._hosts if host not in self.connections]:
            say(f"[transect] no guard on {', '.join(away)}: what disturbs cells there is not seen")

    def _close(self) -> None:
        while self.connections:
            self.connections.popitem()[1].close()

    def end(self) -> None:
        """Let the step end by itself, then make it."""
        self._close()
        if self._step is not None:
            try:
                self._step.wait(timeout=_END_S)
            except subprocess.TimeoutExpired:
                end_all([self._step.pid], "", _END_S)
                self._step.wait()


def stays_here(system: Mapping[str, Any], nodes: int) -> bool:
    """Whether launchers of a cell's `system` start its ranks on this node only, in a scheduler's job too.

    `salloc` opens its shell on a login node, and cells that are planned for one machine run there.
    """
    return nodes == 1 and _asks_no_scheduler(system)


def is_of_one_node(job: Job) -> bool:
    """Whether all ranks of a cell are on this node, so that they reach what listens here."""
    given = os.environ.get(HOSTS)
    nowhere_else = not (given or scheduler().job()) or stays_here(job.spec["system"], job.cell.nodes)
    if job.cell.nodes != 1 or nowhere_else:
        return job.cell.nodes == 1
    hosts = given.split(",") if given else scheduler().hosts()
    return bool(hosts) and is_local(hosts[0])


def _asks_no_scheduler(system: Mapping[str, Any]) -> bool:
    return {system.get("launcher"), system.get("mpi_launcher")} <= {"plain", "mpiexec"}


def lost_daemon(guard: Guard) -> str:
    """Return on which nodes the daemon of the running cell's job step has died, in a sentence, or nothing.

    The ranks that it left there are ended. The cell's step is the last one that its job began.
    """
    step = scheduler().newest_step()
    nodes = guard.died(step) if step else []
    return f"the daemon of step {step} has died on {', '.join(nodes)}" if nodes else ""


def job_is_over(system: Mapping[str, Any]) -> bool:
    """Tell whether the scheduler takes this runner's job for over although the runner lives; print it then.

    A node's daemon that dies ends the job and leaves the runner, also when it comes back: no step of it
    is taken any more, and another job has its cells.
    """
    job = scheduler().job()
    if not job or (_asks_no_scheduler(system) and system.get("scheduler", "none") == "none"):
        return False
    if (state := scheduler().final_state(job)) is not None:
        say(f"[transect] the scheduler calls this job, {job}, {state}: its cells are left to another one")
    return state is not None


@contextmanager
def open_guard(jobs: Sequence[Job]) -> Iterator[Guard]:
    """Yield a guard over every node of the allocation; over this one where the jobs' ranks stay here.

    On several nodes a watcher waits on each, as one job step that overlaps the cells' own: a
    step for each look would cost more than a short cell.
    """
    here = all(stays_here(job.spec["system"], job.cell.nodes) for job in jobs)
    given = os.environ.get(HOSTS)
    hosts, mpiexec = [] if here else given.split(",") if given else scheduler().hosts(), None
    if given:
        mpiexec = next(filter(None, (find_mpiexec(job.bin) for job in jobs)), None)
        # Without it nothing can start a rank there either.
        hosts = hosts[: max(job.cell.nodes for job in jobs)] if mpiexec else []
    if len(hosts) < 2:
        yield Guard()
        return
    with socket.create_server(("", 0)) as server:
        watchers = _Watchers(hosts, server, mpiexec)
        try:
            watchers.join()
            yield AllocationGuard(hosts, watchers.connections)
        finally:
            watchers.end()
