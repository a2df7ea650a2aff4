"""scikit-learn's own kind of model, with texts at its ends."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from transect.onnx_models.models import MODELS, Built, MadeModel, drawing
from transect.onnx_models.tensors import NoTensor

_COLOURS = ("red", "green", "blue", "grey-brown", "türkis", "")
_CLASSES = ("apple", "leaf", "sky")
_ROWS, _NUMBERS = 128, 3


@MODELS.register("strings")
class Strings(MadeModel):
    """Text and numbers in, a text and its probabilities out: one-hot codes and a logistic regression."""

    frameworks = ("sklearn",)
    # Whether probabilities are what the converter makes by itself: a map for each row.
    zipmap: ClassVar[bool] = False

    def build(self, framework: str, exporter: str, seed: int) -> Built:
        """Train on rows of another draw than those that are compared; scikit-learn computes in float64 only."""
        from sklearn.compose import ColumnTransformer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        generator = drawing(seed, "strings")

        def draw() -> tuple[np.ndarray, np.ndarray]:
            colours = generator.choice(np.array(_COLOURS, object), (_ROWS, 1))
            return colours, generator.normal(3.0, 2.0, (_ROWS, _NUMBERS)).astype(np.float32)

        def joined(rows: tuple[np.ndarray, np.ndarray]) -> Any:
            return np.concatenate([part.astype(object) for part in rows], axis=1)

        learned, compared, calibration = draw(), draw(), draw()
        label = np.array(_CLASSES, object)[generator.integers(len(_CLASSES), size=_ROWS)]
        columns = ColumnTransformer([("colour", OneHotEncoder(), [0]), ("size", StandardScaler(), [1, 2, 3])])
        model = make_pipeline(columns, LogisticRegression()).fit(joined(learned), label)
        chances = model.predict_proba(joined(compared))
        ends = ("colour", "size")
        return Built(
            model=model,
            inputs=dict(zip(ends, compared, strict=True)),
            calibration=dict(zip(ends, calibration, strict=True)),
            outputs={
                "label": model.predict(joined(compared)),
                "probabilities": NoTensor("sequence(map(string,float32))")
                if self.zipmap
                else chances.astype(np.float32),
            },
            exact=None,
            options={} if self.zipmap else {"zipmap": False},
        )


@MODELS.register("strings-zipmap")
class StringsZipmap(Strings):
    """The same with the converter's own default: probabilities are a sequence of maps, no tensor."""

    zipmap = True
