"""Make the image of an environment, once per lock hash: see `transect.planning.images`.

An image is made beside its place and renamed when it is whole, so that none is ever found half-written;
a second builder waits for the first. It is tried once with its wrapper before anything relies on it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from transect.domain.files import write_atomic
from transect.domain.terminal import say
from transect.engine.environment_use import note_use
from transect.engine.image_root import NotMade, make_root
from transect.engine.locks import one_builder
from transect.launch.images import COMPLETE, PACKED, ROOT_NAME, complaint, image_facts, imported_name, parts_of
from transect.launch.wrapping import WRAPPERS, image_fault, program_says, wrapped
from transect.measure.footprint import footprint
from transect.planning.environments import lock_hash_now
from transect.planning.images import definition_of, image_folder, image_lock

_TRY_S = 120


def remove_tree(folder: Path) -> None:
    """Remove a folder whose own modes would keep something in it, as those of an image do."""
    for where, _, _ in os.walk(folder):  # the modes of some would keep them
        os.chmod(where, 0o700)  # noqa: PTH101
    if folder.exists():
        shutil.rmtree(folder)


def _make(name: str, folder: Path, environment: Path) -> dict[str, Any]:
    """Make the image in a folder of its own, and rename that. Raises NotMade and OSError."""
    say(f"[transect] making the image of environment '{name}' in {folder}")
    start = time.monotonic()
    definition, file = definition_of(name)
    # The lock is ours: whatever lies there was left by a builder that is gone.
    for left in (*folder.parent.glob(f".{folder.name}.*"), folder):
        remove_tree(left)
    partial = folder.parent / f".{folder.name}.{os.getpid()}"
    root = partial / ROOT_NAME
    root.mkdir(parents=True)
    try:
        facts = make_root(root, definition, file.parent, environment)
        size = footprint([root])
        # `lock_hash_now` reads again what this process has hashed before.
        if lock_hash_now(name) not in environment.name:
            raise NotMade(f"envs/{name} was edited while its image was made: call it again")
        facts |= {
            "name": name,
            "lock_hash": image_lock(name),
            "environment": str(environment),
            "files": size.files,
            "bytes": size.bytes,
            "build_s": round(time.monotonic() - start, 1),
        }
        write_atomic(partial / COMPLETE, json.dumps(facts, indent=1) + "\n")
        partial.rename(folder)
    except BaseException:
        remove_tree(partial)
        raise
    return facts


def _pack(folder: Path) -> None:
    if (folder / PACKED).is_file():
        return
    if shutil.which("mksquashfs") is None:
        raise NotMade("mksquashfs is not on PATH (package squashfs-tools): its wrapper wants one file")
    partial = folder / f".{PACKED}.{os.getpid()}"
    command = ["mksquashfs", str(folder / ROOT_NAME), str(partial), "-noappend", "-quiet", "-no-progress"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        partial.unlink(missing_ok=True)
        raise NotMade(f"mksquashfs returned {done.returncode}: {done.stderr.strip()[-300:]}")
    partial.rename(folder / PACKED)


def _is_imported(program: str, folder: Path) -> bool:
    asked = [program, "image", "inspect", imported_name(folder)]
    return subprocess.run(asked, capture_output=True).returncode == 0


def _import(program: str, folder: Path) -> None:
    """Bring an image into a program's storage, where it is not there yet."""
    if _is_imported(program, folder):
        return
    name = imported_name(folder)
    packed = subprocess.Popen(["tar", "-C", str(folder / ROOT_NAME), "-c", "."], stdout=subprocess.PIPE)
    done = subprocess.run([program, "import", "-", name], stdin=packed.stdout, capture_output=True, text=True)
    assert packed.stdout is not None
    packed.stdout.close()  # so that tar ends where its reader has
    if packed.wait() or done.returncode:
        raise NotMade(f"{program} import returned {done.returncode}: {done.stderr.strip()[-300:]}")


