"""The memory and time of layers between the passes, and the costs of a choice for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Runs of (action, first layer, layer after the last).
Runs = Sequence[tuple[str, int, int]]


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerMemory:
    """Seconds of its passes; tensors that it saves, its input and its output among them or not.

    `working_bytes`: what it needs besides while it computes, such as the gradients of both.
    """

    name: str
    forward_s: float
    backward_s: float
    saved: tuple[int, ...]
    before: int
    after: int
    working_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryProblem:
    """`sizes`: bytes of each tensor. `chained`: whether segments of several layers can be recomputed.

    `smallest`: bytes below which a tensor is never written, but kept. `handling_s`: what handing a tensor
    over and taking it back costs where nothing hides it.
    """

    layers: tuple[LayerMemory, ...]
    sizes: tuple[int, ...]
    budget: int
    window: int
    write_s_per_byte: float
    read_s_per_byte: float
    handling_s: float = 0.0
    overlap: bool = True
    chained: bool = True
    smallest: int = 1 << 16

    def made(self, tensor: int) -> int:
        """Return the first layer that saves a tensor or gives it."""
        return next(i for i, layer in enumerate(self.layers) if tensor in (*layer.saved, layer.after))

    def moved(self, layer: LayerMemory) -> set[int]:
        """Return the tensors of a layer that offloading it writes."""
        return {t for t in layer.saved if t and self.sizes[t] >= self.smallest}

    def segment_bytes(self, first: int, index: int) -> int:
        """Return what layers [first, index] have saved once they are computed again: W."""
        saved = {t for layer in self.layers[first : index + 1] for t in layer.saved}
        return sum(self.sizes[t] for t in saved - {0, self.layers[first].before})


def _actions(runs: Runs) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {"keep": [], "offload": [], "recompute": []}
    for action, first, last in runs:
        found[action] += range(first, last)
    return found


def peak_bytes(problem: MemoryProblem, runs: Runs) -> tuple[int, int]:
    """Return the most bytes that a choice of runs holds, and the layer that holds them."""
    by = _actions(runs)
    resident = {t for i in by["keep"] for t in problem.layers[i].saved}
    resident |= {problem.layers[s].before for action, s, _ in runs if action == "recompute"}
    resident |= {t for i in by["offload"] for t in problem.layers[i].saved if t not in problem.moved(problem.layers[i])}
    made = {t: problem.made(t) for t in resident - {0}}
    starts = {i: s for action, s, e in runs if action == "recompute" for i in range(s, e)}
    peaks = []
    for index, layer in enumerate(problem.layers):
        held = sum(problem.sizes[t] for t, at in made.items() if at <= index) + layer.working_bytes
        if index in starts:
            held += problem.segment_bytes(starts[index], index)
        if index in by["offload"]:
            held += sum(problem.sizes[t] for t in problem.moved(layer))
        peaks.append(held + (problem.window if by["offload"] else 0))
    most = max(peaks)
    return most, peaks.index(most)


def extra_seconds(problem: MemoryProblem, runs: Runs) -> float:
    """Return what a choice of runs takes beyond plain training."""
    by = _actions(runs)
    again = sum(problem.layers[i].forward_s for i in by["recompute"])
    moved = {t for i in by["offload"] for t in problem.moved(problem.layers[i])}
    made = {t: problem.made(t) for t in moved}
    again += problem.handling_s * len(moved)
    if not problem.overlap:
        rate = problem.write_s_per_byte + problem.read_s_per_byte
        return again + rate * sum(problem.sizes[t] for t in moved)
    stalls = [0.0], [0.0]
    for index in range(len(problem.layers)):
        late = sum(problem.sizes[t] for t in moved if made[t] >= index)
        after = problem.layers[index + 1 :]
        stalls[0].append(problem.write_s_per_byte * (late - problem.window) - sum(layer.forward_s for layer in after))
        stalls[1].append(problem.read_s_per_byte * late - sum(layer.backward_s for layer in after))
    return again + max(stalls[0]) + max(stalls[1])
