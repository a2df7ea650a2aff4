"""Where averages of weights stand in for the weights: a workload's `ema`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from transect.training.frameworks import BaseTrainer
from transect.training.models import Arrays, Model
from transect.training.workloads import Parameters

# What the names of averages begin with beside the weights' own.
_PREFIX = "average/"


@contextmanager
def averaged(trainer: BaseTrainer, rule: Parameters) -> Iterator[None]:
    """Let the trainer predict by the averages, and give them as its weights, where the workload asks for any."""
    if rule.ema is None:
        yield
        return
    trainer.exchange_averages()
    try:
        yield
    finally:
        trainer.exchange_averages()


def with_averages(model: Model, trainer: BaseTrainer, rule: Parameters, weights: Callable[[], Arrays]) -> Arrays:
    """Return what `weights` gives of the trainer, and the averages of the trained ones under names of their own."""
    found = weights()
    if rule.ema is None:
        return found
    with averaged(trainer, rule):
        averages = weights()
    return found | {_PREFIX + weight.name: averages[weight.name] for weight in model.weight_shapes() if weight.trained}
