"""scikit-learn's own kind of model, with texts at its ends."""

from __future__ import annotations

from transect.domain.cell import Cell
from transect.onnx_models.models import MODELS, Built, no_form
from transect.onnx_models.models._texts import texts_classifier


@MODELS.register("strings")
class Strings:
    """Text and numbers in, a text and its probabilities out: one-hot codes and a logistic regression."""

    frameworks: tuple[str, ...] = ("sklearn",)

    def supports(self, cell: Cell) -> str | None:
        """scikit-learn alone takes texts."""
        return no_form(self, cell)

    def build(self, framework: str, exporter: str, seed: int) -> Built:
        """Draw rows, and train."""
        return texts_classifier(seed, zipmap=False)
