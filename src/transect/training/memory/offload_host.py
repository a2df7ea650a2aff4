"""A GPU's activations go to the host's memory and come back ahead of the backward pass."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from transect.domain.axes.train import TrainCell
from transect.training.memory import MEMORIES, Activations, Memory
from transect.training.memory._offload import OffloadedActivations
from transect.training.memory._store import Store
from transect.training.memory.offload_file import window_bytes

if TYPE_CHECKING:
    from transect.training.frameworks import ModelPlan


class _HostBuffers:
    """A backend of `Store`. Buffers are pinned where the device is a GPU, and used again by later steps.

    A copy waits for what was computed when its tensor was put, and for nothing else.
    """

    def __init__(self, device: Any) -> None:
        import torch

        self._torch, self._device = torch, device
        self._gpu = device.type == "cuda"
        self._streams: dict[str, Any] = {}
        if self._gpu:
            self._streams = {name: torch.cuda.Stream(device) for name in ("out", "in")}
        self._free: dict[int, list[Any]] = defaultdict(list)
        self._used: list[Any] = []

    def facts(self) -> dict[str, Any]:
        """Nothing: the memory's name says it."""
        return {}

    def begin(self) -> None:
        for buffer in self._used:
            self._free[buffer.numel()].append(buffer)
        self._used = []

    def note(self) -> Any:
        return self._torch.cuda.current_stream(self._device).record_event() if self._gpu else None

    def reserve(self, size: int) -> Any:
        """Return a buffer of `size` bytes. Raises RuntimeError when the host has none."""
        free = self._free[size]
        buffer = free.pop() if free else self._torch.empty(size, dtype=self._torch.uint8, pin_memory=self._gpu)
        self._used.append(buffer)
        return buffer

    def save(self, place: Any, flat: Any, moment: Any) -> None:
        source = flat.detach().view(self._torch.uint8)
        if not self._gpu:
            place.copy_(source)
            return
        stream = self._streams["out"]
        with self._torch.cuda.stream(stream):
            stream.wait_event(moment)
            place.copy_(source, non_blocking=True)
            stream.synchronize()

    def load(self, place: Any, like: tuple[int, Any]) -> Any:
        """Copy in; the bytes are there when it returns."""
        numbers, dtype = like
        if not self._gpu:
            return place.clone().view(dtype)
        stream = self._streams["in"]
        with self._torch.cuda.stream(stream):
            flat = self._torch.empty(numbers, dtype=dtype, device=self._device)
            flat.view(self._torch.uint8).copy_(place, non_blocking=True)
            stream.synchronize()
        # Made on this stream, used and freed on the one that computes.
        flat.record_stream(self._torch.cuda.default_stream(self._device))
        return flat

    def close(self) -> None:
        self._free.clear()
        self._used = []


@MEMORIES.register("offload-host")
class OffloadHost(Memory):
    """Copies them into pinned buffers on a stream of its own, behind the computing."""

    def supports(self, cell: TrainCell) -> str | None:
        if cell.device != "cuda":
            return f"activations of a {cell.device} lie in the host's memory already"
        return super().supports(cell)

    def arrange(self, model: Any, plan: ModelPlan) -> Activations:
        """Offload what all layers save."""
        device = next(model.parameters()).device
        return OffloadedActivations(Store(_HostBuffers(device), window_bytes(plan.memory_budget)), model)
