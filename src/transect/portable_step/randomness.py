"""Random masks from integers alone: the same in the graph, in torch, and in every language.

A mask follows from the seed, the number of the update, the micro-batch, the place in the module
and the element's index. Only Add, Mul and Mod of int64 are used: every execution provider has them
(CUDA has no bit operators), and no product reaches 2^63.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from transect.domain.errors import BadInput

if TYPE_CHECKING:
    import torch

# Hashes lie in [0, PRIME), keys and indices in [0, BOUND).
PRIME, BOUND = 2**31 - 1, 2**30
# Two primes: seeds that agree modulo both, 2^60 apart, are one seed.
SEED_MODULI = (2**30 - 35, 2**30 - 41)
# Fractional bits of the roots of the first primes: numbers that nobody chose.
_PRIMES = ((2, 3, 5), (7, 11, 13), (17, 19, 23), (29, 31, 37))
KEYS = tuple(tuple(math.isqrt(p << 60) % BOUND for p in triple) for triple in _PRIMES)


@dataclass(slots=True)
class Draws:
    """What masks follow from, and how many were drawn. `seed`, `step`, `micro`: int64 scalars.

    Without `micro` they are those of the first micro-batch.
    """

    seed: Any
    step: Any
    micro: Any
    places: int = 0
    closed: bool = False
    _base: Any = None

    def keys(self) -> torch.Tensor:
        """Return the three keys of the next place."""
        import torch

        if self.closed:
            raise BadInput(
                "dropout: a mask is drawn while gradients are taken, as activation checkpointing "
                "does; expected every mask in the forward pass"
            )
        if self._base is None:
            self._base = _base(self.seed, self.step, self.micro)
        place = torch.arange(3 * self.places, 3 * self.places + 3)
        self.places += 1
        return _scramble(place, self._base, *KEYS[0][1:]) % BOUND


_CURRENT: contextvars.ContextVar[Draws | None] = contextvars.ContextVar("draws", default=None)


@contextlib.contextmanager
def drawing(draws: Draws) -> Iterator[Draws]:
    """Let masks follow from these numbers."""
    token = _CURRENT.set(draws)
    try:
        yield draws
    finally:
        _CURRENT.reset(token)


def close_draws() -> None:
    """Refuse masks from here on: the forward pass is over."""
    if draws := _CURRENT.get():
        draws.closed = True


def current() -> Draws:
    """Return what masks follow from now; raises BadInput where nothing is to be drawn."""
    draws = _CURRENT.get()
    if draws is None:
        raise BadInput("a random number is drawn in evaluation mode, expected none there")
    return draws


def kept(like: torch.Tensor, drop: float) -> torch.Tensor:
    """Return which elements stay, a bool tensor of the shape of `like`; `drop` is a probability."""
    import torch

    first, second, third = current().keys().split(1)
    index = torch.arange(like.numel()).reshape(like.shape)
    return _scramble(index, first, second, third) >= round(drop * PRIME)


def reference_masks(seed: int, step: int, micro: int = 0) -> contextlib.AbstractContextManager[Draws]:
    """Make eager torch on the CPU draw the masks of the step that follows `step` updates.

    For comparisons: torch's own generator draws others.
    """
    import torch

    numbers = (torch.tensor(number, dtype=torch.int64) for number in (seed, step, micro))
    return _eager(Draws(*numbers))


@contextlib.contextmanager
def _eager(draws: Draws) -> Iterator[Draws]:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    aten = torch.ops.aten

    class Masks(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is aten.bernoulli_.float:
                keep = args[1] if len(args) > 1 else 0.5
                return args[0].copy_(kept(args[0], 1 - keep))
            if func is aten.native_dropout.default and args[2]:
                mask = kept(args[0], args[1])
                return args[0] * mask / (1 - args[1]), mask
            return func(*args, **(kwargs or {}))

    with drawing(draws), Masks():
        yield draws


def _base(seed: torch.Tensor, step: torch.Tensor, micro: torch.Tensor | None) -> torch.Tensor:
    """Return one number below BOUND for all of a micro-batch: a sum of scrambled parts."""
    import torch

    counters = [step] if micro is None else [step, micro]
    parts = torch.cat(
        [torch.remainder(seed.reshape(1), torch.tensor(SEED_MODULI)), torch.stack(counters) % SEED_MODULI[0]]
    )
    first, second, third = torch.tensor(KEYS[: len(counters) + 2]).T
    total = _scramble(parts, first, second, third).sum()
    return (total + _scramble(0, *KEYS[3]) if micro is None else total) % BOUND


def _scramble(value: Any, first: Any, second: Any, third: Any) -> Any:
    """Return a polynomial of degree 6 in `value` over the field of PRIME, with keyed coefficients.

    All arguments in [0, BOUND): a < 2^31, b (a + second) < 2^31 * 1.5 * 2^31, and so on: no product
    reaches 2^63. Degree 3 would show: four results in a row then have a small linear relation.
    """
    a = value + first
    b = (a * a) % PRIME
    c = (b * (a + second)) % PRIME
    return (c * (c + third)) % PRIME
