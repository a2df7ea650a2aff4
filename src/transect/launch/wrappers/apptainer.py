"""Apptainer, and Singularity as it was called before.

User guide: https://apptainer.org/docs/user/latest/ (bind paths, environment, GPU support).
"""

from __future__ import annotations

import shutil

from transect.launch.wrapping import WRAPPERS, Inside, Wrapper


@WRAPPERS.register("apptainer")
class Apptainer(Wrapper):
    """`apptainer exec`: of SIF and SquashFS files, of folders and of URIs.

    It passes the environment on, apart from PATH and LD_LIBRARY_PATH, and shows the home folder, /tmp,
    /dev and the working folder, in the network, processes and IPC of the host: an MPI inside
    meets mpiexec's or srun's PMIx outside.
    """

    programs = ("apptainer", "singularity")
    separators = ":,"
    faults = r"FATAL: +(?:could not open image|stat \S+: no such|\"[^\"]+\": executable file not found|.*architecture)"

    def argv(self, inside: Inside) -> list[str]:
        """`--nv` brings the driver's libraries and devices into the image."""
        program = next((name for name in self.programs if shutil.which(name)), self.programs[0])
        argv = [program, "exec"]
        if inside.gpus:
            argv.append("--nv")
        for folder in inside.binds:
            argv += ["--bind", folder]
        return [*argv, inside.image]
