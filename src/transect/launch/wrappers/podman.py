"""Podman without a daemon and without root, in the namespaces of the host. Manual: podman-run(1) of version 4.3."""

from __future__ import annotations

import os
import shutil

from transect.launch.wrappers._run import FAULTS, limits, run_options
from transect.launch.wrapping import WRAPPERS, Inside, Wrapper

_UNIFIED = "/sys/fs/cgroup/unified"


@WRAPPERS.register("podman")
class Podman(Wrapper):
    """`podman run`: of a folder with a root file system, or of an image in its storage.

    Network, processes, /dev/shm and /tmp are the host's, and the environment is passed on, so that MPI and
    Slurm's PMIx are met as outside. The system call filter is off: MPI and NUMA libraries want
    calls that it forbids. Its processes are started by `conmon`, which stands apart: a payload is
    found by the mark in its environment.
    """

    programs = ("podman",)
    detaches = True
    faults = (
        rf"Error: running container create option: stat |{FAULTS}"
        r"|Error: (?:crun|OCI runtime error: crun): executable file "
        r"|Error: .*(?:initializing source|pinging container registry) "
    )

    def argv(self, inside: Inside) -> list[str]:
        """A root file system stays read-only: several ranks, and several jobs, share it."""
        argv = ["podman"]
        # crun refuses cgroups of both versions side by side, and runc does not.
        if os.path.ismount(_UNIFIED) and shutil.which("runc"):
            argv.append("--runtime=runc")
        # systemd's own manager wants a login session, which ranks of a job have not.
        argv += ["--cgroup-manager=cgroupfs", "run", *run_options(inside), "--env-host", "--http-proxy=false"]
        # Root's podman raises open files beyond what is allowed, and processes beyond what numbers there are.
        argv += limits() if os.geteuid() == 0 else ["--ulimit=host"]
        if inside.gpus:
            argv.append("--device=nvidia.com/gpu=all")
        if os.path.isabs(inside.image):  # noqa: PTH117 a name in its storage is no path
            return [*argv, "--read-only", "--rootfs", inside.image]
        return [*argv, inside.image]
