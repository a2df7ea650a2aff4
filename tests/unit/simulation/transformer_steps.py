"""Steps of transformers under tensor and pipeline parallelism, counted: for published times of large machines.

Layers and traffic are those of V. A. Korthikanti et al., "Reducing activation recomputation in large
transformer models", 2022 (arXiv 2205.05198), sections 3 to 5; the pipeline's time is that of
D. Narayanan et al., 2021 (arXiv 2104.04473), section 2.2.2: m micro-batches take m + (p - 1) / v turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_NUMBER = 2  # bytes: fp16
# What Megatron pads GPT's vocabulary to.
_VOCABULARY = 51_200
_Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Accelerator:
    """A device as its data sheet has it: FLOP/s of matrices, bytes/s of memory, of its node's links, of its network."""

    flops_per_s: float
    memory_bytes_per_s: float
    node_bytes_per_s: float
    network_bytes_per_s: float


# 80 GB, SXM: dense fp16, HBM2e, NVLink 3 in one direction, one HDR InfiniBand port.
A100 = Accelerator(flops_per_s=312e12, memory_bytes_per_s=2.039e12, node_bytes_per_s=300e9, network_bytes_per_s=25e9)


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """How much longer than on the data sheet: matrix products, memory traffic, messages in a node."""

    products: float = 1.0
    memory: float = 1.0
    messages: float = 1.0

    @property
    def vector(self) -> _Vector:
        """The three in the order of `Transformer.parts`."""
        return np.array([self.products, self.memory, self.messages])


@dataclass(frozen=True, kw_only=True, slots=True)
class Transformer:
    """A GPT, and how it was trained.

    `selective`: attention alone is computed twice, and what lies between the parallel products is cut
    along the sequence; else each layer is computed twice.
    """

    layers: int
    hidden: int
    ffn: int
    heads: int
    sequence: int
    tensor_parallel: int
    pipeline_parallel: int
    data_parallel: int
    global_batch: int
    micro_batch: int
    interleaving: int
    selective: bool

    def parts(self, on: Accelerator) -> tuple[_Vector, float]:
        """Return seconds of a step by what calibrates them, (products, memory, messages), and the rest."""
        micro = self.global_batch // self.micro_batch // self.data_parallel
        turns = micro + (self.pipeline_parallel - 1) / self.interleaving
        layer = self._layer(on) * self.layers / self.pipeline_parallel
        found = turns * layer + micro * self._head(on)
        # Adam in mixed precision reads and writes 32 bytes for a weight.
        found[1] += 32 * self._weights() / on.memory_bytes_per_s
        return found, self._passed(on, micro)

    def _product(self, m: int, n: int, k: int, on: Accelerator, count: int = 1) -> _Vector:
        """Return (products, memory) seconds of `count` matrix products."""
        moved = _NUMBER * (m * k + k * n + m * n)
        work = [2 * m * n * k / on.flops_per_s, moved / on.memory_bytes_per_s, 0.0]
        return np.array(work) * float(count)

    def _layer(self, on: Accelerator) -> _Vector:
        """Return what one layer does for one micro-batch, forwards and backwards."""
        rows, t = self.micro_batch * self.sequence, self.tensor_parallel
        h, f, head = self.hidden, self.ffn, self.hidden // self.heads
        own = self.micro_batch * self.heads // t
        linear = (
            self._product(rows, 3 * h // t, h, on)
            + self._product(rows, h, h // t, on)
            + self._product(rows, f // t, h, on)
            + self._product(rows, h, f // t, on)
        )
        attention = self._product(self.sequence, self.sequence, head, on, own)
        attention += self._product(self.sequence, head, self.sequence, on, own)
        # Two norms read and write, two dropouts with residual read two and a mask and write one.
        between = (2 * 4 + 2 * 7) * rows * h / (t if self.selective else 1)
        scores = 9 * own * self.sequence**2  # softmax in and out, dropout in and out, mask
        moved = np.array([0.0, (between + 4 * rows * f / t + scores) / on.memory_bytes_per_s, 0.0])
        again = linear + attention + moved
        if self.selective:
            again = attention + np.array([0.0, scores / on.memory_bytes_per_s, 0.0])
        # Gradients are added to ones of fp32: 8 bytes for each of 12 h h weights.
        summed = np.array([0.0, 8 * 12 * h * h / t / on.memory_bytes_per_s, 0.0])
        # Both passes have two all-reduces, and so has the second forward pass. Cut along the sequence
        # each is a gather and a scatter, and backward gathers two inputs more.
        messages = np.array([0.0, 0.0, (5 if self.selective else 6) * self._allreduce(on)])
        return np.asarray(3 * (linear + attention + moved) + again + summed + messages)

    def _allreduce(self, on: Accelerator) -> float:
        """Return the seconds in which a ring adds up one layer's outputs within a node."""
        t = self.tensor_parallel
        size = _NUMBER * self.micro_batch * self.sequence * self.hidden
        return 2 * (t - 1) / t * size / on.node_bytes_per_s

    def _head(self, on: Accelerator) -> _Vector:
        """Return the last stage's logits and loss of a micro-batch."""
        rows, own = self.micro_batch * self.sequence, _VOCABULARY // self.tensor_parallel
        loss = np.array([0.0, 22 * rows * own / on.memory_bytes_per_s, 2 * self._allreduce(on)])
        return np.asarray(3 * self._product(rows, own, self.hidden, on) + loss)

    def _weights(self) -> float:
        """Return the weights of the largest stage's rank."""
        own = 12 * self.hidden**2 * self.layers / self.pipeline_parallel
        return (own + _VOCABULARY * self.hidden) / self.tensor_parallel

    def _passed(self, on: Accelerator, micro: int) -> float:
        """Return the seconds of activations and their gradients between stages: sent and waited for."""
        if self.pipeline_parallel == 1:
            return 0.0
        size = _NUMBER * self.micro_batch * self.sequence * self.hidden / self.tensor_parallel
        count = 2 * micro * self.interleaving + 2 * (self.pipeline_parallel - 1)
        return count * size / on.network_bytes_per_s

    def step_s(self, on: Accelerator, calibration: Calibration) -> float:
        """Return the seconds of a step."""
        parts, rest = self.parts(on)
        return float(parts @ calibration.vector) + rest


def calibrate(models: Sequence[Transformer], step_s: Sequence[float], on: Accelerator) -> Calibration:
    """Return what fits measured steps best, by least squares of relative errors; none is negative."""
    from scipy.optimize import nnls

    parts, rest = zip(*(model.parts(on) for model in models), strict=True)
    measured = np.array(step_s)
    matrix = np.array(parts) / measured[:, None]
    found, _ = nnls(matrix, (measured - np.array(rest)) / measured)
    return Calibration(products=found[0], memory=found[1], messages=found[2])


def held_out_errors(
    models: Sequence[Transformer], step_s: Sequence[float], groups: Sequence[str], on: Accelerator
) -> _Vector:
    """Return predicted over measured less one, each predicted from all times of other groups alone."""
    errors = np.empty(len(models))
    for group in dict.fromkeys(groups):
        others = [i for i, name in enumerate(groups) if name != group]
        fitted = calibrate([models[i] for i in others], [step_s[i] for i in others], on)
        for i, name in enumerate(groups):
            if name == group:
                errors[i] = models[i].step_s(on, fitted) / step_s[i] - 1
    return errors
