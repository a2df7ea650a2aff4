"""Tensor parallelism: two linear layers in a row, the first cut by outputs, the second by inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.training.frameworks import ModelPlan, Trainer, TrainingState
from transect.training.frameworks._torch_trainer import TorchTrainer
from transect.training.layered import LayeredModel
from transect.training.layers import Layer, Linear, ReLU, Sigmoid, inner
from transect.training.layout import Layout
from transect.training.models import Model, called
from transect.training.strategies import STRATEGIES
from transect.training.strategies._torch_replicas import RankGroup, ReplicaStrategy

Arrays = dict[str, np.ndarray]


class Pair(NamedTuple):
    """Names of two linear layers, and how many numbers pass between them."""

    first: str
    second: str
    width: int


class Cut(NamedTuple):
    """The part of an array along one axis that a rank holds."""

    axis: int
    rows: slice

    def of(self, array: np.ndarray) -> np.ndarray:
        """Return it."""
        return array[self.rows] if self.axis == 0 else array[:, self.rows]


def _pairs(layers: tuple[Layer, ...], prefix: str = "") -> Iterator[Pair]:
    """Yield the pairs with nothing but functions of single numbers between them; no layer is in two."""
    open_: tuple[str, Linear] | None = None
    for index, layer in enumerate(layers):
        name = f"{prefix}{index}"
        if isinstance(layer, Linear):
            if open_ is None:
                open_ = name, layer
            else:
                yield Pair(open_[0], name, layer.inputs)
                open_ = None
        elif not isinstance(layer, ReLU | Sigmoid):
            open_ = None
        for part, chain in inner(layer).items():
            yield from _pairs(chain, f"{name}.{part}.")


def _cuts(pairs: list[Pair], parts: int, part: int) -> dict[str, Cut]:
    found: dict[str, Cut] = {}
    for first, second, width in pairs:
        rows = Layout(1, 1, parts).micro(width)[part]
        found |= {f"{first}.weight": Cut(0, rows), f"{first}.bias": Cut(0, rows)}
        found[f"{second}.weight"] = Cut(1, rows)
    return found


def _cut_modules(pairs: list[Pair], layers: Mapping[str, Linear], group: RankGroup, part: int) -> Any:
    import torch
    from torch import nn

    from transect.training.strategies._torch_sums import summed, summed_back

    class ByOutputs(nn.Linear):
        """Some outputs of the layer; its input is everybody's."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.linear(summed_back(x, group), self.weight, self.bias)

    class ByInputs(nn.Linear):
        """All outputs, summed over everybody's inputs; the bias is added once."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            total: torch.Tensor = summed(nn.functional.linear(x, self.weight), group) + self.bias
            return total

    modules: dict[str, Any] = {}
    for first, second, width in pairs:
        rows = Layout(1, 1, len(group.ranks)).micro(width)[part]
        features = rows.stop - rows.start
        modules[first] = ByOutputs(layers[first].inputs, features)
        modules[second] = ByInputs(features, layers[second].outputs)
    return modules


def _linears(layers: tuple[Layer, ...], prefix: str = "") -> dict[str, Linear]:
    found: dict[str, Linear] = {}
    for index, layer in enumerate(layers):
        name = f"{prefix}{index}"
        if isinstance(layer, Linear):
            found[name] = layer
        for part, chain in inner(layer).items():
            found |= _linears(chain, f"{name}.{part}.")
    return found


@dataclass(frozen=True, slots=True)
class _PartModel(LayeredModel):
    """The model as this rank builds it."""

    group: RankGroup
    part: int

    def torch_module(self) -> Any:
        from transect.training.frameworks._torch_modules import build_module

        pairs = list(_pairs(self.layers))
        return build_module(self.layers, _cut_modules(pairs, _linears(self.layers), self.group, self.part))


class _PartTrainer(TorchTrainer):
    """Takes its part of whole arrays; `weights` gives its part, under the whole's names."""

    def __init__(self, plan: ModelPlan, cuts: dict[str, Cut]) -> None:
        self.cuts = cuts
        super().__init__(plan)

    def _own(self, arrays: Arrays) -> Arrays:
        return {name: self.cuts[name].of(a) if name in self.cuts else a for name, a in arrays.items()}

    def load(self, weights: Arrays) -> None:
        super().load(self._own(weights))

    def resume(self, state: TrainingState) -> None:
        self.load(state.weights)
        part_state = replace(state, states=tuple(self._own(arrays) for arrays in state.states))
        self._set_optimiser_state(self._rule, self.optimiser, self.model, part_state)


@STRATEGIES.register("tensor-parallel")
class TensorParallel(ReplicaStrategy):
    """`parts` ranks hold a part of each pair of linear layers, and all of everything else.

    Of a pair with a ReLU or a sigmoid between them the first layer is cut by its outputs, the second by its
    inputs: one all-reduce of the second's outputs forward, one of the first's inputs' gradient back.
    Layers in no pair, the third of three linear ones too, are computed by every rank of the replica
    alike. Replicas add up their gradients as one buffer.
    Source: M. Shoeybi et al., "Megatron-LM", arXiv:1909.08053, section 3.
    """

    splits_weights = splits_update = True

    def complaint(self, model: Model, cell: TrainCell) -> str | None:
        if not isinstance(model, LayeredModel):
            return f"it cuts lists of layers, and {called(model)} is not one"
        pairs, parts = list(_pairs(model.layers)), self.replica_ranks(cell)
        if not pairs:
            return f"{cell.workload} has no two linear layers with nothing but ReLU or Sigmoid between"
        narrow = min(pair.width for pair in pairs)
        if narrow < parts:
            return f"a layer of {narrow} outputs cannot be cut in {parts} parts"
        return None

    def build(self, plan: ModelPlan, cell: TrainCell) -> Trainer:
        groups, model = self.groups, plan.model
        assert isinstance(model, LayeredModel)
        self._pairs = list(_pairs(model.layers))
        part_model = _PartModel(model.layers, model.sample, groups.replica, groups.part)
        cuts = _cuts(self._pairs, groups.layout.model_parts, groups.part)
        return _PartTrainer(replace(plan, model=part_model), cuts)

    def reduce(self, trainer: Trainer) -> None:
        self.sum_gradients(trainer, trainer.gradient(), self.groups.peers)

    def weights(self, trainer: Trainer) -> Arrays:
        """Put the parts of this replica together; all ranks must call it."""
        import torch.distributed as dist

        assert isinstance(trainer, _PartTrainer)
        local, group = trainer.weights(), self.groups.replica
        if group.alone:
            return local
        parts: list[Any] = [None] * len(group.ranks)
        dist.all_gather_object(parts, {name: local[name] for name in trainer.cuts}, group=group.process_group)
        whole = {
            name: np.concatenate([part[name] for part in parts], axis=cut.axis) for name, cut in trainer.cuts.items()
        }
        return {name: whole.get(name, array) for name, array in local.items()}

    def details(self) -> dict[str, Any]:
        """Say which layers are cut."""
        return super().details() | {"pairs": [[first, second] for first, second, _ in self._pairs]}
