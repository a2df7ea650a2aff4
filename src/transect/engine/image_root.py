"""The root file system of an image: what lies below an environment, and the environment itself."""

from __future__ import annotations

import json
import lzma
import os
import platform
import re
import shutil
import subprocess
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from transect.domain.files import sha256_file
from transect.engine.elf import read_elf
from transect.planning.images import ImageDefinition

# What a process finds in any root file system; /dev, /proc and /sys are the wrapper's to fill.
_FOLDERS = (
    "dev/shm",
    "etc",
    "home",
    "mnt",
    "opt",
    "proc",
    "root",
    "run",
    "sys",
    "tmp",
    "usr/bin",
    "usr/lib",
    "var/tmp",
)
_EXTRACTED = "var/lib/packages-extracted"
_LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
# Charliecloud and others bind their own over these, and want something to bind over.
_FILES = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
    "group": "root:x:0:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost\n",
    "resolv.conf": "",
    "hostname": "",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
# Of the standard library: what no program of ours imports, and is large or asks for libraries that few bases have.
_LEFT_OUT = (
    *("test", "idlelib", "turtledemo", "tkinter", "site-packages", "dist-packages", "config-*"),
    *("_tkinter.*", "nis.*", "_crypt.*", "_dbm.*", "_gdbm.*"),
)
# Opened by libraries that are asked for by no name in a file.
_OPENED = ("libnss_files.so.2", "libnss_dns.so.2", "libgcc_s.so.1")
_ASK = (
    "import json, os, sys, sysconfig as s; print(json.dumps([os.path.realpath(sys.executable), s.get_path('stdlib'), "
    "s.get_path('platstdlib'), os.path.join(s.get_config_var('LIBDIR') or '', s.get_config_var('LDLIBRARY') or '')]))"
)
_LISTED = re.compile(r"^\s+(\S+) \(([^)]*)\) => (\S+)$", re.MULTILINE)
_SHARED_OBJECT = re.compile(r"\.so(\.[\d.]+)?$")


class NotMade(ValueError):
    """An image cannot be made, and why."""


