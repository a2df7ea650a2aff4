"""Enroot, as Slurm's Pyxis runs it.

Documentation: doc/cmd/start.md and doc/image-format.md of https://github.com/NVIDIA/enroot.
"""

from __future__ import annotations

from pathlib import Path

from transect.launch.wrapping import SHARED, WRAPPERS, Inside, Wrapper, outermost


@WRAPPERS.register("enroot")
class Enroot(Wrapper):
    """`enroot start`: of a SquashFS file, or of a container that `enroot create` made from one.

    Network, processes and IPC are the host's. By itself it passes no environment on; a configuration
    script beside this file prints all of it.
    """

    programs = ("enroot",)
    form = "squashfs"
    # Of a line of fstab too.
    separators = ": \t"
    faults = r"\[ERROR\] No such file or directory: |enroot-switchroot: failed to execute: "

    def supports(self, inside: Inside) -> str | None:
        """No URI."""
        if "://" in inside.image:
            return "enroot starts what is here: `enroot import` makes a SquashFS file of a URI"
        return None

    def argv(self, inside: Inside) -> list[str]:
        """Mounts are fstab lines with colons; their targets are made when they are not there."""
        script = Path(__file__).with_name("enroot.conf")
        argv = ["enroot", "start", "--conf", str(script)]
        for folder in outermost([*SHARED, *inside.binds]):
            argv += ["--mount", f"{folder}:{folder}:none:x-create=dir,rbind"]
        argv.append(inside.image)
        if inside.workdir:
            # It has no option for the working folder. The folder and the command travel as arguments.
            argv += ["/bin/sh", "-c", 'cd "$1" && shift && exec "$@"', "transect", inside.workdir]
        return argv

    def variables(self, inside: Inside) -> dict[str, str]:
        """Its hook for NVIDIA's libraries asks these."""
        if not inside.gpus:
            return {}
        return {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}

    def code_files(self) -> list[Path]:
        """Return the configuration script."""
        return [Path(__file__).with_name("enroot.conf")]
