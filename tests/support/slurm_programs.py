"""Programs that say what Slurm's say, of a cluster that a test describes; jobs run on this machine."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

# It notes its words, drops its options and runs the rest here.
_SRUN = """case "$*" in *--mpi=list*) printf '{mpi}'; exit ;; esac
echo "$@" >> {sruns}
while [ "${{1#-}}" != "$1" ]; do shift; done
exec "$@" """


def write_programs(
    folder: Path,
    partitions: Mapping[str, tuple[str, str]],
    accounts: str | None = None,
    mpi: str = "pmix",
    cluster: str = "site",
) -> Path:
    """Write the programs into a folder that is made; return the file in which `srun` notes what it was asked.

    `partitions`: what scontrol says of each besides its name, and its nodes as `sinfo -o "%N|%c|%m|%G|%f|%T"` has them.
    `accounts`: what sacctmgr says; None: this Slurm has no accounting.
    """
    folder.mkdir()
    sruns = folder / "asked-of-srun"
    lines = "\n".join(f"PartitionName={name} {facts}" for name, (facts, _) in partitions.items())
    storage = "none" if accounts is None else "slurmdbd"
    config = f"ClusterName             = {cluster}\nAccountingStorageType   = accounting_storage/{storage}"
    nodes = "".join(
        f"*{shlex.quote(f'-p {name} ')}*) echo {shlex.quote(text)} ;;\n" for name, (_, text) in partitions.items()
    )
    programs = {
        "scontrol": f'case "$*" in\n*partition*) echo {shlex.quote(lines)} ;;\n*config*) echo {shlex.quote(config)} ;;\nesac',
        "sinfo": f'case "$*" in\n*--version*) echo slurm 23.11 ;;\n{nodes}esac',
        "sacctmgr": f"echo {shlex.quote(accounts or '')}" if accounts is not None else "exit 1",
        "srun": _SRUN.format(mpi="".join(f" {kind}\\n" for kind in mpi.split()), sruns=shlex.quote(str(sruns))),
        "sbatch": "",
        "squeue": "",
        "scancel": "",
    }
    for name, body in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
    return sruns
