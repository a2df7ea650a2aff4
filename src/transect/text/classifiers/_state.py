"""The state of a training in one file, written whole or not at all, without pickles."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from transect.domain.errors import BadInput
from transect.domain.files import write_atomic
from transect.text.classifiers._updates import Updates

if TYPE_CHECKING:
    import torch


@dataclass(slots=True)
class Progress:
    """How far a training got. `best`: the best epoch's weights, with patience."""

    epoch: int = 0
    updates: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    ended: str = ""
    best: dict[str, np.ndarray] | None = None
    best_loss: float = 0.0
    best_epoch: int = 0

    def copy(self) -> Progress:
        """Return one whose history does not grow with this one's."""
        return replace(self, history=list(self.history))


_FACTS = ("epoch", "updates", "history", "ended", "best_loss", "best_epoch")


def copy_weights(module: torch.nn.Module) -> dict[str, np.ndarray]:
    """Return copies of what is trained, by name: the rest is made again as it was."""
    return {name: p.detach().cpu().numpy().copy() for name, p in module.named_parameters() if p.requires_grad}


def put_weights(module: torch.nn.Module, weights: dict[str, np.ndarray]) -> None:
    """Give a module what `copy_weights` took from one like it."""
    import torch

    tensors = {name: torch.from_numpy(array) for name, array in weights.items()}
    module.load_state_dict(tensors, strict=False)


def write_state(
    path: Path,
    identity: dict[str, Any],
    weights: dict[str, np.ndarray],
    updates: dict[str, np.ndarray],
    progress: Progress,
) -> None:
    """Write weights, the best ones, and what the optimiser keeps. Raises OSError."""
    facts = {name: getattr(progress, name) for name in _FACTS}
    text = json.dumps({"identity": identity, "progress": facts})
    arrays = {"facts": np.frombuffer(text.encode("utf-8"), np.uint8)}
    groups = {"weights": weights, "best": progress.best or {}, "updates": updates}
    for group, kept in groups.items():
        arrays |= {f"{group}/{name}": array for name, array in kept.items()}
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]
    write_atomic(path, stream.getvalue())


def read_state(path: Path, identity: dict[str, Any], module: torch.nn.Module, updates: Updates) -> Progress:
    """Bring module and optimiser to a state; return how far it got.

    Raises BadInput for a file that is no state, or one of another training.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            facts = json.loads(stored["facts"].tobytes())
            arrays = {name: stored[name] for name in stored.files if name != "facts"}
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise BadInput(f"{path}: no readable state of a training: {error}") from None
    if facts["identity"] != identity:
        differ = [key for key in identity if facts["identity"].get(key) != identity[key]]
        raise BadInput(f"{path}: the state of another training: {', '.join(differ)} differ")
    groups: dict[str, dict[str, np.ndarray]] = {"weights": {}, "best": {}, "updates": {}}
    for name, array in arrays.items():
        group, _, inner = name.partition("/")
        groups[group][inner] = array
    put_weights(module, groups["weights"])
    updates.load(groups["updates"])
    return Progress(**facts["progress"], best=groups["best"] or None)
