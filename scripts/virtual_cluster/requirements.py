"""What the machine must have; all that is missing is told at once."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

from .errors import NotPossible
from .kernel import NEW_ALL, unshare
from .options import Options
from .processes import DAEMON_ENVIRONMENT

PROGRAMS = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "srun": "slurm-client",
    "munged": "munge",
    "ip": "iproute2",
    "tc": "iproute2",
}
ACCOUNTING_PROGRAMS = {
    "slurmdbd": "slurmdbd",
    "mariadbd": "mariadb-server-core",
    "mariadb-install-db": "mariadb-server-core",
    "mariadb": "mariadb-client-core",
}


def _lacking(programs: dict[str, str]) -> list[str]:
    path = DAEMON_ENVIRONMENT["PATH"]
    return [
        f"{program} (Debian package {package})"
        for program, package in programs.items()
        if shutil.which(program, path=path) is None
    ]


def _namespaces_problem() -> str | None:
    try:
        subprocess.run(["true"], preexec_fn=functools.partial(unshare, NEW_ALL), check=True)
    except (OSError, subprocess.SubprocessError):
        return "private namespaces, which this kernel or container refuses to root"
    return None


def missing(options: Options) -> list[str]:
    """Return what this machine lacks for such a cluster, each in words."""
    if os.geteuid() != 0:
        return [f"root, since namespaces are made (this is user {os.geteuid()})"]
    lacks = _lacking(PROGRAMS | (ACCOUNTING_PROGRAMS if options.accounting else {}))
    if problem := _namespaces_problem():
        lacks.append(problem)
    if not Path("/etc/slurm").is_dir():
        lacks.append("the folder /etc/slurm (it comes with slurm-wlm-basic-plugins)")
    if options.links:
        lacks += [f"for link {options.links[0].name}, {what}" for what in _switch_lacks()]
    return lacks


def _switch_lacks() -> list[str]:
    lacks = []
    if shutil.which("cc") is None:
        lacks.append("a C compiler (Debian packages gcc, libc6-dev)")
    if not Path("/dev/net/tun").exists():
        lacks.append("/dev/net/tun (kernel module tun)")
    return lacks


def check(options: Options) -> None:
    """Raise NotPossible when the machine lacks anything."""
    if lacks := missing(options):
        raise NotPossible(f"a virtual cluster needs what is missing here: {'; '.join(lacks)}")
