"""scikit-learn's own kind of model, with texts at its ends."""

from __future__ import annotations

from transect.domain.cell import Cell
from transect.onnx_models.models import MODELS, Built, no_form
from transect.onnx_models.models._texts import texts_classifier


@MODELS.register("strings-zipmap")
class StringsZipmap:
    """The same with the converter's own default: probabilities are a sequence of maps, no tensor."""

    frameworks: tuple[str, ...] = ("sklearn",)

    def supports(self, cell: Cell) -> str | None:
        """scikit-learn alone takes texts."""
        return no_form(self, cell)

    def build(self, framework: str, exporter: str, seed: int) -> Built:
        """Draw rows, and train."""
        return texts_classifier(seed, zipmap=True)
