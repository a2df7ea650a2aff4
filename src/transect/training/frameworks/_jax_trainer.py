"""JAX as its users write it: pure functions of a state of arrays, `value_and_grad`, `jit`, donated buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from transect.domain.precisions import find_precision
from transect.training.encoder_model import TextEncoder
from transect.training.frameworks import FusedTrainer, ModelPlan, ResumableTrainer, TrainingState
from transect.training.frameworks._channels_last import order_at_end, samples_last, to_native, to_neutral
from transect.training.frameworks._jax_averages import Averages
from transect.training.frameworks._jax_encoder import EncoderNetwork
from transect.training.frameworks._jax_layers import LayeredNetwork
from transect.training.frameworks._jax_losses import mean_loss
from transect.training.frameworks._jax_optimisers import make_optimiser, with_states
from transect.training.frameworks._jax_setup import configure
from transect.training.layered import LayeredModel

# What devices hold of an argument or a result: all the same, each its own, or each its part of the batch.
Kind = Literal["same", "own", "part"]


class JaxTrainer(FusedTrainer, ResumableTrainer):
    """`state`: trained weights and other ones, dicts by name in JAX's layouts, and optax's state.

    `flat_gradient` is an array of the device, in the order of the `trained` names.
    """

    def __init__(self, plan: ModelPlan) -> None:
        self.jax: Any = configure(plan.threads, plan.device, plan.precision)
        self._plan, self._rule = plan, plan.parameters
        precision = find_precision(plan.precision)
        self.dtype = np.dtype(precision.stored)
        self._layered = isinstance(plan.model, LayeredModel)
        self._network = self.network(plan)
        self.trained = [weight.name for weight in plan.model.weight_shapes() if weight.trained]
        self._averages = Averages(self._rule.ema)
        self._optimiser = make_optimiser(self._rule, precision.stored)
        arrays = self._arrays(plan.weights)
        self._compile(arrays)
        moving = self._optimiser.init({name: arrays[name] for name in self.trained})
        self.state: tuple[Any, Any, Any] = ({}, {}, self.placed(moving, "same"))
        self.load(plan.weights)

    def network(self, plan: ModelPlan) -> Callable[..., Any]:
        """Return the function of weights by name, a batch and whether it trains: outputs, and weights that it changes."""
        multiplied = find_precision(plan.precision).multiplied
        if isinstance(plan.model, LayeredModel):
            return LayeredNetwork(plan.layers, order_at_end(plan.layers, plan.sample), multiplied)
        assert isinstance(plan.model, TextEncoder)
        return EncoderNetwork(plan.model.config, multiplied)

    def _arrays(self, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return them in the layouts and the precision of this trainer."""
        native = to_native(weights, self._plan.layers, self._plan.sample) if self._layered else weights
        return {name: array.astype(self.dtype) for name, array in native.items()}

    def compiled(
        self, function: Callable[..., Any], takes: tuple[Kind, ...], gives: tuple[Kind, ...], donated: tuple[int, ...]
    ) -> Callable[..., Any]:
        """Compile a function of the device; what is donated gives its memory to the results."""
        compiled: Callable[..., Any] = self.jax.jit(function, donate_argnums=donated)
        return compiled

    def reduced(self, flat: Any) -> Any:
        """Return the gradient that the step's update takes: this rank's own."""
        return flat

    def _compile(self, arrays: dict[str, np.ndarray]) -> None:
        jax, numpy = self.jax, self.jax.numpy
        shapes = {name: arrays[name].shape for name in self.trained}
        ends = np.cumsum([arrays[name].size for name in self.trained])
        self._buffer = np.empty(ends[-1] if len(ends) else 0, self.dtype)
        self.flat_gradient: Any = numpy.zeros(self._buffer.shape, self.dtype)

        def value(trained: Any, others: Any, x: Any, y: Any) -> Any:
            outputs, others = self.training_outputs(trained, others, x)
            return self.loss(y, outputs), others

        def backward(trained: Any, others: Any, x: Any, y: Any) -> Any:
            (loss, others), gradients = jax.value_and_grad(value, has_aux=True)(trained, others, x, y)
            return loss, others, self.reduced(self.flat(gradients))

        def update(trained: Any, moving: Any, flat: Any, rate: Any) -> Any:
            parts = zip(self.trained, numpy.split(flat, ends[:-1]), strict=True)
            gradients = {name: part.reshape(shapes[name]) for name, part in parts}
            moved, moving = self._optimiser.update(gradients, moving, trained)
            return {name: trained[name] - rate * moved[name] for name in trained}, moving

        def step(trained: Any, others: Any, moving: Any, x: Any, y: Any, rate: Any) -> Any:
            loss, others, flat = backward(trained, others, x, y)
            trained, moving = update(trained, moving, flat, rate)
            return loss, trained, others, moving

        self._backward = self.compiled(backward, ("same", "own", "part", "part"), ("own", "own", "same"), (1,))
        self._update = self.compiled(update, ("same",) * 4, ("same",) * 2, (0, 1))
        takes: tuple[Kind, ...] = ("same", "own", "same", "part", "part", "same")
        self._step = self.compiled(step, takes, ("own", "same", "own", "same"), (0, 1, 2))
        self._predict = jax.jit(lambda trained, others, x: self._network(trained | others, x, False)[0])

    def training_outputs(self, trained: Any, others: Any, x: Any) -> tuple[Any, Any]:
        """Return the outputs for a batch in training, and the other weights after it; to be compiled."""
        outputs, changed = self._network(trained | others, x, True)
        return outputs, others | changed

    def loss(self, y: Any, outputs: Any) -> Any:
        """Return the mean loss; to be compiled."""
        return mean_loss(self._rule, outputs, y)

    def flat(self, gradients: dict[str, Any]) -> Any:
        """Return the gradients side by side; to be compiled."""
        return self.jax.numpy.concatenate([gradients[name].ravel() for name in self.trained])

    def batch(self, x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
        """Leave them in numpy: a compiled function takes such arrays faster than they are made into JAX's before."""
        return self.inputs(x), y

    def inputs(self, x: np.ndarray) -> np.ndarray:
        """Return samples in this trainer's layout and precision; words stay numbers."""
        x = x.astype(self.dtype, copy=False) if x.dtype.kind == "f" else x
        return samples_last(x) if self._layered else x

    def forward_backward(self, x: Any, y: Any) -> float:
        trained, others, moving = self.state
        loss, others, self.flat_gradient = self._backward(trained, others, x, y)
        self.state = (trained, others, moving)
        return self.number(loss)

    def gradient(self) -> np.ndarray:
        np.copyto(self._buffer, self.local(self.flat_gradient))
        return self._buffer

    def set_gradient(self, flat: np.ndarray) -> None:
        """Copy it: the caller's buffer may change before the update has read it."""
        self.flat_gradient = self.jax.numpy.array(flat)

    def update(self, learning_rate: float) -> None:
        trained, others, moving = self.state
        trained, moving = self._update(trained, moving, self.flat_gradient, self.dtype.type(learning_rate))
        self.state = (trained, others, moving)

    def step(self, x: Any, y: Any, learning_rate: float) -> float:
        loss, *state = self._step(*self.state, x, y, self.dtype.type(learning_rate))
        self.state = tuple(state)
        return self.number(loss)

    def average(self) -> None:
        self._averages.move(self.state[0])

    def exchange_averages(self) -> None:
        trained, others, moving = self.state
        self.state = (self._averages.exchanged(trained), others, moving)

    def finish_step(self) -> None:
        """Wait for the update: JAX returns before it has computed."""
        self.jax.block_until_ready((self.state, self._averages.values))

    def predict(self, x: np.ndarray) -> np.ndarray:
        trained, others, _ = self.state
        return np.asarray(self._predict(self.local(trained), self.local_own(others), self.inputs(x)))

    def weights(self) -> dict[str, np.ndarray]:
        trained, others, _ = self.state
        held = self.local(trained) | self.local_own(others)
        # Copies: what JAX shows of a CPU's memory is given away in the next step.
        arrays = {weight.name: np.array(held[weight.name]) for weight in self._plan.model.weight_shapes()}
        return to_neutral(arrays, self._plan.layers, self._plan.sample) if self._layered else arrays

    def load(self, weights: dict[str, np.ndarray]) -> None:
        """Round the given weights to this trainer's precision; momenta stay."""
        arrays = self._arrays(weights)
        trained = {name: arrays[name] for name in self.trained}
        others = {name: array for name, array in arrays.items() if name not in trained}
        self.state = (self.placed(trained, "same"), self.placed(others, "own"), self.state[2])

    def resume(self, state: TrainingState) -> None:
        self.load(state.weights)
        states = [self._arrays(arrays) for arrays in state.states]
        trained, others, moving = self.state
        self.state = (trained, others, self.placed(with_states(moving, states, state.updates), "same"))

    # How arrays lie on one device; on several, `_jax_sharded` says it.

    def placed(self, arrays: Any, kind: Kind) -> Any:
        """Bring arrays of numpy to where the compiled functions take them; never the caller's own memory."""
        return self.jax.tree.map(lambda array: self.jax.numpy.array(array, copy=True), arrays)

    def local(self, arrays: Any) -> Any:
        """Return what this rank's first device holds of arrays that are the same on all."""
        return arrays

    def local_own(self, arrays: Any) -> Any:
        """Return what this rank's first device holds of arrays of which each has its own."""
        return arrays

    def number(self, loss: Any) -> float:
        """Return this rank's mean loss, which waits for the devices."""
        return float(loss)
