"""Whether a runner's outputs are those of the framework."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from transect.onnx_models.comparison import other_kind
from transect.onnx_models.tensors import NoTensor

# Outputs below this share of the largest one are set against that share: a logit that happens
# to lie near zero has no meaningful relative error.
RELATIVE_FLOOR = 1e-3


@dataclass(slots=True)
class Verdict:
    """The largest differences over all outputs, and what is wrong, if anything.

    `top1_agreement` is the share of rows with the same largest element, of outputs (n, classes).
    `nonfinite` counts NaN and infinities where the framework has none, or another one.
    """

    wrong: list[str] = field(default_factory=list)
    max_abs_difference: float = 0.0
    max_rel_difference: float = 0.0
    top1_agreement: float | None = None
    nonfinite: int = 0
    compared: int = 0

    def metrics(self) -> dict[str, float | None]:
        """Return metrics by name: none where no tensor was compared."""
        if not self.compared:
            return {}
        return {
            "max_abs_difference": self.max_abs_difference,
            "max_rel_difference": self.max_rel_difference,
            "top1_agreement": self.top1_agreement,
            "nonfinite_outputs": self.nonfinite,
        }


Tensors = Mapping[str, np.ndarray | NoTensor]


def judge(
    found: Tensors,
    expected: Tensors,
    tolerance: float | Mapping[str, float],
    mean_tolerance: Mapping[str, float] | None = None,
) -> Verdict:
    """Compare each expected output by its name; `tolerance` is one number, or one per output.

    Of floating-point outputs it is the largest absolute difference, and `mean_tolerance` the mean one
    of the outputs that have an entry. Of others, texts included, `tolerance` is the share of
    elements that may differ: 0 but for what a lower precision decides. Of an output that
    is no tensor only the kind is compared: a sequence where a map is expected is wrong, as is a tensor.
    """
    verdict = Verdict()
    for name, wanted in expected.items():
        got = found.get(name)
        if got is None:
            verdict.wrong.append(f"output '{name}' is missing")
        elif mismatch := other_kind(name, got, wanted):
            verdict.wrong.append(mismatch)
        elif isinstance(got, np.ndarray) and isinstance(wanted, np.ndarray):
            verdict.compared += 1
            limit = tolerance if isinstance(tolerance, (int, float)) else tolerance.get(name, 0.0)
            _compare(verdict, name, got, wanted, float(limit), (mean_tolerance or {}).get(name))
    return verdict


def _compare(
    verdict: Verdict, name: str, got: np.ndarray, wanted: np.ndarray, limit: float, mean_limit: float | None
) -> None:
    if not np.issubdtype(wanted.dtype, np.floating) and wanted.dtype.name != "bfloat16":
        differing = int((got != wanted).sum())
        if differing > limit * wanted.size:
            verdict.wrong.append(f"output '{name}' differs in {differing} of {wanted.size} elements")
        return
    if not wanted.size:
        return
    got64, wanted64 = got.astype(np.float64), wanted.astype(np.float64)
    same = (got64 == wanted64) | (np.isnan(got64) & np.isnan(wanted64))
    nonfinite = int((~same & ~(np.isfinite(got64) & np.isfinite(wanted64))).sum())
    finite = np.isfinite(got64) & np.isfinite(wanted64)
    apart = np.where(finite, np.abs(np.where(finite, got64 - wanted64, 0.0)), 0.0)
    size = np.abs(np.where(np.isfinite(wanted64), wanted64, 0.0))
    floor = max(RELATIVE_FLOOR * float(size.max()), float(np.finfo(np.float32).tiny))
    largest = float(apart.max())
    verdict.max_abs_difference = max(verdict.max_abs_difference, largest)
    relative = float((apart / np.maximum(size, floor)).max())
    verdict.max_rel_difference = max(verdict.max_rel_difference, relative)
    verdict.nonfinite += nonfinite
    if wanted.ndim == 2 and wanted.shape[1] > 1 and verdict.top1_agreement is None:
        verdict.top1_agreement = float((got64.argmax(axis=1) == wanted64.argmax(axis=1)).mean())
    if nonfinite:
        verdict.wrong.append(f"output '{name}' has {nonfinite} NaN or infinite elements too many or too few")
    if largest > limit:
        verdict.wrong.append(
            f"output '{name}' differs from the framework's by up to {largest:.3g}, the tolerance is {limit:.3g}"
        )
    mean = float(apart.mean())
    if mean_limit is not None and mean > mean_limit:
        verdict.wrong.append(
            f"output '{name}' differs from the expected by {mean:.3g} on average, the tolerance is {mean_limit:.3g}"
        )
