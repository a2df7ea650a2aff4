"""What goes before the command on each rank: environment modules, a container."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence

from transect.domain.errors import BadInput

__all__ = ["container", "modules"]

_MODULE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+:@-]*")
# Constant: names of modules travel in a variable, the command in "$@".
_SCRIPT = 'module load $TRANSECT_MODULES && exec "$@"'


def modules(names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return (wrap, variables) that load modules, in this order, before the command.

    A login shell, because `module` is a function that the site's profile defines.
    Raises BadInput for a name that is no module's.
    """
    for name in names:
        if not _MODULE.fullmatch(name):
            raise BadInput(f"module {name!r}: expected a name such as cuda/12.4")
    if not names:
        return [], {}
    return ["bash", "-lc", _SCRIPT, "transect"], {"TRANSECT_MODULES": " ".join(names)}


def container(image: str, *, gpus: bool = False, binds: Sequence[str] = ()) -> list[str]:
    """Return the wrap that runs the command inside an Apptainer image.

    Apptainer passes the environment on, apart from PATH and LD_LIBRARY_PATH. `binds` are folders
    that the command needs besides the home folder, /tmp and the working folder.
    Raises BadInput for an empty name.
    """
    if not image or image.startswith("-"):
        raise BadInput(f"container {image!r}: expected an image file or a URI such as docker://…")
    program = "apptainer" if shutil.which("apptainer") else shutil.which("singularity")
    argv = [program or "apptainer", "exec"]
    if gpus:
        argv.append("--nv")
    for folder in binds:
        argv += ["--bind", folder]
    return [*argv, image]
