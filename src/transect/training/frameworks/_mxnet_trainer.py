"""Apache MXNet, archived upstream since 2023: Gluon, hybridized, with autograd and gluon.Trainer."""

from __future__ import annotations

import ctypes
import os
import sys
from math import prod
from typing import Any

import numpy as np

from transect.domain.precisions import find_precision
from transect.training.frameworks import FusedTrainer, ModelPlan, ResumableTrainer, TrainingState
from transect.training.frameworks._mxnet_model import build_net, with_loss
from transect.training.frameworks._mxnet_optimisers import make_optimiser, set_states
from transect.training.layers import BatchNorm2d, shapes, walk, weight_shapes
from transect.training.optimisers import group_rule


class _Shared:
    """An NDArray for `numpy.from_dlpack`, which shares its memory."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, stream: None = None) -> Any:
        return self.array.to_dlpack_for_write()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # a CPU, the first


def _memory(array: Any) -> np.ndarray:
    """Return the flat memory of an NDArray; to be used only while the engine is idle.

    The NDArray must outlive it.
    """
    view = np.from_dlpack(_Shared(array))
    # DLPack of that age cannot say that a tensor may be written, so numpy forbids it.
    buffer = (ctypes.c_byte * view.nbytes).from_address(view.ctypes.data)
    return np.frombuffer(buffer, view.dtype)


class MxnetTrainer(FusedTrainer, ResumableTrainer):
    """`trained` are Gluon's parameters in neutral order, `gradients` their NDArrays.

    MXNet's batch norm moves the running variance by the population variance and keeps its momentum
    in float32. Here its momentum is 0, so that its arrays hold mean and variance of the last batch
    only, and the running ones, with the sample variance, are kept beside it. `adds`: gradients of
    several batches add up, each of which may be computed before the others go back.
    """

    def __init__(self, plan: ModelPlan, *, adds: bool = False) -> None:
        if "mxnet" not in sys.modules:
            # Read once, when the library is loaded; its BLAS and oneDNN follow it.
            os.environ["OMP_NUM_THREADS"] = str(plan.threads)
        import mxnet as mx

        self.mx = mx
        self.dtype = np.dtype(find_precision(plan.precision).stored)
        self.net, parameters = build_net(plan.layers)
        self.net.cast(self.dtype.name)
        self.net.initialize(ctx=mx.cpu())
        arrays = weight_shapes(plan.layers)
        classes = shapes(plan.layers, plan.sample)[-1][0]
        self._net_with_loss = with_loss(self.net, plan.parameters, classes, self.dtype.name)
        # Prediction has graphs of its own, which keep no memory between calls.
        self.net.hybridize()
        if adds:
            # Static graphs have memory for one batch.
            self._net_with_loss.hybridize(static_alloc=False, static_shape=False)
        self.trained = [parameters[array.name] for array in arrays if array.trained]
        for array in self.trained if adds else []:
            array.grad_req = "add"
        for array in self.trained:
            # Of MXNet's own SGD; other rules ask for themselves.
            array.wd_mult = 1.0 if group_rule(plan.parameters, array.shape) == plan.parameters else 0.0
        self.gradients = [array.grad() for array in self.trained]
        self._clip_norm, self._ema = plan.parameters.clip_norm, plan.parameters.ema
        self._averages: dict[str, Any] = {}
        self._names = [array.name for array in arrays]
        self._trained_names = [array.name for array in arrays if array.trained]
        self._weights = {array.name: parameters[array.name].data() for array in arrays if array.trained}
        self._gradient_memory = [_memory(array) for array in self.gradients]
        self._flat = np.empty(sum(array.size for array in self._gradient_memory), self.dtype)
        self.statistics = _Statistics(plan, parameters, self.dtype)
        self.load(plan.weights)
        self._optimiser = make_optimiser(plan.parameters, self.dtype)
        if self.trained:
            self._trainer = mx.gluon.Trainer(self.trained, self._optimiser, kvstore=None)

    def load(self, weights: dict[str, np.ndarray]) -> None:
        for name, array in self._weights.items():
            # Through an NDArray: after prediction oneDNN keeps weights in a layout of its own.
            array[:] = self.mx.nd.array(weights[name], dtype=self.dtype)
        self.statistics.load(weights)

    def resume(self, state: TrainingState) -> None:
        """Go on from there; only after an update."""
        self.load(state.weights)
        if not self.trained:
            return
        states = [[arrays[name].astype(self.dtype) for name in self._trained_names] for arrays in state.states]
        set_states(self._trainer._updaters[0], states, state.updates)

    def batch(self, x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
        """Copy to NDArrays; the labels become int32."""
        return self.tensor(x), self.mx.nd.from_numpy(y.astype(np.int32))

    def tensor(self, x: np.ndarray) -> Any:
        """Copy to an NDArray."""
        # nd.array copies twice.
        return self.mx.nd.from_numpy(np.array(x, self.dtype, order="C"))

    def recorded(self, x: Any, y: Any = None) -> Any:
        """Return the outputs, or the mean loss (1,) where there is a `y`, for autograd."""
        with self.mx.autograd.record():
            return self.net(x) if y is None else self._net_with_loss(x, y)

    def forward_backward(self, x: Any, y: Any) -> float:
        """Run autograd and wait for the last gradient: MXNet's engine works in the background."""
        loss = self.recorded(x, y)
        loss.backward()
        self.mx.nd.waitall()
        self.statistics.move(len(x))
        return float(loss.asscalar())

    def gradient(self) -> np.ndarray:
        """Copy all gradients into one numpy buffer, which is used again in the next step."""
        self.mx.nd.waitall()
        return np.concatenate([*self._gradient_memory, self._flat[:0]], out=self._flat)

    def clear_gradient(self) -> None:
        """Set it to zero."""
        self.mx.nd.waitall()
        for array in self._gradient_memory:
            array[...] = 0

    def set_gradient(self, flat: np.ndarray) -> None:
        self.mx.nd.waitall()
        start = 0
        for array in self._gradient_memory:
            array[...] = flat[start : start + array.size]
            start += array.size
        # gluon refuses a second update by the gradient of one backward pass, whatever was put there.
        for parameter in self.trained:
            parameter.data()._fresh_grad = True

    def update(self, learning_rate: float) -> None:
        """Apply gluon.Trainer; the gradients are means already."""
        if not self.trained:
            return
        if self._clip_norm is not None:
            norm = float(self.mx.nd.add_n(*[(array * array).sum() for array in self.gradients]).sqrt().asscalar())
            for array in self.gradients if norm > self._clip_norm else []:
                array *= self._clip_norm / norm
        self._optimiser.change_rate(float(learning_rate))
        self._trainer.update(1)

    def average(self) -> None:
        assert self._ema is not None
        if not self._averages:
            self._averages = {name: self._weights[name].copy() for name in self._trained_names}
        else:
            for name, average in self._averages.items():
                average *= self._ema
                average += (1 - self._ema) * self._weights[name]

    def exchange_averages(self) -> None:
        for name, average in self._averages.items():
            kept = self._weights[name].copy()
            self._weights[name][:] = average
            average[:] = kept

    def step(self, x: Any, y: Any, learning_rate: float) -> float:
        loss = self.recorded(x, y)
        loss.backward()
        self.update(learning_rate)
        self.mx.nd.waitall()
        self.statistics.move(len(x))
        return float(loss.asscalar())

    def finish_step(self) -> None:
        self.mx.nd.waitall()

    def predict(self, x: np.ndarray) -> np.ndarray:
        self.statistics.show()
        outputs: np.ndarray = self.net(self.batch(x, np.empty(0, np.int64))[0]).asnumpy()
        return outputs

    def weights(self) -> dict[str, np.ndarray]:
        found = {name: array.asnumpy() for name, array in self._weights.items()}
        found |= self.statistics.copies()
        return {name: found[name] for name in self._names}


