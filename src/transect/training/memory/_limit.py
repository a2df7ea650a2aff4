"""A memory budget, enforced by the kernel: an allocation beyond it fails.

RLIMIT_DATA counts private writable memory (setrlimit(2)): what malloc gives, and stacks of threads. Neither shared
mappings nor the page cache count, so that what lies in a file does not. glibc keeps freed blocks for later, torn into
pieces: a training would need half as much again. From 64 KiB on they are asked to be mappings of their own
(mallopt(3), M_MMAP_THRESHOLD), which are given back at once, at the price of a fault for each page.
"""

from __future__ import annotations

import ctypes
import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_M_MMAP_THRESHOLD = -3
_BLOCK = 1 << 16


def status_bytes(*names: str) -> list[int]:
    """Return fields such as VmData of /proc/self/status in bytes. Raises KeyError for one that is not there."""
    text = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    found = dict(re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE))
    return [1024 * int(found[name]) for name in names]


def large_blocks_apart() -> None:
    """Give large blocks back at once when they are freed, in this process from now on."""
    # A C library that is not glibc has no mallopt: blocks are then its own affair.
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _BLOCK)


class BudgetUsedUp(MemoryError):
    """A budget of memory did not suffice."""


# What torch and oneDNN say when the kernel gives them nothing; the latter does not say why.
_NOTHING_GIVEN = ("allocate memory", "could not create a", "could not execute a", "bad allocation")


def settle() -> None:
    """Let torch start its threads and load what it computes with: no training's, but any's."""
    import torch
    from torch.nn import functional

    image = torch.ones(2, 1, 8, 8, requires_grad=True)
    kernel = torch.ones(1, 1, 3, 3, requires_grad=True)
    matrix = torch.ones(8, 64, requires_grad=True)
    scale = torch.ones(1, requires_grad=True)
    convolved = functional.conv2d(image, kernel, padding=1)
    normed = functional.batch_norm(convolved, None, None, scale, scale, training=True)
    outputs = functional.linear(functional.relu(normed).flatten(1), matrix)
    functional.cross_entropy(outputs, torch.zeros(2, dtype=torch.long)).backward()
    # Enough numbers for every thread.
    torch.ones(1 << 18).add_(1).sum()


class Peak:
    """The most resident memory that a process takes, above what it had at the first `begin`.

    Where freed blocks are given back at once that is what it uses. Page cache is not among it.
    """

    def __init__(self) -> None:
        self._resident: int | None = None

    def begin(self) -> None:
        """Count anew (proc(5), clear_refs)."""
        if self._resident is None:
            self._resident = status_bytes("VmRSS")[0]
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")

    def bytes(self) -> int:
        """Return the most since `begin`; 0 at least."""
        return max(0, status_bytes("VmHWM")[0] - (self._resident or 0))


class MemoryLimit:
    """Limits a torch process to `budget` bytes above its memory at the first use; None: only measures.

    `most`: the most memory above the first use's that was seen in any use (`Peak`). `before`: the most
    resident memory of the process until the last use began, which the kernel has forgotten then.
    """

    def __init__(self, budget: int | None) -> None:
        self._budget = budget
        self._data = 0
        self._begun = False
        self._peak = Peak()
        self.most = self.before = 0
        if budget is not None:
            large_blocks_apart()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the process to it, and note its peak.

        Raises BudgetUsedUp with what torch says when it is given no more.
        """
        if not self._begun:
            self._begun = True
            settle()
            self._data = status_bytes("VmData")[0]
        self.before = max(self.before, status_bytes("VmHWM")[0])
        self._peak.begin()
        before = resource.getrlimit(resource.RLIMIT_DATA)
        if self._budget is not None:
            most = self._data + self._budget
            ceiling = before[1] if before[1] != resource.RLIM_INFINITY else most
            resource.setrlimit(resource.RLIMIT_DATA, (min(most, ceiling), before[1]))
        try:
            yield
        except (MemoryError, RuntimeError) as error:
            if self._budget is None or not any(phrase in str(error) for phrase in _NOTHING_GIVEN):
                raise
            raise BudgetUsedUp(f"the memory_budget of {self._budget:,} bytes does not suffice: {error}") from error
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, before)
            self.most = max(self.most, self._peak.bytes())
