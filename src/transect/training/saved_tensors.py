"""What the forward pass of a list of layers leaves for its backward pass: counted, not measured.

As autograd of torch saves: a linear map, a convolution, a batch norm and a pooling their input, a
ReLU and a sigmoid their output, a pooling the place of each maximum (8 bytes). A tensor that two layers save
is there once; a flattened one is its input by another shape. Weights are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from transect.training.layers import (
    BatchNorm2d,
    Branches,
    Conv2d,
    Flatten,
    GlobalAveragePool,
    Layer,
    LayerNorm,
    Linear,
    MaxPool2d,
    ReLU,
    Residual,
    Shape,
    Sigmoid,
    inner,
    shapes,
    walk,
    weight_shapes,
)

_INDEX_BYTES = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class SavedLayer:
    """A top-level layer: the numbers of the tensors that it saves, of its input and of its output."""

    name: str
    saved: tuple[int, ...]
    before: int
    after: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SavedTensors:
    """`sizes`: bytes of each tensor of a batch. Tensor 0 is the batch, which is in memory anyway."""

    sizes: tuple[int, ...]
    layers: tuple[SavedLayer, ...]

    def kept_bytes(self) -> int:
        """Bytes that a forward pass leaves behind, the batch not counted."""
        saved = {tensor for layer in self.layers for tensor in layer.saved}
        return sum(self.sizes[tensor] for tensor in saved - {0})


@dataclass(slots=True)
class _Count:
    """Tensors made so far, of `batch` samples of numbers of `number` bytes."""

    batch: int
    number: int
    sizes: list[int] = field(default_factory=list)

    def made(self, shape: Shape, bytes_each: int | None = None, samples: int | None = None) -> int:
        count = self.batch if samples is None else samples
        self.sizes.append(count * prod(shape) * (bytes_each or self.number))
        return len(self.sizes) - 1

    def layer(self, layer: Layer, before: int, shape: Shape, after: Shape) -> tuple[set[int], int]:
        """Return the tensors that a layer saves, and its output."""
        if isinstance(layer, Flatten):
            return set(), before
        if chains := inner(layer).values():
            saved = {tensor for chain in chains for tensor in self.chain(chain, before, shape)}
            return saved, self.made(after)
        output = self.made(after)
        match layer:
            case Linear() | Conv2d():
                return {before}, output
            case BatchNorm2d(channels):
                return {before, self.made((2 * channels,), samples=1)}, output
            case LayerNorm():
                return {before, self.made((2,))}, output
            case MaxPool2d():
                return {before, self.made(after, _INDEX_BYTES)}, output
            case ReLU() | Sigmoid():
                return {output}, output
            case GlobalAveragePool():
                return set(), output
        raise TypeError(f"what layer {layer!r} saves is not known: add it to {__name__}")

    def chain(self, layers: tuple[Layer, ...], before: int, shape: Shape) -> set[int]:
        saved: set[int] = set()
        for layer, after in zip(layers, shapes(layers, shape)[1:], strict=True):
            layer_saved, before = self.layer(layer, before, shape, after)
            saved |= layer_saved
            shape = after
        return saved


def saved_tensors(layers: tuple[Layer, ...], sample: Shape, batch: int, number: int) -> SavedTensors:
    """Count for a batch of samples of shape `sample`, whose numbers take `number` bytes.

    Raises TypeError for a kind of layer that has no rule.
    """
    count = _Count(batch, number)
    before, shape = count.made(sample), sample
    found = []
    for index, (layer, after) in enumerate(zip(layers, shapes(layers, sample)[1:], strict=True)):
        saved, output = count.layer(layer, before, shape, after)
        found.append(SavedLayer(name=str(index), saved=tuple(sorted(saved)), before=before, after=output))
        before, shape = output, after
    return SavedTensors(sizes=tuple(count.sizes), layers=tuple(found))


def largest_layer(layers: tuple[Layer, ...], sample: Shape, batch: int, number: int) -> tuple[str, int]:
    """Return name and bytes of the layer that no way to save memory makes smaller.

    Backwards it holds its input, the gradients of its output and its input, and those of its weights;
    the first one needs no gradient of its input, and a flattening one has nothing of its own.
    """
    largest = ("", 0)
    for number_of, placed in enumerate(walk(layers, sample)):
        if isinstance(placed.layer, Flatten | Residual | Branches):
            continue
        before, after = (batch * prod(shape) for shape in (placed.before, placed.after))
        weights = sum(prod(w.shape) for w in weight_shapes((placed.layer,)) if w.trained)
        held = number * ((2 * before if number_of else 0) + after + weights)
        if held > largest[1]:
            largest = (placed.name, held)
    return largest
