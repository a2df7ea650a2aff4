"""A classifier of rows that hold a text and numbers, trained by scikit-learn on drawn rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.onnx_models.models import Built, drawing
from transect.onnx_models.tensors import NoTensor

_COLOURS = ("red", "green", "blue", "grey-brown", "türkis", "")
_CLASSES = ("apple", "leaf", "sky")
_ROWS, _NUMBERS = 128, 3


def texts_classifier(seed: int, *, zipmap: bool) -> Built:
    """Train on rows of another draw than those that are compared.

    With `zipmap` the probabilities are what the converter makes by itself: a map for each row.
    scikit-learn computes in float64 only.
    """
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
            "probabilities": NoTensor("sequence(map(string,float32))") if zipmap else chances.astype(np.float32),
        },
        exact=None,
        options={} if zipmap else {"zipmap": False},
    )
