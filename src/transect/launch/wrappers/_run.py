"""What `podman run` and `docker run` are both told: the flags that the two have alike."""

from __future__ import annotations

import resource
from pathlib import Path

from transect.launch.wrapping import SHARED, Inside, outermost

# The words of runc and crun, which both programs pass on.
FAULTS = r"unable to start container process: exec: |exec \S+: exec format error"


def run_options(inside: Inside) -> list[str]:
    """Return the options of `run`: network, processes, /tmp and /dev/shm of the host, and no filter of system calls."""
    options = ["--rm", "--interactive", "--log-driver=none", "--pull=missing", "--network=host", "--pid=host"]
    options += ["--security-opt=seccomp=unconfined", "--security-opt=label=disable"]
    options += [f"--volume={folder}:{folder}" for folder in outermost([*SHARED, *inside.binds])]
    return [*options, *([f"--workdir={inside.workdir}"] if inside.workdir else [])]


def limits() -> list[str]:
    """Return this process's limits of open files and processes, in numbers that the kernel takes.

    A root that lacks CAP_SYS_RESOURCE may raise none, and is held to as many processes as there are numbers for.
    """
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    numbers = int(Path("/proc/sys/kernel/pid_max").read_text())
    most = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    count = min(most, numbers) if most > 0 else numbers
    return [f"--ulimit=nofile={files[0]}:{files[1]}", f"--ulimit=nproc={count}:{count}"]
