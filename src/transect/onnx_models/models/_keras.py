"""What a Keras model computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from transect.onnx_models.models import Arrays, Built


def built_in_keras(make: Callable[[], Any], inputs: Arrays, calibration: Arrays, outputs: tuple[str, ...]) -> Built:
    """Make the model twice, with float64 and with float32 as Keras' default; run both."""
    import keras

    from transect.training.frameworks._keras_model import configure

    def made(floats: str) -> Any:
        configure(keras, floats, "channels_last")
        # The policy of layers is made once from the default number, and stays.
        keras.config.set_dtype_policy(floats)
        return make()

    exact = _run(made("float64"), inputs, "float64")
    model = made("float32")
    return Built(
        model=model,
        inputs=inputs,
        calibration=calibration,
        outputs=dict(zip(outputs, _run(model, inputs, "float32"), strict=True)),
        exact=dict(zip(outputs, exact, strict=True)),
    )


def _run(model: Any, inputs: Arrays, floats: str) -> list[np.ndarray]:
    import keras

    given = [keras.ops.convert_to_tensor(x.astype(floats) if x.dtype.kind == "f" else x) for x in inputs.values()]
    found = model(given if len(given) > 1 else given[0], training=False)
    listed = found if isinstance(found, (list, tuple)) else (found,)
    return [np.array(keras.ops.convert_to_numpy(output)) for output in listed]
