"""Podman without a daemon and without root, in the namespaces of the host. Manual: podman-run(1) of version 4.3."""

from __future__ import annotations

import os
import resource
import shutil
from pathlib import Path

from transect.launch.wrapping import SHARED, WRAPPERS, Inside, Wrapper, outermost

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
        r"Error: running container create option: stat |unable to start container process: exec: "
        r"|Error: (?:crun|OCI runtime error: crun): executable file |exec \S+: exec format error"
        r"|Error: .*(?:initializing source|pinging container registry) "
    )

    def argv(self, inside: Inside) -> list[str]:
        """A root file system stays read-only: several ranks, and several jobs, share it."""
        argv = ["podman"]
        # crun refuses cgroups of both versions side by side, and runc does not.
        if os.path.ismount(_UNIFIED) and shutil.which("runc"):
            argv.append("--runtime=runc")
        # systemd's own manager wants a login session, which ranks of a job have not.
        argv += ["--cgroup-manager=cgroupfs", "run", "--rm", "--interactive", "--log-driver=none", "--pull=missing"]
        argv += ["--network=host", "--pid=host", "--env-host", "--http-proxy=false", *_limits()]
        argv += ["--security-opt=seccomp=unconfined", "--security-opt=label=disable"]
        for folder in outermost([*SHARED, *inside.binds]):
            argv.append(f"--volume={folder}:{folder}")
        if inside.workdir:
            argv.append(f"--workdir={inside.workdir}")
        if inside.gpus:
            argv.append("--device=nvidia.com/gpu=all")
        if os.path.isabs(inside.image):  # noqa: PTH117 a name in its storage is no path
            return [*argv, "--read-only", "--rootfs", inside.image]
        return [*argv, inside.image]


def _limits() -> list[str]:
    """Return the limits that a container has: for users those of the host.

    Root's podman raises open files beyond what is allowed where root may not (CAP_SYS_RESOURCE), and holds
    itself to as many processes as there are numbers for: what is beyond that keeps a container from starting.
    """
    if os.geteuid() != 0:
        return ["--ulimit=host"]
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    numbers = int(Path("/proc/sys/kernel/pid_max").read_text())
    most = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    count = min(most, numbers) if most > 0 else numbers
    return [f"--ulimit=nofile={files[0]}:{files[1]}", f"--ulimit=nproc={count}:{count}"]
