"""Axes that may vary: a trace that holds for some lengths only is refused."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

from transect.domain.errors import BadInput
from transect.portable_step.diagnosis import OperatorError, Places, source_line

if TYPE_CHECKING:
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

# Lengths for which a condition must hold. Two is the least: at one, tensors broadcast.
LENGTHS = (*range(2, 40), 63, 64, 65, 127, 128, 129, 256, 500, 1000, 1024, 4096, 65536)


def watched_lengths(places: Places) -> ShapeEnv:
    """Return torch's book of symbolic lengths, which notes where a condition on them was met."""
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    class Watched(ShapeEnv):  # type: ignore[misc]
        where: list[str]
        unknown: list[str]

        def create_unbacked_symint(self, *args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)
            self.unknown.append(place_of(frame, running_operator(frame)))
            return super().create_unbacked_symint(*args, **kwargs)

        def evaluate_expr(self, *args: Any, **kwargs: Any) -> Any:
            known = len(self.guards)
            result = super().evaluate_expr(*args, **kwargs)
            if len(self.guards) > known:
                self.where += [place_of(sys._getframe(1))] * (len(self.guards) - known)
            return result

    def place_of(frame: FrameType, *more: str) -> str:
        place = ", ".join(part for part in (places.here(), source_line(frame), *more) if part)
        # In the backward pass there is no place; the operator will tell it.
        return place or running_operator(frame)

    lengths = Watched()
    lengths.where, lengths.unknown = [], []
    return lengths


def running_operator(frame: FrameType | None) -> str:
    """Name the operator of ATen that is being traced in a running frame or above it."""
    from torch._ops import OpOverload

    while frame is not None:
        function = frame.f_locals.get("func")
        if isinstance(function, OpOverload):
            return str(function)
        frame = frame.f_back
    return ""


def refuse_fixed(lengths: Any, symbols: Mapping[str, Any]) -> None:
    """Raise an error when a condition that the trace relied on fails for some lengths.

    A length that only the values of a tensor tell is refused too.
    """
    for place in lengths.unknown:
        raise (OperatorError if place.startswith("aten.") else BadInput)(
            f"{place or 'module'}: how many elements it gives depends on the values of a tensor"
        )
    names = {symbol: name for name, symbol in symbols.items()}
    for number, guard in enumerate(lengths.guards):
        cases = [dict.fromkeys(names, length) for length in LENGTHS]
        cases += [{symbol: length if symbol == one else 7 for symbol in names} for one in names for length in LENGTHS]
        if all(guard.expr.subs(case) == True for case in cases):  # noqa: E712 - sympy's truth
            continue
        text = str(guard.expr)
        for symbol, name in names.items():
            text = text.replace(str(symbol), name)
        place = lengths.where[number] if number < len(lengths.where) else ""
        raise (OperatorError if place.startswith("aten.") else BadInput)(
            f"{place or 'module'}: it works for some lengths only, those with {text}; expected any "
            f"length of {', '.join(names.values())} from 2 on, or axes named by `dynamic`"
        )
