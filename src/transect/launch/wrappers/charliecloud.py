"""Charliecloud: a user namespace and a mount namespace, and nothing else.

Manual: ch-run(1) of version 0.31, https://hpc.github.io/charliecloud/ch-run.html.
"""

from __future__ import annotations

import getpass
import os

from transect.launch.wrapping import SHARED, WRAPPERS, Inside, Wrapper, outermost


@WRAPPERS.register("charliecloud")
class Charliecloud(Wrapper):
    """`ch-run`: of a folder with a root file system, or of a SquashFS file.

    It needs no rights, and passes the whole environment on. Network, processes and IPC are the host's, so
    ranks meet as outside. Each rank has a user namespace of its own: MPI cannot read the memory of its
    neighbour (cross-memory attach) and copies by way of /dev/shm.
    """

    programs = ("ch-run",)
    faults = r"ch-run\[\d+\]: error: can't (?:stat: |bind: destination not found|execve\(2\): )"

    def supports(self, inside: Inside) -> str | None:
        """No URI, and no GPU unless the image has the driver's libraries."""
        if "://" in inside.image:
            return "ch-run takes a folder or a SquashFS file: `ch-image pull`, then `ch-convert`"
        if inside.gpus and not os.path.exists(f"{inside.image}/usr/local/lib/libcuda.so.1"):  # noqa: PTH110
            return "it lacks the GPU driver's libraries: `ch-fromhost --nvidia IMAGE`"
        return None

    def argv(self, inside: Inside) -> list[str]:
        """Binds are named one by one: by itself it would show $TMPDIR as /tmp."""
        argv = ["ch-run", "--private-tmp"]
        argv += [f"--bind={folder}" for folder in outermost([*SHARED[:1], *inside.binds])]
        if inside.workdir:
            argv.append(f"--cd={inside.workdir}")
        return [*argv, inside.image, "--"]

    def variables(self, inside: Inside) -> dict[str, str]:
        """It stops where USER is not set, as in jobs of some schedulers."""
        try:
            return {"USER": getpass.getuser()}
        except (KeyError, OSError):  # a number without a name
            return {"USER": f"user-{os.getuid()}"}
