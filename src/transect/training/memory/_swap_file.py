"""A file without a name that activations are written to: it is gone with its process."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import Any


class SwapFull(MemoryError):
    """There is no room for activations where they are written."""


def file_system(folder: str) -> str:
    """Return its type, such as ext4, or "unknown". A file in tmpfs lies in memory, out of any budget's sight."""
    device = Path(folder).stat().st_dev
    device_id = f"{os.major(device)}:{os.minor(device)}"
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        fields = line.split()
        if fields[2] == device_id:
            return fields[fields.index("-") + 1]
    return "unknown"


class SwapFile:
    """One file in `folder` (None: TMPDIR), as large as the largest step; a backend of `Store`.

    Room is asked for before anything is written, so that a full disk ends the step that asks, not
    one that has lost what it wrote. Its pages may lie in the system's page cache, which gives them
    up when somebody needs the memory.
    """

    # Of places: direct input and output would ask for it, and pages are not shared by two tensors.
    alignment = 4096

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder or tempfile.gettempdir()
        try:
            self._file = tempfile.TemporaryFile(dir=self._folder, prefix="transect-activations-")  # noqa: SIM115
        except OSError as error:
            raise SwapFull(f"no file for activations in {self._folder}: {error.strerror}") from None
        self._end = self._room = 0

    def facts(self) -> dict[str, Any]:
        return {"file_system": file_system(self._folder)}

    def begin(self) -> None:
        self._end = 0

    def note(self) -> None:
        """Nothing: what a CPU has computed is there."""

    def reserve(self, size: int) -> int:
        """Return an offset. Raises SwapFull naming folder and sizes."""
        offset = self._end
        self._end += -(-size // self.alignment) * self.alignment
        if self._end > self._room:
            try:
                os.posix_fallocate(self._file.fileno(), self._room, self._end - self._room)
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                    raise
                raise SwapFull(
                    f"no room for activations in {self._folder}: {self._room:,} bytes are written, "
                    f"{self._end - self._room:,} more did not fit ({error.strerror}); give TMPDIR, or "
                    "the system's `scratch`, a file system with more room"
                ) from None
            self._room = self._end
        return offset

    def save(self, place: int, flat: Any, moment: None) -> None:
        """Write all bytes. Raises OSError."""
        view = memoryview(_bytes(flat))
        while view:
            count = os.pwrite(self._file.fileno(), view, place)
            view, place = view[count:], place + count

    def load(self, place: int, like: tuple[int, Any]) -> Any:
        """Read them into a new tensor. Raises OSError when the file has become shorter."""
        import torch

        numbers, dtype = like
        flat = torch.empty(numbers, dtype=dtype)
        view = memoryview(_bytes(flat))
        while view:
            count = os.preadv(self._file.fileno(), [view], place)
            if not count:
                raise OSError(errno.EIO, f"{len(view)} bytes of activations are missing in their file")
            view, place = view[count:], place + count
        return flat

    def close(self) -> None:
        self._file.close()


def _bytes(flat: Any) -> Any:
    import torch

    # numpy has no bfloat16: bytes are bytes.
    return flat.detach().view(torch.uint8).numpy()