def _whole(folder: Path, form: str) -> dict[str, Any] | None:
    facts = image_facts(folder) if (folder / ROOT_NAME).is_dir() else None
    return facts if facts and (form != "squashfs" or (folder / PACKED).is_file()) else None


def _try(wrapper: str, folder: Path, python: str) -> None:
    wrap, variables = wrapped(str(folder), wrapper=wrapper)
    command, environment = [*wrap, python, "-c", "import ctypes, zlib"], os.environ | variables | {"PYTHONPATH": ""}
    none = subprocess.DEVNULL
    done = subprocess.run(command, env=environment, capture_output=True, text=True, stdin=none, timeout=_TRY_S)
    if done.returncode:
        output = (done.stderr or done.stdout).strip()
        fault = image_fault(wrapper, str(folder), output)
        raise NotMade(fault or f"its Python does not start under {wrapper}: {output[-400:]}")


def build_image(name: str, built: dict[str, Any], planned: str | None = None) -> dict[str, Any]:
    """Return the facts of environment `ENVIRONMENT@WRAPPER`, making its image when the cache has none.

    `built` are the facts of the environment itself. `planned` is the lock hash that cells stand for. With
    `skips` the cells are skipped for want of the wrapper's program, which nothing here could make.
    Raises BadInput for a wrapper that is not registered, or a definition that cannot be used.
    """
    environment, wrapper = parts_of(name)
    form = WRAPPERS.get(wrapper).form
    folder = image_folder(environment)
    facts: dict[str, Any] = built | {
        "name": name,
        "lock_hash": planned or image_lock(environment),
        "image": str(folder),
        "wrapper": wrapper,
        "wrap": True,
        "bin": str(Path(built["python"]).parent),
    }
    if built["status"] != "ok":
        return facts
    says = program_says(wrapper)
    if says is None:
        silent = ", or it gets no answer" if WRAPPERS.get(wrapper).answers else ""
        text = f"{' or '.join(WRAPPERS.get(wrapper).programs)} is not on PATH here{silent}, so nothing can run in {wrapper}"
        return facts | {"status": "failed", "message": text, "skips": True}
    facts["wrapper_version"] = says[1]
    try:
        if facts["lock_hash"] != image_lock(environment):
            raise NotMade("its definition was edited since the study was planned: call snakemake again")
        # Before the lock: a cache that others keep may be readable only.
        made = _whole(folder, form)
        if made is None:
            with one_builder(folder):
                made = _whole(folder, "folder") or _make(environment, folder, Path(built["python"]).parents[1])
                if form == "squashfs":
                    _pack(folder)
        if form == "imported":
            _import(says[0], folder)
        _try(wrapper, folder, built["python"])
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return facts | {"status": "failed", "message": f"image {folder} cannot be used: {error}"}
    note_use(name, facts["lock_hash"])
    return facts | {"made_of": made}


def image_changed(name: str, facts: dict[str, Any]) -> bool:
    """Whether the stamp of `ENVIRONMENT@WRAPPER` no longer describes what is here.

    Its image has gone, from the storage into which it was imported too, or a wrapper's program that was not there has come.
    """
    wrapper = parts_of(name)[1]
    if not wrapper:
        return False
    if facts.get("skips"):
        return program_says(wrapper) is not None
    if facts["status"] != "ok":
        return False
    image, imported = str(facts["image"]), WRAPPERS.get(wrapper).form == "imported"
    if complaint(image) is not None:
        return True
    says = program_says(wrapper) if imported else None
    return says is not None and not _is_imported(says[0], Path(image))


def lost(name: str, stamp: Path) -> bool:
    """Whether a stamp no longer describes what is here: what it names has gone, or it cannot be read.

    It may have been removed from the cache, or be in one that we cannot see.
    """
    try:
        facts = json.loads(stamp.read_text(encoding="utf-8"))
        gone = Path(facts["python"]).is_absolute() and not Path(facts["python"]).exists()
        return (gone and facts["status"] == "ok" and not facts.get("wrap")) or image_changed(name, facts)
    except FileNotFoundError:
        return False
    except (OSError, ValueError, KeyError, TypeError):
        return True
