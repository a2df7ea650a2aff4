"""One run of the float64 trainer, exact or perturbed, from the start or from any state."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.axes.train import ReferenceCell
from transect.domain.precisions import find_precision
from transect.payloads.train import make_batches, score_test
from transect.training.averages import averaged, with_averages
from transect.training.frameworks import ModelPlan, TrainingState
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.layout import Layout, Share
from transect.training.learning_rates import learning_rates

# Of how many batches gradients are computed in float32 to see what rounding does.
_ROUNDED_BATCHES = 3

Weights = dict[str, np.ndarray]


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """What is trained: the cell names workload, batch, parts, rules and input.

    It begins at step `first`, from `state` or else from the plan's weights, and takes `steps`.
    """

    cell: ReferenceCell
    plan: ModelPlan
    data: dict[str, Any]
    folder: Path
    steps: int
    first: int = 0
    state: TrainingState | None = None
    # What the learning rates are multiplied by.
    rate: float = 1.0
    # By how much each number of the gradient errs, in units of the unit roundoff: `gradient_rounding`.
    rounding: np.ndarray | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Path64:
    """One run: loss per step, sum of test scores per whole epoch, weights at the end and their averages, if any.

    `states` are those before the steps that were asked for.
    """

    loss: np.ndarray
    scores: np.ndarray
    weights: Weights
    states: dict[int, TrainingState] = field(default_factory=dict)


def with_rate(problem: Problem, factor: float) -> Problem:
    """Return the problem with its learning rate multiplied by that."""
    return replace(problem, rate=factor)


def trajectory(
    problem: Problem, unit: float = 0.0, noise: float = 0.0, seed: int = 0, *, keep: Collection[int] = ()
) -> Path64:
    """Train in float64; stored weights err by `unit`, sums and gradients by `noise`, relatively.

    Scores are those of an exact run from the start.
    """
    generator = np.random.default_rng(seed)
    parts = _Parts(problem)
    rule, batch = problem.plan.parameters, problem.cell.batch
    # Of a strategy that has micro-batches of its own nobody asks to accumulate.
    cuts = Layout(problem.cell.shards, 1, problem.cell.micro_batches * rule.accumulation)
    # A schedule counts all steps of the training, also where the path ends early.
    epochs, samples = problem.data["order"].shape
    rates = learning_rates(rule, problem.cell.learning_rate_rule, batch, epochs * (samples // batch)) * problem.rate
    first = parts.trainers[0]
    if problem.state is not None:
        first.resume(problem.state)
    flat, gradient = first.flat_weights, first.flat_gradient
    losses, scores, states = [], [], {}
    for number, (several, epoch_ends) in enumerate(parts.batches(), problem.first):
        if number in keep:
            states[number] = first.state()
        if noise:
            flat *= 1 + unit * generator.standard_normal(flat.size)
            kept = flat.copy()
            flat *= 1 + noise * generator.standard_normal(flat.size)
        parts_of_loss = []
        total = np.zeros_like(gradient)
        for trainer, (x, y) in zip(parts.trainers, several, strict=True):
            if trainer is not first:
                trainer.flat_weights[...] = flat
            part = np.zeros_like(gradient)
            mean = 0.0
            for micro in cuts.micro(len(y)):
                weight = len(y[micro]) / len(y)
                mean += weight * trainer.forward_backward(x[micro], y[micro])
                part += weight * trainer.flat_gradient
            parts_of_loss.append(mean)
            total += part
        gradient[...] = total if problem.cell.reduce == "sum" else total / len(parts_of_loss)
        losses.append(float(np.mean(parts_of_loss)))
        if noise:
            flat[...] = kept
            gradient *= 1 + noise * generator.standard_normal(gradient.size)
            if problem.rounding is not None:
                # Nothing is rounded where nothing is added: no row of this batch reaches the number.
                gradient += unit * problem.rounding * generator.standard_normal(gradient.size) * (gradient != 0)
        first.update(rates[number])
        if rule.ema is not None:
            first.average()
            if noise:
                first.flat_average *= 1 + unit * generator.standard_normal(flat.size)
        if epoch_ends and not noise and problem.state is None:
            scores.append(parts.score())
    weights = with_averages(problem.plan.model, first, rule, first.weights)
    return Path64(loss=np.array(losses), scores=np.array(scores), weights=weights, states=states)


def gradient_rounding(problem: Problem) -> np.ndarray:
    """Return by how much a float32 gradient at the start differs from that in float64, over float32's roundoff.

    A sum of terms that cancel errs by more than a share of itself: the bias before a batch norm, or of a key in
    attention, has no gradient but rounding, which Adam makes as large as any other. Of a few batches the largest.
    """
    found = []
    for precision in ("fp64", "fp32"):
        one = replace(problem, plan=replace(problem.plan, precision=precision), first=0)
        parts = _Parts(one)
        trainer, gradients = parts.trainers[0], []
        for several, _ in islice(parts.batches(), _ROUNDED_BATCHES):
            trainer.load(problem.plan.weights)
            trainer.forward_backward(*several[0])
            gradients.append(trainer.flat_gradient.astype(np.float64))
        found.append(np.stack(gradients))
    exact, rounded_ones = found
    difference: np.ndarray = np.abs(rounded_ones - exact).max(axis=0)
    return difference / find_precision("fp32").unit_roundoff


class _Parts:
    """One trainer and one share of the batches for each part."""

    def __init__(self, problem: Problem) -> None:
        cell, plan = problem.cell, problem.plan
        self.trainers = [NumpyTrainer(plan) for _ in range(cell.shards)]
        self._problem = problem
        self._shares = [
            make_batches(
                cell,
                plan.model,
                trainer,
                problem.data,
                problem.folder,
                Share(number, cell.shards),
                plan.parameters.dataset_options,
            )
            for number, trainer in enumerate(self.trainers)
        ]

    def batches(self) -> Iterator[tuple[tuple[Any, ...], bool]]:
        """Yield each step's parts, and whether the step is its epoch's last."""
        first, steps = self._problem.first, self._problem.steps
        per_epoch = self._shares[0].steps_per_epoch
        shares = [share.steps(first, steps) for share in self._shares]
        for number, several in enumerate(zip(*shares, strict=True), first + 1):
            yield several, number % per_epoch == 0

    def score(self) -> float:
        """Return the sum of the test samples' scores by the first part's model."""
        plan, first = self._problem.plan, self.trainers[0]
        with averaged(first, plan.parameters):
            return score_test(plan.model, first.predict, self._shares[0])
