"""A checkout whose Snakemake runs on a virtual cluster, and how to look at what it does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any, ClassVar

from checkouts import ROOT, Checkout
from clusters import BOUND_S, VirtualCluster, eventually

__all__ = ["PLUGINS", "ClusterCheckout", "ClusterRun"]

PLUGINS = ROOT / "tests" / "plugins"
_ENDED = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")


class ClusterRun:
    """One call of Snakemake in the background. `started` holds those that a test began."""

    started: ClassVar[list[ClusterRun]] = []

    def __init__(self, checkout: ClusterCheckout, arguments: tuple[str, ...]) -> None:
        self.log = (
            checkout.folder / f"snakemake-{len(list(checkout.folder.glob('snakemake-*')))}.log"
        )
        self._stream = self.log.open("w")
        self.started.append(self)
        self.process = subprocess.Popen(
            checkout.command(*arguments),
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

    def command(self, *arguments: str) -> list[str]:
        """Return the argv of Snakemake on the login node."""
        snakemake = super().command()[0]
        return self.cluster.shell(snakemake, "--profile", "profiles/virtual-cluster", *arguments)

    def environment(self) -> dict[str, str]:
        """Add the folder of recorded submissions to PATH."""
        kept = super().environment()
        return kept | {"PATH": f"{self.folder / 'shims'}{os.pathsep}{kept['PATH']}"}

    def start(self, *arguments: str) -> ClusterRun:
        """Start Snakemake in the background."""
        return ClusterRun(self, arguments)

    def study(self, text: str, name: str = "study.yaml") -> Path:
        """Write a study file."""
        path = self.folder / name
        path.write_text(text)
        return path

    def records(self, study: str) -> dict[str, dict[str, Any]]:
        """Return all records of a study by the readable part of their cells' ids."""
        found = {}
        for path in (self.folder / "results" / study).glob("*/*/record.json"):
            record = json.loads(path.read_text())
            found[f"{record['stage']}/{record['cell_id'].split('~')[0]}"] = record
        return found

    def waiting(self, study: str, since: float = 0) -> Path | None:
        """Return the folder of the cell that waits to be released now.

        `since`, in s since the epoch, leaves out those that an earlier run left.
        """
        for path in (self.folder / "results" / study / "train").glob("*/waiting-*"):
            folder = path.parent
            if path.stat().st_mtime < since:
                continue
            ranks = int(json.loads((folder / "spec.json").read_text())["cell"].get("nodes", 1))
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

    def active_jobs(self) -> list[dict[str, str]]:
        """Return the jobs that are queued or running."""
        return [job for job in self.cluster.jobs() if job["state"] not in _ENDED]

    def leftovers(self) -> list[str]:
        """Return the command lines of payloads that run on any node."""
        mark = "transect.stages.train.worker"
        return [argv for argv in self.cluster.processes().values() if mark in argv]
