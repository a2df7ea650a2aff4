"""Docker, or `podman-docker` in its place. Manual: docker-run(1)."""

from __future__ import annotations

import os

from transect.launch.wrappers._run import FAULTS, limits, run_options
from transect.launch.wrapping import WRAPPERS, Inside, Wrapper

# Docker has no flag that passes the environment on. A line of an --env-file that is a name alone takes its
# value from there: ranks have variables of their own, which nobody knows before mpiexec or srun starts them.
_SCRIPT = 'exec docker run --env-file <(compgen -e) "$@"'
_URI = "docker://"


@WRAPPERS.register("docker")
class Docker(Wrapper):
    """`docker run`: of an image in its daemon's storage or a registry; an environment's is imported there.

    Its processes are started by the daemon, as the user who asks, in the namespaces that Podman shows as well.
    """

    programs = ("docker",)
    answers = ("version",)
    form = "imported"
    detaches = True
    faults = (
        rf"{FAULTS}|[Uu]nable to find image |Error response from daemon: .*(?:pull access denied|manifest unknown|"
        r"[Nn]o such image|not found)|Error: .*(?:initializing source|pinging container registry) "
    )

    def supports(self, inside: Inside) -> str | None:
        """Its daemon runs what lies in its storage, and no folder or file."""
        if os.path.isdir(inside.image):  # noqa: PTH112 a name in its storage is no path
            return (
                f"docker runs no folder: `tar -C {inside.image} -c . | docker import - NAME` makes docker://NAME of it"
            )
        if os.path.isabs(inside.image):  # noqa: PTH117
            return f"docker runs no file: `docker load --input {inside.image}` brings it into its storage, as docker://NAME"
        if "://" in inside.image and not inside.image.startswith(_URI):
            return f"docker runs docker://NAME, not {inside.image}"
        return None

    def argv(self, inside: Inside) -> list[str]:
        """Without --user all that it writes would be root's."""
        options = [*run_options(inside), *limits(), "--read-only", f"--user={os.geteuid()}:{os.getegid()}"]
        if inside.gpus:
            options.append("--gpus=all")
        return ["bash", "-c", _SCRIPT, "transect", *options, inside.image.removeprefix(_URI)]
