"""What planning asks of the machine, asked before the first test: a fast test starts no process."""

from __future__ import annotations

import os
import shutil

import pytest

from transect.launch.launchers import mpiexec
from transect.planning import environments

__all__ = ["compilers_asked"]


@pytest.fixture(scope="session", autouse=True)
def compilers_asked() -> None:
    """Ask each compiler and mpiexec what it is; the answers are kept as long as this process lives."""
    for _, variable, program, flag in environments._COMPILERS:
        environments.program_version(os.environ.get(variable) or program, flag)
    if found := shutil.which("mpiexec"):
        mpiexec._is_open_mpi(found)
