"""Methods of federated learning straight from their papers, for clients that have as many rows each.

w is a model, g(w, i, k) the gradient of client i in step k of its turn. Each yields the server's model and what clients
keep after a round of the clients S, of m. Tensors of `fedper` that stay are those from `HEAD` on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

RATE, STEPS, HEAD = 0.05, 3, 640

Gradient = Callable[[np.ndarray, int, int], np.ndarray]


def _plain(start: np.ndarray, rounds: Iterable[list[int]], g: Gradient, m: int, **option: float) -> Iterator[Any]:
    x = start
    for S in rounds:
        ends = []
        for i in S:
            y = x
            for k in range(STEPS):
                y = y - RATE * g(y, i, k)
            ends.append(y)
        x = np.mean(ends, axis=0)
        yield x, {}


def _fedprox(start: np.ndarray, rounds: Iterable[list[int]], g: Gradient, m: int, mu: float) -> Iterator[Any]:
    x = start
    for S in rounds:
        ends = []
        for i in S:
            y = x
            for k in range(STEPS):
                y = y - RATE * (g(y, i, k) + mu * (y - x))
            ends.append(y)
        x = np.mean(ends, axis=0)
        yield x, {}


def _scaffold(start: np.ndarray, rounds: Iterable[list[int]], g: Gradient, m: int, **option: float) -> Iterator[Any]:
    x, c, control = start, np.zeros_like(start), {i: np.zeros_like(start) for i in range(m)}
    for S in rounds:
        moves, changes = [], []
        for i in S:
            y = x
            for k in range(STEPS):
                y = y - RATE * (g(y, i, k) - control[i] + c)
            following = control[i] - c + (x - y) / (STEPS * RATE)
            moves.append(y - x)
            changes.append(following - control[i])
            control[i] = following
        x = x + np.mean(moves, axis=0)
        c = c + len(S) / m * np.mean(changes, axis=0)
        yield x, control


def _feddyn(start: np.ndarray, rounds: Iterable[list[int]], g: Gradient, m: int, alpha: float) -> Iterator[Any]:
    theta, h, last = start, np.zeros_like(start), {i: np.zeros_like(start) for i in range(m)}
    for S in rounds:
        ends = []
        for i in S:
            y = theta
            for k in range(STEPS):
                y = y - RATE * (g(y, i, k) - last[i] + alpha * (y - theta))
            last[i] = last[i] - alpha * (y - theta)
            ends.append(y)
        h = h - alpha / m * sum(y - theta for y in ends)
        theta = np.mean(ends, axis=0) - h / alpha
        yield theta, last


def _fedper(start: np.ndarray, rounds: Iterable[list[int]], g: Gradient, m: int, **option: float) -> Iterator[Any]:
    base, heads = start[:HEAD], dict.fromkeys(range(m), start[HEAD:])
    for S in rounds:
        bases = []
        for i in S:
            y = np.concatenate([base, heads[i]])
            for k in range(STEPS):
                y = y - RATE * g(y, i, k)
            heads[i] = y[HEAD:]
            bases.append(y[:HEAD])
        base = np.mean(bases, axis=0)
        kept = {i: np.concatenate([np.zeros(HEAD), head]) for i, head in heads.items()}
        yield np.concatenate([base, start[HEAD:]]), kept


def _ditto(start: np.ndarray, rounds: Iterable[list[int]], g: Gradient, m: int, mu: float) -> Iterator[Any]:
    w, own = start, dict.fromkeys(range(m), start)
    for S in rounds:
        ends = []
        for i in S:
            y = w
            for k in range(STEPS):
                y = y - RATE * g(y, i, k)
                own[i] = own[i] - RATE * (g(own[i], i, k) + mu * (own[i] - w))
            ends.append(y)
        w = np.mean(ends, axis=0)
        yield w, own


PAPERS = {
    "plain": _plain,
    "fedprox": _fedprox,
    "scaffold": _scaffold,
    "feddyn": _feddyn,
    "fedper": _fedper,
    "ditto": _ditto,
}
