"""A throw-away Slurm cluster on this machine, for tests that need a real one."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from checkouts import ROOT

SCRIPT = ROOT / "scripts" / "virtual-cluster"
# Not the python of this test run: the script promises to need the system's only.
SYSTEM_PYTHON = shutil.which("python3", path="/usr/bin:/bin") or "python3"


def why_not(*, accounting: bool = False) -> str:
    """Return why no cluster with a shaped link can run here; empty when one can."""
    code = (
        f"import sys; sys.path.insert(0, {str(SCRIPT.parent)!r})\n"
        "from virtual_cluster import options, requirements\n"
        "links = (options.Link.parse('shaped=1gbit'),)\n"
        f"asked = options.Options(accounting={accounting}, links=links)\n"
        "print('; '.join(requirements.missing(asked)))"
    )
    done = subprocess.run([SYSTEM_PYTHON, "-c", code], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else done.stderr.strip()


# What Slurm's programs say of a controller that restarts, or is too busy to answer.
_NO_ANSWER = re.compile(
    r"contact|connect|timed out|refused|reset|Zero Bytes|Unexpected message|communication|munge", re.IGNORECASE
)

# Far beyond what anything here takes beside busy neighbours: a bound for what never comes.
BOUND_S = 1800
# Set when the session ends: nobody waits any more.
GIVEN_UP = threading.Event()


def eventually(condition: Callable[[], bool], *, what: str) -> None:
    """Poll until the condition holds; else fail, saying what."""
    started = time.monotonic()
    while True:
        asked = time.monotonic()
        if condition():
            return
        now = time.monotonic()
        assert now - started < BOUND_S, f"not within {BOUND_S} s: {what}"
        assert not GIVEN_UP.is_set(), f"given up: {what}"
        # Asking is to leave the machine to what is waited for.
        time.sleep(min(1.0, max(0.1, 4 * (now - asked))))


def virtual_cluster(*argv: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the script itself; options are those of `subprocess.run`."""
    options = {"stdin": subprocess.DEVNULL, "timeout": BOUND_S} | options
    return subprocess.run([SYSTEM_PYTHON, str(SCRIPT), *argv], capture_output=True, text=True, **options)


class VirtualCluster:
    """One cluster by name; also a context manager that brings it up and takes it down.

    Options are those of ``virtual-cluster up`` with underscores: ``nodes=2, gpu_nodes=0,
    accounting=True, link=["fast=1gbit,50us"]``.
    """

    def __init__(self, name: str, **options: Any) -> None:
        # Several test runs on one machine must not meet.
        self.name = f"{name}-{os.getpid()}"
        self.arguments: list[str] = []
        for option, value in options.items():
            flag = "--" + option.replace("_", "-")
            for each in value if isinstance(value, list | tuple) else [value]:
                if each is True:
                    self.arguments.append(flag)
                elif each is not False and each is not None:
                    self.arguments += [flag, str(each)]

    def __enter__(self) -> VirtualCluster:
        try:
            self.command("up", *self.arguments)
        except BaseException:
            self.command("down")
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.command("down")

    def command(self, *argv: str, check: bool = True, timeout: float = BOUND_S) -> subprocess.CompletedProcess[str]:
        """Run a command of the script on this cluster."""
        command, *rest = argv
        done = virtual_cluster(command, "--name", self.name, *rest, timeout=timeout)
        if check:
            assert done.returncode == 0, f"{argv}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def status(self) -> dict[str, Any]:
        """Return what ``status --json`` tells."""
        return dict(json.loads(self.command("status", "--json", check=False).stdout))

    def node_state(self, node: str) -> str:
        """Return a node's state and its flags in small letters, as the controller has it: ``down+not_responding``."""
        shown = self.ask("scontrol", "--oneliner", "show", "node", node)
        return re.search(r"\bState=(\S+)", shown)[1].lower()  # type: ignore[index]

    def job_state(self, job: str) -> str:
        """Return a job's state as squeue names it: ``PENDING``, ``RUNNING``, ``COMPLETED``."""
        return self.ask("squeue", "-h", "-t", "all", "-j", job, "-o", "%T").strip()

    def ask(self, *argv: str) -> str:
        """Return what a program of Slurm prints; it is asked again while the controller is silent."""
        answers: list[subprocess.CompletedProcess[str]] = []

        def answered() -> bool:
            answers[:] = [self.run(*argv, check=False)]
            return answers[0].returncode == 0 or not _NO_ANSWER.search(answers[0].stderr)

        eventually(answered, what=f"an answer to {argv}")
        assert answers[0].returncode == 0, f"{argv}: {answers[0].returncode}\n{answers[0].stderr}"
        return answers[0].stdout

    def shell(self, *argv: str, node: str | None = None) -> list[str]:
        """Return the argv that runs a command on the login node or on a compute node."""
        where = ["--node", node] if node else []
        return [SYSTEM_PYTHON, str(SCRIPT), "shell", "--name", self.name, *where, "--", *argv]

    def run(
        self, *argv: str, timeout: float = BOUND_S, check: bool = True, node: str | None = None, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on the login node; further options are those of `subprocess.run`."""
        options = {"stdin": subprocess.DEVNULL} | options
        done = subprocess.run(self.shell(*argv, node=node), capture_output=True, text=True, timeout=timeout, **options)
        if check:
            assert done.returncode == 0, f"{argv}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def popen(self, *argv: str, node: str | None = None, **options: Any) -> subprocess.Popen[str]:
        """Start a command on the login node; signals to it are forwarded, SIGKILL included."""
        streams = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE) | {"stdin": subprocess.DEVNULL}
        return subprocess.Popen(self.shell(*argv, node=node), text=True, **streams | options)

    def node_run(self, node: str, *argv: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command on a compute node, outside of any job."""
        return self.run(*argv, node=node, **options)

    def processes(self, node: str | None = None, below: Path | None = None) -> dict[int, str]:
        """Return the command lines of processes on a node by their number there; on the login node those of all.

        `below`: only those that work in this folder or under it.
        """
        script = (
            f"below={shlex.quote(str(below or ''))}; "
            'for p in /proc/[0-9]*; do case "$(readlink $p/cwd)" in "$below"*) '
            "echo ${p#/proc/} $(tr '\\0' ' ' < $p/cmdline);; esac; done 2> /dev/null"
        )
        lines = self.run("sh", "-c", script, node=node, check=False).stdout.splitlines()
        split = [line.partition(" ") for line in lines]
        return {int(pid): argv for pid, _, argv in split if argv and script not in argv}

    def jobs(self) -> list[dict[str, str]]:
        """Return what squeue knows of all jobs, finished ones of the last minutes too.

        Keys: id, name, state (such as RUNNING), restarts, folder.
        """
        columns = {"id": "JobID", "name": "Name", "state": "State", "restarts": "RestartCnt", "folder": "WorkDir"}
        layout = ",".join(f"{column}:256" for column in columns.values())
        table = self.ask("squeue", "-h", "-t", "all", "-O", layout)
        return [
            {key: line[256 * place : 256 * (place + 1)].strip() for place, key in enumerate(columns)}
            for line in table.splitlines()
        ]
