"""Lock hashes: what an environment is made from."""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from transect.domain.errors import BadInput, unknown_name
from transect.domain.files import canonical_json, digest
from transect.domain.paths import ROOT, environments_folder
from transect.domain.system import EnvironmentChoice

# How a build script names what it uses of `envs/shared/`.
_SHARED = re.compile(rb"\bshared/([A-Za-z0-9_.-]+)")
# How one shows which compiler it calls, and what tells that one's version.
_COMPILERS = (
    (rb"\b(?:cc|gcc|mpicc|CC|cmake|make)\b", "CC", "cc", "--version"),
    (rb"(?<![\w+])(?:c\+\+|g\+\+|mpicxx|CXX|cmake)(?![\w+])", "CXX", "c++", "--version"),
    (rb"\bnvcc\b", "NVCC", "nvcc", "--version"),
    # Called by these names, whatever the variables say; and what lets them offload or link OpenMP.
    (rb"\bcompile_with_gcc\b", "", "gcc", "--version"),
    (rb"\bcompile_with_gcc\b", "", "gcc", "-print-file-name=accel/nvptx-none/mkoffload"),
    (rb"\bcompile_with_clang\b", "", "clang", "--version"),
    (rb"\bcompile_with_clang\b", "", "clang", "-print-file-name=libomp.so"),
    (rb"\bcompile_with_nvc\b", "", "nvc", "--version"),
    (rb"\b(?:cargo|rustc)\b", "RUSTC", "rustc", "--version"),
    (rb"\bgo (?:build|install)\b", "GO", "go", "version"),
    (rb"\b(?:javac|mvn)\b", "JAVAC", "javac", "-version"),
    (rb"\b(?:node|npm)\b", "NODE", "node", "--version"),
)
# Written by whoever reads the sources, not by who wrote them.
_MADE = ("__pycache__",)
# What an image of the environment has below it: no part of the environment itself.
DEFINITION = "image.yaml"


def _bases() -> list[Path]:
    from transect.domain.registry import plugin_folders

    return [ROOT, *plugin_folders()]


def _find(name: str) -> Path | None:
    for base in _bases():
        if (base / "envs" / name / "requirements.txt").is_file():
            return base / "envs" / name
    return None


def has_environment(name: str) -> bool:
    """Whether `environment_source` finds it."""
    return _find(name) is not None


def environment_source(name: str, where: str = "") -> Path:
    """Return the folder with requirements.txt: `envs/NAME`, or a plug-in folder's `envs/NAME`.

    Raises BadInput for a name that neither has; `where` goes before its message.
    """
    folder = _find(name)
    if folder is None:
        raise unknown_name("environment", name, environment_names(), where)
    return folder


def environment_names() -> list[str]:
    """Return the names of the environments under `envs/`, here and in the plug-in folders."""
    found = (path for base in _bases() for path in (base / "envs").glob("*/requirements.txt"))
    return sorted({path.parent.name for path in found})


def shared_files(folder: Path) -> list[Path]:
    """Return the files of `envs/shared/` that an environment's build.sh uses, sorted.

    A file counts when build.sh, or a shared file that counts, mentions `shared/NAME`; a mention
    of something that is not there is none. Every other file there changes nothing.
    """
    shared: set[Path] = set()
    unread = [folder / "build.sh"]
    while unread:
        file = unread.pop()
        names = _SHARED.findall(file.read_bytes()) if file.is_file() else []
        mentioned = {folder.parent / "shared" / name.decode() for name in names}
        new = {path for path in mentioned - shared if path.is_file()}
        shared |= new
        unread += new
    return sorted(shared)


def _files_below(path: Path) -> list[Path]:
    """Return the file itself, or every file below the folder, sorted; links are not followed."""
    if path.is_file():
        return [path]
    files = []
    for folder, inside, names in os.walk(path):
        inside[:] = [name for name in inside if name not in _MADE]
        files += [Path(folder) / name for name in names]
    return sorted(files)


def _lines(listed: Path) -> list[str]:
    lines = listed.read_text(encoding="utf-8").splitlines() if listed.is_file() else []
    return [line for line in (line.partition("#")[0].strip() for line in lines) if line]


def pinned(folder: Path) -> list[str]:
    """Return what an environment installs by pip: the lines of its requirements.txt."""
    return _lines(folder / "requirements.txt")


