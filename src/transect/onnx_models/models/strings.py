"""scikit-learn's own kind of model, with texts at its ends."""

from __future__ import annotations

from transect.onnx_models.models import MODELS, Built, MadeModel
from transect.onnx_models.models._texts import texts_classifier


@MODELS.register("strings")
class Strings(MadeModel):
    """Text and numbers in, a text and its probabilities out: one-hot codes and a logistic regression."""

    frameworks = ("sklearn",)

    def build(self, framework: str, exporter: str, seed: int) -> Built:
        """Draw rows, and train."""
        return texts_classifier(seed, zipmap=False)


@MODELS.register("strings-zipmap")
class StringsZipmap(Strings):
    """The same with the converter's own default: probabilities are a sequence of maps, no tensor."""

    def build(self, framework: str, exporter: str, seed: int) -> Built:
        """Draw rows, and train."""
        return texts_classifier(seed, zipmap=True)
