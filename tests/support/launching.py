"""`transect launch` as a person starts it: in a process of its own, outside of any job."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from transect.launch import rank

LAUNCH = [sys.executable, "-m", "transect", "launch"]
TORCH = ["--framework", "torch", "--strategy", "ddp"]
MPI = ["--framework", "numpy", "--strategy", "mpi"]


def environment(**variables: str) -> dict[str, str]:
    """Return this process's variables without a job's; `variables` win."""
    outside = {k: v for k, v in os.environ.items() if not k.startswith("SLURM_")}
    return outside | {"PYTHONPATH": str(Path(rank.__file__).parents[2])} | variables


def launch(*arguments: str, variables: dict[str, str] | None = None, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run it to its end; further options are those of `subprocess.run`."""
    options = {"capture_output": True, "text": True, "timeout": 600, "env": environment(**(variables or {}))}
    return subprocess.run([*LAUNCH, *arguments], **options | more)
