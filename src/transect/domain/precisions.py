"""Precisions: how numbers are kept, multiplied and added. The one table that all others follow.

A framework's `supports` says which of them it has; a name that is not here is an error of the study.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from transect.domain.errors import check_known, unknown_name
from transect.domain.names import only_meant

# Bytes of a number, and unit roundoff u = 2^-p of a significand of p bits, rounded to nearest
# (IEEE 754-2019, table 3.5; bfloat16: Intel, "BFLOAT16 hardware numerics definition", 2018).
_FORMATS = {"float64": (8, 2.0**-53), "float32": (4, 2.0**-24), "float16": (2, 2.0**-11), "bfloat16": (2, 2.0**-8)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Precision:
    """Formats by their names in torch and TensorFlow.

    `stored`: of weights, gradients and the optimiser's state. `multiplied`: what the operands of
    matrix products and convolutions are rounded to. `added`: in what their sums are kept.
    `array`: numpy's dtype of batches and gradients that go between numpy and a framework, as numpy
    has no bfloat16.
    """

    name: str
    stored: str
    multiplied: str
    added: str
    array: str
    # What people call it besides.
    others: tuple[str, ...] = ()

    @property
    def bytes_per_number(self) -> int:
        """Return the size of a weight, a gradient or a momentum in memory."""
        return _FORMATS[self.stored][0]

    @property
    def unit_roundoff(self) -> float:
        """Return u of the coarsest format that a number passes through."""
        return max(_FORMATS[name][1] for name in (self.stored, self.multiplied, self.added))


PRECISIONS = {
    precision.name: precision
    for precision in (
        Precision(
            name="fp64",
            stored="float64",
            multiplied="float64",
            added="float64",
            array="float64",
            others=("float64", "f64", "double"),
        ),
        Precision(
            name="fp32",
            stored="float32",
            multiplied="float32",
            added="float32",
            array="float32",
            others=("float32", "f32", "single"),
        ),
        Precision(
            name="fp16",
            stored="float16",
            multiplied="float16",
            added="float32",
            array="float32",
            others=("float16", "f16", "half"),
        ),
        Precision(
            name="bf16",
            stored="bfloat16",
            multiplied="bfloat16",
            added="float32",
            array="float32",
            others=("bfloat16",),
        ),
        # Weights and updates in float32, products in bfloat16: torch's and TensorFlow's autocast.
        Precision(
            name="amp-bf16",
            stored="float32",
            multiplied="bfloat16",
            added="float32",
            array="float32",
            others=("amp-bfloat16", "bf16-mixed", "mixed-bfloat16"),
        ),
    )
}


_CALLED = {precision.name: precision.others for precision in PRECISIONS.values()}


def named_precision(given: str) -> str:
    """Return the name that is meant by what a person has typed, as `Registry.named` does."""
    return only_meant(given, _CALLED)


def find_precision(name: str, where: str = "") -> Precision:
    """Return the precision of that name. Raises BadInput naming the known ones."""
    try:
        return PRECISIONS[name]
    except KeyError:
        raise unknown_name("precision", name, PRECISIONS, where, _CALLED) from None


def check_precisions(names: Iterable[str], where: str) -> None:
    """Raise BadInput for all unknown names; `where` is the study's file and key."""
    check_known("precision", names, PRECISIONS, where, _CALLED)
