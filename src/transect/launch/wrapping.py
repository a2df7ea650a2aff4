"""What goes before the command on each rank: environment modules, a container.

A container program is a wrapper: one file in `transect/launch/wrappers/` or in a plug-in folder.
It says how a command is run inside an image, and what its own words mean when it cannot.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from transect.domain.errors import BadInput
from transect.domain.registry import Plugin, Registry
from transect.launch.images import mount_points, root_of

_MODULE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+:@-]*")
# Constant: names of modules travel in a variable, the command in "$@".
_SCRIPT = (
    'module load $TRANSECT_MODULES || { echo "transect: module load $TRANSECT_MODULES: failed" >&2; '
    'exit 127; }; shopt -s execfail; exec "$@"; code=$?; echo "transect: $1: cannot be run" >&2; exit $code'
)
# What it says itself: bash's own words, before it, come in any language.
_NO_MODULES = re.compile(r"^(?:\[\d+\] )?transect: (?:module load .+: failed|.+: cannot be run)$", re.MULTILINE)
# What the dynamic loader (glibc, musl) and the kernel say, whatever the wrapper.
_LOADER = (
    r"error while loading shared libraries: |ImportError: lib\S+: cannot open shared|Error loading shared library "
    r"|version `GLIBC\S+' not found|[Ee]xec format error"
)
# The one that runs an image whose system file, or whose user, names none.
USUAL = "apptainer"
# Ranks of one node meet there: sockets of mpiexec and PMIx, shared memory of MPI and of NCCL.
SHARED = ("/tmp", "/dev/shm")  # noqa: S108 it is the host's own, shown inside
# A daemon on another host that is down may never answer.
_ANSWER_S = 30
# PMIx keeps what ranks ask it in files below its server's folder, which is another one on each node and
# in each job step, so that nobody can name it beforehand: by messages it works without them.
_MPI = {"PMIX_MCA_gds": "hash"}


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Inside:
    """An image, and what a command in it needs of the world outside.

    `image` is a file, a folder with a root file system, or a URI. `binds` are folders that lie at the same
    path inside; `workdir` is the folder that the command runs in, None: the wrapper's own choice.
    """

    image: str
    binds: tuple[str, ...] = ()
    workdir: str | None = None
    gpus: bool = False


class Wrapper(Plugin, ABC):
    """Runs a command inside an image. Its methods return lists, none starts anything."""

    # What must be on PATH, the first that is there is taken.
    programs: tuple[str, ...]
    # What it must do before it counts as here, such as ask its daemon: arguments of its program, none: nothing.
    answers: tuple[str, ...] = ()
    # What it runs of those that transect makes: "folder"; "squashfs", one file made from it; or "imported" into its storage.
    form = "folder"
    # Whether its processes are no children of the command that starts them.
    detaches = False
    # What its own words begin with, or hold, where an image lacks something: a regular expression.
    faults = r"(?!)"
    # Characters that separate the parts of a folder to bind.
    separators = ":"

    def __init_subclass__(cls) -> None:
        if not isinstance(cls.faults, str):  # as a pattern, several would match nothing
            raise TypeError(f"{cls.__name__}.faults: expected one regular expression, found {cls.faults!r}")

    @abstractmethod
    def argv(self, inside: Inside) -> list[str]:
        """Return what goes before the command."""

    def supports(self, inside: Inside) -> str | None:
        """Return None, or why it cannot run this, of an image that may not be there yet."""
        return None

    def variables(self, inside: Inside) -> dict[str, str]:
        """Return environment variables for its program or for the ranks inside."""
        return {}


WRAPPERS: Registry[Wrapper] = Registry("container wrapper", "transect.launch.wrappers", Wrapper)


def outermost(folders: Sequence[str]) -> tuple[str, ...]:
    """Return folders that lie within no other one, sorted: a bind within a bind is refused by some.

    >>> outermost(["/tmp/a", "/work", "/tmp"])
    ('/tmp', '/work')
    """
    kept: list[str] = []
    for folder in sorted({os.path.normpath(path) for path in folders}):
        if not any(Path(folder).is_relative_to(outer) for outer in kept):
            kept.append(folder)
    return tuple(kept)


def _answers(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=_ANSWER_S).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


@cache
def program_says(wrapper: str) -> tuple[str, str] | None:
    """Return (program, first line of its version) of a wrapper; None when it is not here, or does not answer."""
    answers = WRAPPERS.get(wrapper).answers
    for program in WRAPPERS.get(wrapper).programs:
        found = shutil.which(program)
        if found is not None and (not answers or _answers([found, *answers])):
            # Charliecloud will not even tell its version to somebody without a name.
            done = subprocess.run(
                [found, "--version"],
                capture_output=True,
                text=True,
                env=os.environ | {"USER": os.environ.get("USER") or "nobody"},
            )
            return program, (done.stdout or done.stderr).strip().partition("\n")[0]
    return None


def wrapped(
    image: str, *, wrapper: str = USUAL, gpus: bool = False, binds: Sequence[str] = (), workdir: str | None = None
) -> tuple[list[str], dict[str, str]]:
    """Return (wrap, variables) that run a command inside an image.

    `binds` are folders that the command needs besides /tmp and what the wrapper shows by itself.
    Raises BadInput for an empty name and for what the wrapper cannot do.
    """
    if not image or image.startswith("-"):
        raise BadInput(f"container {image!r}: expected an image file or a URI such as docker://…")
    chosen = WRAPPERS.get(wrapper)
    root = root_of(image, chosen.form)
    inside = Inside(image=root or image, binds=tuple(binds), workdir=workdir, gpus=gpus)
    reason = chosen.supports(inside)
    if reason is not None:
        raise BadInput(f"container {image}: {reason}")
    folders = [*binds, *([workdir] if workdir else [])]
    for folder in folders:
        if {*chosen.separators} & {*folder}:
            raise BadInput(f"container {image}: {wrapper} cannot show the folder {folder!r}, for a sign in its name")
    if root is not None and os.path.isdir(root):  # noqa: PTH112 a root may be a file as well
        mount_points(Path(root), outermost([*SHARED, *folders]))
    variables = _MPI | chosen.variables(inside)
    if chosen.detaches:
        variables |= {"TRANSECT_DETACHED": "1"}
    return chosen.argv(inside), variables


def modules_fault(code: int, log: str) -> str | None:
    """Return what modules lack, as it was printed before the command ended with `code`, or None."""
    match = _NO_MODULES.search(log)
    if match is None or code not in (126, 127):
        return None
    before = [line.strip() for line in log[: match.start()].splitlines() if line.strip()][-3:]
    return " | ".join([*before, match[0].strip()])[:600]


def image_fault(wrapper: str, image: str, log: str) -> str | None:
    """Return the line that tells what an image lacks, of what a command in it printed, or None."""
    match = re.search(rf"^.*(?:{_LOADER}|{WRAPPERS.get(wrapper).faults}).*$", log, re.MULTILINE)
    return match and f"image {image}: {match[0].strip()[:300]}"
