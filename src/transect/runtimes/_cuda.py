"""Is there a CUDA device? Asked without a framework, so any process may ask."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

NO_DEVICE = "no CUDA device"
_DRIVER = Path("/proc/driver/nvidia/gpus")
# In a process of its own: one that has begun CUDA cannot fork any more.
_COUNT = """
import ctypes
driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
assert driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0
"""


def no_cuda_reason() -> str | None:
    """Return None when this host shows a CUDA device to this process, else the reason.

    Compiled runners do not ask again: where the driver shows none, ONNX Runtime fails in words of its own.
    """
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return f"{NO_DEVICE}: CUDA_VISIBLE_DEVICES hides them all"
    return None if _has_device() else NO_DEVICE


@cache
def _has_device() -> bool:
    # The host's devices are seen here also from within a container that was given none.
    seen = _DRIVER.exists() or shutil.which("nvidia-smi") is not None
    try:
        return seen and not subprocess.run([sys.executable, "-c", _COUNT], capture_output=True, timeout=60).returncode
    except (OSError, subprocess.TimeoutExpired):
        return False
