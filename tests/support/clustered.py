"""A checkout whose Snakemake runs on a virtual cluster, and how to look at what it does."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from checkouts import ROOT, Checkout
from clusters import BOUND_S, VirtualCluster, eventually

PLUGINS = ROOT / "tests" / "plugins"
# Several cells wait in one block, one after another: each meets another fault.
WAITING = """
name: {name}
# Of no pair, so that no cell takes turns: what befalls one is to befall it alone.
questions: [{{ask: Are the trainers right?, answered_by: [equality]}}]
plugins: [plugins]
limits: {{seconds: {seconds}, memory_mb: 600, repeats_if_disturbed: 0}}
workloads: {{iris-mlp-ce: {{epochs: 2}}}}
train:
  repeats: {repeats}
  grids:
    - {{workloads: [iris-mlp-ce], frameworks: [numpy, test-waits], strategies: [single]}}
"""
_ENDED = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")


class ClusterRun:
    """One call of Snakemake in the background."""

    def __init__(self, checkout: ClusterCheckout, arguments: tuple[str, ...], node: str | None = None) -> None:
        number = len(list(checkout.folder.glob("snakemake-*.log")))
        self.log = checkout.folder / f"snakemake-{number}.log"
        self._stream = self.log.open("w")
        checkout.runs.append(self)
        self.process = subprocess.Popen(
            checkout.command(*arguments, node=node),
            cwd=checkout.folder,
            env=checkout.environment(),
            stdin=subprocess.DEVNULL,
            stdout=self._stream,
            stderr=subprocess.STDOUT,
        )

    def text(self) -> str:
        """Return what it has printed until now."""
        return self.log.read_text(errors="replace")

    def ends(self, code: int | None = 0, bound_s: float = BOUND_S) -> str:
        """Wait for its end; return what it printed. `code` None: any."""
        try:
            found = self.process.wait(bound_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"still running after {bound_s} s:\n{self.text()}") from None
        assert code is None or found == code, f"exit code {found}:\n{self.text()}"
        return self.text()

    def signal(self, number: int) -> None:
        """Send a signal, as a person at the login node would."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it without a word."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(BOUND_S)


