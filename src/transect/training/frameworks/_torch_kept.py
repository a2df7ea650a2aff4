"""What autograd's graph keeps for its way back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


def _saved(node: Any) -> Iterator[Any]:
    """Yield the tensors that a node of the graph has saved: attributes that autograd names `_saved_`."""
    import torch

    for name in dir(node):
        if name.startswith("_saved_"):
            value = getattr(node, name)
            several = value if isinstance(value, tuple | list) else (value,)
            yield from (one for one in several if isinstance(one, torch.Tensor))


def kept_storages(end: Any, weights: Iterable[Any]) -> dict[int, int]:
    """Return address and bytes of each storage that the graph behind a tensor holds.

    Those of `weights` are left out: they are there anyway.
    """
    own = {tensor.untyped_storage().data_ptr() for tensor in weights}
    found: dict[int, int] = {}
    todo, seen = [end.grad_fn], set()
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        todo += [behind for behind, _ in node.next_functions]
        for tensor in _saved(node):
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in own and storage.nbytes():
                found[storage.data_ptr()] = storage.nbytes()
    return found