def make_root(root: Path, definition: ImageDefinition, beside: Path, environment: Path) -> dict[str, Any]:
    """Fill an empty folder with a base and an environment, each file at the path that it has here.

    `beside` is the folder of the definition. Returns facts: libraries that files of the environment ask
    for and that are not on this machine either, and what the base is.
    Raises NotMade, naming what is missing, and OSError.
    """
    facts: dict[str, Any] = {"base": definition.base, "machine": platform.machine()}
    if definition.base == "debian":
        facts |= _debian(root, definition)
    elif definition.base == "archive":
        facts |= _unpack(root, definition, beside)
    for folder in _FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
    for name, text in _FILES.items():
        if not (root / "etc" / name).exists():
            (root / "etc" / name).write_text(text)
    host_base = definition.base == "host"
    for name in _LINKS if host_base else ():
        if Path(name).is_symlink():
            # Scripts name their shell by /bin, and programs their loader by /lib64.
            _place(root, Path(name))
    files = list(_take_python(root, environment))
    if host_base:
        programs = (shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin") for name in definition.programs)
        files += [_take(root, Path(path)) for path in programs if path is not None]
        for path in ("/etc/os-release", "/etc/ld.so.cache", "/usr/lib/locale/C.utf8"):
            if Path(path).exists():
                _take(root, Path(path))
    return facts | _libraries(root, files, host_base=host_base)


def _debian(root: Path, definition: ImageDefinition) -> dict[str, Any]:
    if shutil.which("mmdebstrap") is None:
        raise NotMade("base debian needs mmdebstrap, which is not on PATH")
    root.rmdir()
    command = ["mmdebstrap", "--quiet", "--variant=extract", "--format=directory"]
    # Constant: mmdebstrap fills in the root. Versions are noted, for a mirror goes on.
    command.append(f'--extract-hook=ls "$1/var/cache/apt/archives" > "$1/{_EXTRACTED}"')
    command.append(f"--include={','.join(['base-files', 'libc-bin', 'dash', 'coreutils', *definition.packages])}")
    done = subprocess.run([*command, definition.suite, str(root)], capture_output=True, text=True)
    if done.returncode:
        raise NotMade(f"mmdebstrap returned {done.returncode}: {done.stderr.strip()[-400:]}")
    # A folder that mmdebstrap makes for itself is closed to others, as ranks of other users are.
    root.chmod(0o755)
    if not (root / "usr/bin/sh").exists() and (root / "usr/bin/dash").exists():
        (root / "usr/bin/sh").symlink_to("dash")
    names = (root / _EXTRACTED).read_text().split()
    found = [name.removesuffix(".deb").replace("%3a", ":").split("_") for name in names if name.endswith(".deb")]
    return {"suite": definition.suite, "packages": {parts[0]: parts[1] for parts in sorted(found)}}


def _unpack(root: Path, definition: ImageDefinition, beside: Path) -> dict[str, Any]:
    assert definition.archive is not None
    archive = beside / definition.archive
    found = sha256_file(archive)  # OSError, which names it, where it is not there
    if found != definition.sha256:
        raise NotMade(f"the archive {archive} has sha256 {found}, expected {definition.sha256}")
    try:
        with tarfile.open(archive) as opened:
            # Devices need rights and are not wanted.
            opened.extractall(root, [m for m in opened if not (m.isdev() or m.isfifo())], filter=_plain)  # noqa: S202
    except (tarfile.TarError, KeyError, OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise NotMade(f"the archive {archive} cannot be read: {error}") from None
    return {"archive": definition.archive, "sha256": found}


def _plain(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo:
    """Take a member as it is but for its owner and what is no permission; none outside of the root.

    Its owner may read and write it, whoever that is here: some bases have folders of mode 0555 and files of none.
    """
    if member.islnk():  # it names another member from the root
        target = member.linkname.lstrip("/")
        member = member.replace(linkname=target, deep=False)
        tarfile.tar_filter(member.replace(name=target, deep=False), path)
    nobody: dict[str, Any] = dict.fromkeys(("uid", "gid", "uname", "gname"))
    found = tarfile.tar_filter(member, path)
    return found.replace(deep=False, mode=found.mode | 0o600, **nobody)


def _place(root: Path, path: Path) -> Path:
    """Make the folders and links that lead to a path here; return where its file goes in the root."""
    current, parts = Path("/"), list(path.parts[1:])
    while parts:
        here = current / parts.pop(0)
        there = root / here.relative_to("/")
        if here.is_symlink():
            target = os.readlink(here)  # noqa: PTH115 text is wanted
            if not os.path.lexists(there):
                there.parent.mkdir(parents=True, exist_ok=True)
                there.symlink_to(target)
            parts = [*Path(os.path.normpath(current / target)).parts[1:], *parts]
            current = Path("/")
        else:
            if parts:
                there.mkdir(parents=True, exist_ok=True)
            current = here
    return root / current.relative_to("/")


def _take(root: Path, path: Path, leave: Iterable[str] = ()) -> Path:
    """Copy a file or a folder to the same path in the root; return where it lies there."""
    there = _place(root, path)
    if path.is_dir():
        left = shutil.ignore_patterns(*leave)
        shutil.copytree(path, there, symlinks=True, ignore=left, dirs_exist_ok=True)
    elif not there.exists():
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, there)
    return there


def _take_python(root: Path, environment: Path) -> Iterator[Path]:
    python = environment / "bin" / "python"
    done = subprocess.run([str(python), "-I", "-c", _ASK], capture_output=True, text=True)
    if done.returncode:
        raise NotMade(f"{python} does not run: {done.stderr.strip()[-300:]}")
    program, library, platform_library, shared = map(Path, json.loads(done.stdout))
    # First the folders: links that lead to a file are made on the way, and would stand in their way.
    taken = [*(_take(root, folder, _LEFT_OUT) for folder in {library, platform_library}), _take(root, environment)]
    yield from (Path(where, name) for folder in taken for where, _, names in os.walk(folder) for name in names)
    yield _take(root, python)
    yield _take(root, program)
    if shared.is_file() and _SHARED_OBJECT.search(shared.name):
        yield _take(root, shared)


def _libraries_here() -> dict[str, Path]:
    """Return the shared libraries of this machine by name, as its loader lists them."""
    program = shutil.which("ldconfig", path=f"{os.environ.get('PATH', '')}:/sbin:/usr/sbin") or "ldconfig"
    text = subprocess.run([program, "-p"], capture_output=True, text=True).stdout
    here = platform.machine().replace("_", "-")
    known: dict[str, Path] = {}
    for name, kind, path in _LISTED.findall(text):
        # `libc6,x86-64`; some architectures are not named.
        if here in kind or ("," not in kind and here not in ("x86-64",)) or "AArch64" in kind:
            known.setdefault(name, Path(path))
    return known


def _libraries(root: Path, files: list[Path], *, host_base: bool) -> dict[str, Any]:
    """Bring in what ELF files ask for, and what that asks for; with a foreign base only look.

    Raises NotMade where a foreign base lacks what this machine has.
    """
    known = _libraries_here()
    present = {name for _, _, names in os.walk(root) for name in names if _SHARED_OBJECT.search(name)}
    unread = [path for path in files if not path.is_symlink()]
    absent: dict[str, str] = {}
    if host_base:
        unread += [_take(root, known[name]) for name in _OPENED if name in known]
    while unread:
        path = unread.pop()
        elf = read_elf(path) if path.is_file() else None
        if elf is None:
            continue
        loader = [elf.loader] if elf.loader and not (root / elf.loader.lstrip("/")).exists() else []
        for name in (*elf.needed, *loader):
            short = Path(name).name
            if short in present and name not in loader:
                continue
            here = Path(name) if name in loader else known.get(name)
            if host_base and here is not None and here.exists():
                unread.append(_take(root, here))
                present.add(short)
            elif here is not None or name in loader:
                absent.setdefault(short, f"/{path.relative_to(root)}")
    if absent:
        asked = ", ".join(f"{name} (asked for by {path})" for name, path in sorted(absent.items())[:8])
        raise NotMade(f"its base lacks {asked}: name packages that bring them")
    return {"libraries": len(present)}