def source_files(folder: Path) -> list[Path]:
    """Return what an environment is built from besides `envs/shared/`, sorted.

    Every file in its folder, and what the lines of its `sources.txt` name: files and folders
    below the repository, or below the plug-in folder that the environment belongs to.
    Raises BadInput naming a line that is not there or leads out of it.
    """
    files = set(_files_below(folder)) - {folder / DEFINITION}
    base, listed = folder.parents[1], folder / "sources.txt"
    for line in _lines(listed):
        path = Path(os.path.normpath(base / line))
        if not path.is_relative_to(base) or not path.exists():
            raise BadInput(f"{listed}: '{line}': expected a file or folder below {base}")
        files |= set(_files_below(path))
    return sorted(files)


def needs_of(definition: Path) -> list[str]:
    """Return the lines of a definition's `needs.txt`; none without it."""
    return _lines(definition / "needs.txt")


def needed_environments(name: str) -> list[str]:
    """Return the environments that this one stands on: the lines of its `needs.txt`, in order."""
    return _needed(name, ())


def _needed(name: str, above: tuple[str, ...]) -> list[str]:
    names = needs_of(environment_source(name))
    if name in above:
        raise BadInput(f"environments need each other in a circle: {' -> '.join((*above, name))}")
    for needed in names:
        _needed(needed, (*above, name))
    return names


@cache
def program_version(program: str, flag: str = "--version") -> str:
    """Return the first line that a program prints of its version, or `absent`.

    It may be given by several words, as CC often is: `ccache gcc`.
    """
    try:
        done = subprocess.run([*shlex.split(program), flag], capture_output=True, text=True)
    except (OSError, ValueError):
        return "absent"
    return (done.stdout or done.stderr).strip().partition("\n")[0]


def _compilers(scripts: Iterable[Path]) -> list[str]:
    """Return name and version of each compiler that build scripts call."""
    text = b"\n".join(script.read_bytes() for script in scripts if script.is_file())
    return [
        f"{program} {program_version(os.environ.get(variable) or program, flag)}"
        for sign, variable, program, flag in _COMPILERS
        if re.search(sign, text)
    ]


def lock_hash(name: str, choice: EnvironmentChoice | None = None) -> str:
    """Hash what an environment is made from: 16 hexadecimal digits.

    Requirements, build script with the shared files that it uses, sources that it compiles, compilers that it calls,
    environments that it needs, Python version and architecture; or, where the system chooses modules or an image,
    those. An image counts by name, size and time stamp, as it may be large; one that is a folder by those of its files.
    """
    if choice is None:
        return _lock_of_files(name)
    parts: list[str | bytes] = [name, canonical_json(choice.model_dump())]
    if choice.image and Path(choice.image).exists():
        parts += _stamps(Path(choice.image))
    elif not choice.modules and not choice.image:
        # What it has installed, by name and version.
        found = Path(choice.python).parents[1].glob("lib/python3*/site-packages/*.dist-info")
        parts += sorted(path.name for path in found)
    return digest(parts)[:16]


def _stamps(image: Path) -> list[str | bytes]:
    """Return sizes and time stamps of an image; of a folder not its own, which folders to bind at change."""
    if not image.is_dir():
        facts = image.stat()
        return [str(facts.st_size), str(facts.st_mtime_ns)]
    stamps: list[str | bytes] = []
    for path in _files_below(image):
        # A link of an image may lead nowhere outside of it.
        facts = path.lstat()
        # A name in an image may be no text.
        stamps += [os.fsencode(path.relative_to(image)), f"{facts.st_size} {facts.st_mtime_ns}"]
    return stamps


def lock_hash_now(name: str) -> str:
    """Hash again what `lock_hash` has hashed for this process: it may have been edited since."""
    return _lock_of_files.__wrapped__(name)


@cache
def _lock_of_files(name: str) -> str:
    return lock_of_definition(environment_source(name), needed_environments(name))


def lock_of_definition(folder: Path, needed: Iterable[str]) -> str:
    """Hash what the definition in `folder` makes, as `lock_hash` does, with the environments that it stands on."""
    shared = shared_files(folder)
    parts: list[str | bytes] = [sys.version.split()[0], platform.machine(), sys.platform]
    parts += ["requirements.txt", (folder / "requirements.txt").read_bytes()]
    for path in source_files(folder):
        if path != folder / "requirements.txt":
            content = path.read_bytes() if path.is_file() else "no file"
            parts += [os.path.relpath(path, folder.parents[1]), content]
    for path in shared:
        parts += [f"shared/{path.name}", path.read_bytes()]
    for name in needed:
        parts += ["needs", name, _lock_of_files.__wrapped__(name)]
    parts += _compilers([folder / "build.sh", *shared])
    return digest(parts)[:16]


def environment_folder(name: str) -> Path:
    """Return where the environment is or will be."""
    return environments_folder() / f"{name}-{lock_hash(name)}"