class ClusterCheckout(Checkout):
    """A copy of the repository on the cluster's login node."""

    def __init__(self, folder: Path, cluster: VirtualCluster) -> None:
        super().__init__(folder)
        self.cluster = cluster
        self.runs: list[ClusterRun] = []

    def command(self, *arguments: str, node: str | None = None) -> list[str]:
        """Return the argv of Snakemake on the login node, or on another one."""
        snakemake = super().command()[0]
        profile = ("--profile", "profiles/virtual-cluster")
        return self.cluster.shell(snakemake, *profile, *arguments, node=node)

    def environment(self) -> dict[str, str]:
        """Add the folder of recorded submissions to PATH."""
        kept = super().environment()
        return kept | {"PATH": f"{self.folder / 'shims'}{os.pathsep}{kept['PATH']}"}

    def start(self, *arguments: str, node: str | None = None) -> ClusterRun:
        """Start Snakemake in the background, on the login node unless another one is named."""
        return ClusterRun(self, arguments, node)

    def study(self, text: str, name: str = "study.yaml") -> Path:
        """Write a study file."""
        path = self.folder / name
        path.write_text(text)
        return path

    def records(self, name: str, stage: str = "*") -> dict[str, dict[str, Any]]:
        """Return a study's records by stage and the readable part of their cells' ids."""
        found = {}
        for cell, record in super().records(name, stage).items():
            assert cell.split("~")[0] not in found, f"two cells are called {cell}"
            found[cell.split("~")[0]] = record
        return found

    def waiting(self, study: str, since: float = 0) -> Path | None:
        """Return the folder of the cell that waits to be released now.

        `since`, in s since the epoch, leaves out those that an earlier run left.
        """
        for path in (self.folder / "results" / study / "train").glob("*/waiting-*"):
            folder = path.parent
            try:
                if path.stat().st_mtime < since:
                    continue
                ranks = int(json.loads((folder / "spec.json").read_text())["cell"].get("nodes", 1))
            except OSError:
                # The next attempt has just cleared it.
                continue
            ready = len(list(folder.glob("waiting-*"))) == ranks
            if ready and not (folder / "record.json").exists():
                return folder
        return None

    def waits(self, study: str, other_than: Path | None = None, since: float = 0) -> Path:
        """Wait until a cell waits, and return its folder."""
        found: list[Path] = []

        def look() -> bool:
            folder = self.waiting(study, since)
            found[:] = [folder] if folder is not None and folder != other_than else []
            return bool(found)

        eventually(look, what=f"a waiting cell of {study}")
        return found[0]

    def submissions(self) -> list[list[str]]:
        """Return the words of each call of sbatch that was made here."""
        path = self.folder / "submissions.txt"
        calls = path.read_text().split("----\n") if path.exists() else []
        return [call.split("\n")[:-1] for call in calls if call]

    def submitted(self, block: str) -> int:
        """Return how many jobs sbatch was asked for to run a block, which may be one of several."""
        rule = re.compile(rf"rule_{re.escape(block)}(?:\.\d+)?")
        return sum(any(map(rule.fullmatch, words)) for words in self.submissions())

    def jobs(self) -> list[dict[str, str]]:
        """Return those of the last minutes' jobs that were submitted here."""
        return [job for job in self.cluster.jobs() if job["folder"] == str(self.folder)]

    def active_jobs(self) -> list[dict[str, str]]:
        """Return those of its jobs that are queued or running."""
        return [job for job in self.jobs() if job["state"] not in _ENDED]

    def leftovers(self) -> list[str]:
        """Return the command lines of its payloads that run on any node."""
        mark = "transect.payloads.train"
        found = self.cluster.processes(below=self.folder)
        return [argv for argv in found.values() if mark in argv]

    def end(self) -> None:
        """End its runs without a word, and what they have in the queue."""
        runs, self.runs = self.runs, []
        for run in runs:
            run.kill()
        if jobs := [job["id"] for job in self.active_jobs()] if runs else []:
            self.cluster.run("scancel", *jobs, check=False)


def waits_made(make: Callable[[], ClusterCheckout]) -> ClusterCheckout:
    """Return a checkout with the frameworks of tests/plugins/cluster."""
    made = make()
    shutil.copytree(PLUGINS / "cluster", made.folder / "plugins")
    return made


def config(name: str, **more: str) -> tuple[str, ...]:
    """Return the arguments that name a study and the system."""
    extra = [f"{key}={value}" for key, value in more.items()]
    return ("--config", f"study={name}.yaml", "system=virtual-cluster", *extra)


def start(checkout: ClusterCheckout, name: str, text: str = WAITING, **values: object) -> ClusterRun:
    """Start a study in the background; `values` are those of its text."""
    checkout.study(text.format(**{"name": name, "seconds": 300} | values), f"{name}.yaml")
    return checkout.start(*config(name))


def tells(run: ClusterRun, text: str, times: int = 1) -> None:
    """Wait until a run has printed a text."""
    try:
        eventually(lambda: run.text().count(text) >= times, what=repr(text))
    except AssertionError as error:
        raise AssertionError(f"{error}\n{run.text()}") from None


def cell_of(folder: Path) -> str:
    """Return the readable part of the id of the cell in a folder."""
    return folder.name.split("~")[0]


def job_of(folder: Path) -> str:
    """Return the number of the job that last ran the cell in a folder."""
    return str(json.loads((folder / "attempt.json").read_text())["job"])


def causes(checkout: ClusterCheckout, name: str) -> dict[str, str]:
    """Return status or cause of each training cell, by its readable id."""
    found = checkout.records(name, "train").items()
    return {cell.removeprefix("train/"): r["cause"] or r["status"] for cell, r in found}


def nothing_left(checkout: ClusterCheckout) -> None:
    """Check that no payload goes on for long, nor any job."""
    eventually(lambda: not checkout.leftovers(), what="no payload on any node")
    eventually(lambda: not checkout.active_jobs(), what="no job that is queued, runs or cleans up")
