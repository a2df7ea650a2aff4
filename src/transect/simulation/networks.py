"""Networks as alpha and beta, and which ranks they join.

The model is that of Hockney, "The communication challenge for MPP", Parallel Computing 20(3), 1994:
a message of n bytes takes t(n) = alpha + n beta. Adding up n received bytes takes n gamma more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Seconds at which each rank is done with what came before, shape (ranks,).
Clocks = NDArray[np.float64]
Ranks = NDArray[np.intp]

# A relative scatter about the line above which the line does not describe the network.
POOR = 0.2
_TOLERANCE = 1e-10


@dataclass(frozen=True, slots=True)
class Network:
    """`alpha_s` of each message, `beta_s_per_byte` of what it carries, `gamma_s_per_byte` of its sum."""

    alpha_s: float
    beta_s_per_byte: float
    gamma_s_per_byte: float = 0.0

    def message_s(self, size: float) -> float:
        """Return the seconds of one message of `size` bytes."""
        return self.alpha_s + self.beta_s_per_byte * size


@dataclass(frozen=True, slots=True)
class Machine:
    """`ranks` in blocks of `ranks_per_node`: `inside` joins those of a node, `between` the others.

    `links_per_node`: how many ranks of a node can send to other nodes at full rate at once; more
    share. None: each has a link of its own. Links carry both directions at once.
    """

    ranks: int
    inside: Network
    between: Network
    ranks_per_node: int = 1
    links_per_node: int | None = None

    @staticmethod
    def flat(ranks: int, network: Network) -> Machine:
        """Return one on which all ranks are equally far from each other."""
        return Machine(ranks, network, network)

    @property
    def gamma_s_per_byte(self) -> float:
        """Seconds to add one received byte: a rank's own work, wherever the byte came from."""
        return self.inside.gamma_s_per_byte

    @property
    def nodes(self) -> int:
        """How many nodes the ranks fill."""
        return -(-self.ranks // self.ranks_per_node)

    def strided(self, stride: int) -> Machine:
        """Return what joins every `stride`-th rank: those that hold the same stage of a pipeline.

        Their groups send at the same time, so each has its share of a node's links alone.
        """
        on_node = max(1, self.ranks_per_node // stride)
        links = None
        if self.links_per_node is not None:
            sharing = min(stride, self.ranks_per_node)
            if sharing > self.links_per_node:
                slower = self.between.beta_s_per_byte * sharing / self.links_per_node
                between = Network(self.between.alpha_s, slower, self.between.gamma_s_per_byte)
                return Machine(self.ranks // stride, self.inside, between, on_node, 1)
            links = max(1, self.links_per_node // sharing)
        return Machine(self.ranks // stride, self.inside, self.between, on_node, links)

    def message_s(self, sources: Ranks, targets: Ranks, size: float) -> Clocks:
        """Return the seconds of messages of `size` bytes that are sent at once, one for each pair."""
        if self.inside == self.between and self.links_per_node is None:
            return np.full(sources.shape, self.inside.message_s(size))
        from_node, to_node = sources // self.ranks_per_node, targets // self.ranks_per_node
        away = from_node != to_node
        between = np.full(sources.shape, self.between.message_s(size))
        if self.links_per_node is not None:
            sent = np.bincount(from_node[away], minlength=self.nodes)
            got = np.bincount(to_node[away], minlength=self.nodes)
            crowd = np.maximum(sent[from_node], got[to_node]) / self.links_per_node
            between += self.between.beta_s_per_byte * size * np.maximum(0.0, crowd - 1)
        return np.where(away, between, self.inside.message_s(size))

    def mirrored_s(self, distance: int, size: float) -> float | None:
        """Return `message_s` where every rank swaps with the one whose number differs in one bit.

        None where that is not the same for all of them.
        """
        if self.ranks & (self.ranks - 1) or self.ranks_per_node & (self.ranks_per_node - 1):
            return None
        if distance < self.ranks_per_node:
            return self.inside.message_s(size)
        crowd = max(1.0, self.ranks_per_node / (self.links_per_node or self.ranks_per_node))
        return self.between.alpha_s + self.between.beta_s_per_byte * size * crowd


@dataclass(frozen=True, kw_only=True, slots=True)
class AlphaBeta:
    """The model t(n) = alpha + n / beta of `points` median one-way times.

    `alpha_s` in s and `beta` in B/s, each with its standard error. `residual` is the root of the
    mean square of log(t / model), corrected for the two parameters: a relative deviation when it is
    small. `worst` is the t / model farthest from 1, at `worst_size` bytes.
    """

    alpha_s: float
    alpha_error_s: float
    beta: float
    beta_error: float
    residual: float
    worst: float
    worst_size: int
    points: int

    @property
    def poor(self) -> bool:
        """Whether one line does not describe the network."""
        return self.residual > POOR

    @property
    def network(self) -> Network:
        """The same for a simulation."""
        return Network(self.alpha_s, 1 / self.beta)

    def time(self, size: float) -> float:
        """Return the model's one-way time in s of `size` bytes."""
        return self.alpha_s + size / self.beta

    @property
    def remark(self) -> str:
        """Say why the fit is poor; empty when it is not."""
        if not self.poor:
            return ""
        return (
            f"poor fit: {self.worst_size} B take {self.worst:.2g} times the line's time; a change "
            "of protocol (eager, rendezvous) or a link that lets bursts through bends the line"
        )


def fit_alpha_beta(points: Sequence[tuple[float, float]]) -> AlphaBeta | None:
    """Fit (bytes, s) by least squares of log t: an error counts by its share of the time.

    For small errors that is least squares with weights 1 / t^2. Unweighted, the largest messages
    would decide alone; with these weights and large errors, a line far below its points would count
    as no more than 100 % off. Levenberg-Marquardt in (log alpha, log 1/beta); standard
    errors are those of the linearised problem, from the scatter about the line. None for fewer than
    three points, one size, or a time or size that is not positive and finite (no bytes are a size).
    """
    from scipy.optimize import least_squares

    sizes = {size for size, _ in points}
    wrong = any(not (0 < time < np.inf and 0 <= size < np.inf) for size, time in points)
    if len(points) < 3 or len(sizes) < 2 or wrong:
        return None
    size, time = (np.array(column, dtype=float) for column in zip(*points, strict=True))
    start = np.log([time.min(), (time / np.maximum(size, 1)).min()])
    fit = least_squares(
        _excess, start, jac=_slopes, method="lm", args=(size, time), ftol=_TOLERANCE, xtol=_TOLERANCE, gtol=_TOLERANCE
    )
    slopes = _slopes(fit.x, size, time)
    variance = float(fit.fun @ fit.fun) / (len(points) - 2)
    errors = np.sqrt(variance * np.diag(np.linalg.pinv(slopes.T @ slopes)))
    alpha, slope = (float(value) for value in np.exp(fit.x))
    worst = int(np.abs(fit.fun).argmax())
    return AlphaBeta(
        alpha_s=alpha,
        alpha_error_s=alpha * float(errors[0]),
        beta=1 / slope,
        beta_error=float(errors[1]) / slope,
        residual=float(np.sqrt(variance)),
        worst=float(np.exp(-fit.fun[worst])),
        worst_size=int(size[worst]),
        points=len(points),
    )


def _parts(logarithms: Clocks, size: Clocks) -> Clocks:
    """Return latency and transfer time of the model, shape (points, 2), in s."""
    latency, per_byte = np.exp(logarithms)
    return np.column_stack([np.full_like(size, latency), size * per_byte])


def _excess(logarithms: Clocks, size: Clocks, time: Clocks) -> Clocks:
    """Return log(model / t), shape (points,)."""
    return np.asarray(np.log(_parts(logarithms, size).sum(axis=1) / time), dtype=float)


def _slopes(logarithms: Clocks, size: Clocks, time: Clocks) -> Clocks:
    """Return the derivatives of `_excess`, shape (points, 2)."""
    parts = _parts(logarithms, size)
    return np.asarray(parts / parts.sum(axis=1)[:, None], dtype=float)
