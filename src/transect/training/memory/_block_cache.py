"""Large blocks of memory that are used again, under a limit that the kernel keeps.

`python -m transect.training.memory._block_cache MODULE ARGUMENTS…` runs a module with a cache below malloc, where there
is a C compiler and glibc; elsewhere without, which `cached_blocks` tells.

glibc gives memory back in two ways, and both are wrong here. Blocks in its heap are torn into pieces, so that a training
takes half as much again as it needs; blocks that are mappings of their own cost a fault for each page whenever they
are asked for, which is two thirds of a convolutional network's step. Here a freed block waits to be asked for again,
and the oldest of those that wait go back when the kernel gives no more.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from transect.training.memory._block_cache_source import SOURCE

BLOCK_CACHE = "transect.training.memory._block_cache"


def begin_again(arguments: list[str]) -> None:
    """Begin this process anew as Python with these arguments, the cache below it; returns where that cannot be done."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    # Somebody else's allocator would be given blocks that are not its own.
    if compiler is None or os.environ.get("LD_PRELOAD") or not _is_glibc():
        return
    try:
        with tempfile.TemporaryDirectory(prefix="transect-blocks-") as folder:
            source, library = Path(folder) / "blocks.c", Path(folder) / "blocks.so"
            source.write_text(SOURCE, encoding="ascii")
            argv = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
            subprocess.run([*argv, "-pthread"], capture_output=True, check=True)
            # A file without a name, which the new process inherits: nothing is left to clean up.
            handle = os.memfd_create("transect-blocks", 0)
            os.write(handle, library.read_bytes())
    except (OSError, subprocess.CalledProcessError):
        # It does not compile, or there is no room for it.
        return
    os.environ["LD_PRELOAD"] = f"/proc/self/fd/{handle}"
    os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606 this very Python


def _is_glibc() -> bool:
    return hasattr(ctypes.CDLL(None), "__libc_memalign")


class Blocks:
    """What the cache below this process tells: bytes of blocks of 64 KiB and more."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def drop(self) -> None:
        """Give back what waits to be used again."""
        self._library.transect_blocks_drop()

    def told(self) -> tuple[int, int, int, int]:
        """Return bytes in use, the most since the last call, bytes mapped, and the most of them."""
        four = (ctypes.c_size_t * 4)()
        self._library.transect_blocks_told(four)
        return four[0], four[1], four[2], four[3]


@cache
def cached_blocks() -> Blocks | None:
    """Return the cache below this process, or None. Processes that it begins have none."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "transect_blocks_told"):
        return None
    os.environ.pop("LD_PRELOAD", None)
    return Blocks(library)


if __name__ == "__main__":
    begin_again(["-m", *sys.argv[1:]])
    # Without the cache, then.
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
