"""Is there a CUDA device? Asked without a framework, so any process may ask."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

NO_DEVICE = "no CUDA device"
_DRIVER = Path("/proc/driver/nvidia/gpus")


def no_cuda_reason() -> str | None:
    """Return None when this host shows a CUDA device to this process, else the reason.

    A quick look only; the runner itself asks the driver again before it claims anything.
    """
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return f"{NO_DEVICE}: CUDA_VISIBLE_DEVICES hides them all"
    return None if _has_device() else NO_DEVICE


@cache
def _has_device() -> bool:
    try:
        if any(_DRIVER.iterdir()):
            return True
    except OSError:
        pass
    program = shutil.which("nvidia-smi")
    if program is None:
        return False
    try:
        found = subprocess.run([program, "-L"], capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return found.returncode == 0 and b"GPU " in found.stdout
