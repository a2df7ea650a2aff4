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
    faults = (
        (r"FATAL: +could not open image (\S+):", r"image {image} is not there or cannot be opened"),
        (r"FATAL: +.*architecture.*", r"image {image} is made for another architecture"),
        (r"FATAL: +stat (\S+): no such file or directory", r"image {image} lacks the program \1"),
        (r'FATAL: +"([^"]+)": executable file not found', r"image {image} lacks the program \1"),
    )

    def argv(self, inside: Inside) -> list[str]:
        """`--nv` brings the driver's libraries and devices into the image."""
        program = next((name for name in self.programs if shutil.which(name)), self.programs[0])
        argv = [program, "exec"]
        if inside.gpus:
            argv.append("--nv")
        for folder in inside.binds:
            argv += ["--bind", folder]
        return [*argv, inside.image]
