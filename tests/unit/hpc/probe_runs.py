"""Starts our probes with real ranks, as their tests do."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from checkouts import ROOT
from transect.launch.launchers.mpiexec import mpiexec_prefix

Result = subprocess.CompletedProcess[str]


def start(argv: list[str], **variables: str) -> Result:
    """Return how a command ended that finds transect and, but for `variables`, little else."""
    keep = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "PYTHONPATH": str(ROOT / "src")}
    fixed = {"OMPI_MCA_mpi_yield_when_idle": "1"}
    return subprocess.run(argv, env=keep | fixed | variables, capture_output=True, text=True, timeout=600, check=False)


def prefix(python: str, ranks: int) -> list[str]:
    """Return the launch of some ranks that share cores: they must not spin, and are not bound."""
    mpiexec = mpiexec_prefix(str(Path(python).parent / "mpiexec"))
    return [*mpiexec, "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none", "-n", str(ranks)]