class _Statistics:
    """The running statistics of all batch norms, in one numpy array."""

    def __init__(self, plan: ModelPlan, parameters: dict[str, Any], dtype: Any) -> None:
        self._arrays = {
            array.name: parameters[array.name].data() for array in weight_shapes(plan.layers) if not array.trained
        }
        self._memory = [_memory(array) for array in self._arrays.values()]
        sizes = [array.size for array in self._memory]
        self._places = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1]) if sizes else []
        self._running = np.empty(sum(sizes), dtype)
        self._new = np.empty_like(self._running)
        values: dict[str, int] = {}
        momenta: dict[str, float] = {}
        for array in walk(plan.layers, plan.sample):
            if isinstance(array.layer, BatchNorm2d):
                values[array.name] = prod(array.before[1:])
                momenta[array.name] = array.layer.momentum
        norms = [name.rpartition(".")[0] for name in self._arrays]
        self._values = [values[name] for name in norms]
        self._momentum = np.repeat([momenta[name] for name in norms], sizes).astype(dtype)
        self._factors: dict[int, np.ndarray] = {}

    def load(self, weights: dict[str, np.ndarray]) -> None:
        for name, place in zip(self._arrays, self._places, strict=True):
            self._running[place] = weights[name]

    def move(self, batch: int) -> None:
        """Take in the statistics of the batch that was just computed, of `batch` samples."""
        if self._arrays:
            self.take(batch, np.concatenate(self._memory, out=self._new))

    def last(self) -> np.ndarray:
        """Return a copy of those of the batch that went back last; the engine must be idle."""
        return np.concatenate([*self._memory, self._new[:0]])

    def take(self, batch: int, new: np.ndarray) -> None:
        """Take in those of a batch of `batch` samples."""
        if batch not in self._factors:
            self._factors[batch] = self._sample_factor(batch)
        np.multiply(new, self._factors[batch], out=self._new)
        self._new -= self._running
        self._new *= self._momentum
        self._running += self._new

    def _sample_factor(self, batch: int) -> np.ndarray:
        """Return, per entry, n / (n - 1) for a variance and 1 for a mean."""
        factor = np.ones_like(self._running)
        for name, place, values in zip(self._arrays, self._places, self._values, strict=True):
            if name.endswith("running_var"):
                factor[place] = batch * values / max(1, batch * values - 1)
        return factor

    def show(self) -> None:
        """Give MXNet the running statistics, which it uses in prediction."""
        for array, place in zip(self._arrays.values(), self._places, strict=True):
            array[:] = self._running[place]

    def copies(self) -> dict[str, np.ndarray]:
        return {n: self._running[p] for n, p in zip(self._arrays, self._places, strict=True)}
