"""Saved tensors of a torch module go through a store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from transect.training.memory import Activations
from transect.training.memory._runs import Run, compute_in_runs, layers_of
from transect.training.memory._store import Kept, Store

# Bytes of the smallest tensor that is worth its way: statistics of a batch norm are not.
MIN_COUNT = 1 << 16


def span_of(tensor: Any) -> Any:
    """Return the numbers of a dense tensor in the order of memory, flat, or None for any other."""
    import torch

    if tensor.layout is not torch.strided:
        return None
    expected = 1
    for stride, size in sorted(
        (stride, size) for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1
    ):
        if stride != expected:
            return None
        expected *= size
    return tensor.detach().as_strided((tensor.numel(),), (1,), tensor.storage_offset())


class OffloadedActivations(Activations):
    """Offloads the tensors saved in runs with the action `offload`, each storage once.

    Weights and the batch stay: they are in memory anyway.
    """

    def __init__(self, store: Store, model: Any, runs: Sequence[Run] | None = None) -> None:
        """Make the module compute in `runs`; None: what all layers save goes."""
        self._store, self._model = store, model
        compute_in_runs(model, runs or [Run("offload", 0, len(layers_of(model)[0]))], self._offloading)
        self._run_facts: dict[str, Any] = {"runs": [list(run) for run in runs]} if runs else {}
        self._held: set[int] = set()
        self._kept: dict[tuple[int, int, int, Any], Kept] = {}
        self._last: dict[str, Any] = {}

    @contextmanager
    def forward(self, x: Any) -> Iterator[None]:
        self._kept.clear()
        self._store.begin()
        tensors = (x, *self._model.parameters(), *self._model.buffers())
        self._held = {tensor.untyped_storage().data_ptr() for tensor in tensors}
        yield

    @contextmanager
    def backward(self) -> Iterator[None]:
        self._store.turn()
        yield
        self._last = {
            "offloaded_bytes": sum(kept.size for kept in self._kept.values()),
            "written_bytes": self._store.written,
            "read_bytes": self._store.read,
            "waited_s": self._store.waited_s,
        }
        self._kept.clear()

    def _offloading(self) -> AbstractContextManager[Any]:
        """Surround layers whose saved tensors go."""
        from torch.autograd.graph import saved_tensors_hooks

        hooks: AbstractContextManager[Any] = saved_tensors_hooks(self._pack, self._unpack)
        return hooks

    def facts(self) -> dict[str, Any]:
        """Return what the last step moved, in bytes, the seconds that computing waited for it, and where to."""
        return self._run_facts | self._last | self._store.facts()

    def close(self) -> None:
        self._store.close()

    def _pack(self, tensor: Any) -> Any:
        from torch.multiprocessing.reductions import StorageWeakRef

        size = tensor.numel() * tensor.element_size()
        if size < MIN_COUNT or tensor.untyped_storage().data_ptr() in self._held:
            return tensor
        flat = span_of(tensor)
        if flat is None:
            return tensor
        identity = StorageWeakRef(tensor.untyped_storage())
        key = (identity.cdata, tensor.storage_offset(), tensor.numel(), tensor.dtype)
        kept = self._kept.get(key)
        if kept is None:
            kept = self._store.put(flat, size, identity)
            self._kept[key] = kept
        else:
            kept.uses += 1
        return kept, tensor.shape, tensor.stride()

    def _unpack(self, packed: Any) -> Any:
        if not isinstance(packed, tuple):
            return packed
        kept, shape, stride = packed
        return self._store.take(kept).as_strided(shape, stride, 0)
