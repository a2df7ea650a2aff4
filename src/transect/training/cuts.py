"""Where a model of layers is cut into the stages of a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from types import MappingProxyType

from transect.training.models import Model
from transect.training.operations import training_operations
from transect.training.parts import boundary_shapes, layer_count, layers_of, trained_sizes


def _ones(model: Model) -> list[int]:
    return [1] * layer_count(model)


def _operations(model: Model) -> list[int]:
    places = zip(layers_of(model), boundary_shapes(model), strict=False)
    return [training_operations((layer,), before, needed=number > 0) for number, (layer, before) in enumerate(places)]


# By which of its costs a model is cut into equal parts.
CUTS: Mapping[str, Callable[[Model], list[int]]] = MappingProxyType(
    {"compute": _operations, "equal": _ones, "parameters": trained_sizes}
)


def even_cuts(costs: Sequence[int], stages: int) -> tuple[int, ...]:
    """Cut costs, in their order, so that the dearest of the stages is as cheap as can be.

    A pipeline's step is at least (micro_batches - 1) times its dearest stage, plus all stages once. Of
    the best cuts it takes one whose stages are much the same. Raises ValueError for fewer costs than
    stages.
    """
    count = len(costs)
    if not 1 <= stages <= count:
        raise ValueError(f"{count} layers cannot be cut into {stages} stages")
    low, high = max(costs), sum(costs)
    while low < high:
        middle = (low + high) // 2
        if _fill(costs, middle) <= stages:
            high = middle
        else:
            low = middle + 1
    sums = [0, *accumulate(costs)]
    # The first layer at which stage k may begin: later stages take as much as they can.
    earliest = [0] * stages + [count]
    for k in range(stages - 1, 0, -1):
        begin = earliest[k + 1] - 1
        while begin > k and sums[earliest[k + 1]] - sums[begin - 1] <= low:
            begin -= 1
        earliest[k] = begin
    cuts, begin = [], 0
    for k in range(1, stages):
        target = sums[begin] + (sums[-1] - sums[begin]) / (stages - k + 1)
        ends = range(max(begin + 1, earliest[k]), count - (stages - k) + 1)
        fitting = [end for end in ends if sums[end] - sums[begin] <= low]
        begin = min(fitting, key=lambda end: abs(sums[end] - target))
        cuts.append(begin)
    return tuple(cuts)


def _fill(costs: Sequence[int], limit: int) -> int:
    """Return how many stages within a limit are enough; no cost exceeds it."""
    stages, room = 1, limit
    for cost in costs:
        if cost > room:
            stages, room = stages + 1, limit
        room -= cost
    return stages


def _explicit(text: str) -> tuple[int, ...] | None:
    words = text.split("-")
    return tuple(map(int, words)) if all(word.isdecimal() for word in words) else None


def cut_text(cuts: tuple[int, ...]) -> str:
    """Return how an option writes cuts.

    >>> cut_text((3, 7))
    '3-7'
    """
    return "-".join(map(str, cuts))


def complaint_of_cut(model: Model, cut: str, stages: int) -> str | None:
    """Return why a model cannot be cut so into stages, or None. `cut` is a name of CUTS or as `3-7`."""
    count = layer_count(model)
    if stages > count:
        return f"the model's {count} layers cannot be cut into {stages} stages"
    if cut in CUTS:
        return None
    cuts = _explicit(cut)
    if cuts is None:
        return f"cut is {', '.join(CUTS)} or the stages' first layers, such as 3-7, not '{cut}'"
    ends = (0, *cuts, count)
    if len(cuts) != stages - 1:
        return f"cut {cut} makes {len(cuts) + 1} stages, not {stages}"
    if any(a >= b for a, b in pairwise(ends)):
        return f"cut {cut} leaves a stage of the model's {count} layers without one"
    return None


def stage_cuts(model: Model, cut: str, stages: int) -> tuple[int, ...]:
    """Return the first layers of all stages but the first. Raises ValueError with the complaint."""
    complaint = complaint_of_cut(model, cut, stages)
    if complaint is not None:
        raise ValueError(complaint)
    if cut in CUTS:
        return even_cuts(CUTS[cut](model), stages)
    return _explicit(cut) or ()
