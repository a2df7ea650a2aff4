"""What a Gluon net computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from transect.onnx_models.models import Arrays, Built


def built_in_mxnet(
    make: Callable[[], tuple[Any, Arrays]], inputs: Arrays, calibration: Arrays, outputs: tuple[str, ...]
) -> Built:
    """Make the net twice, in float64 and float32; `make` also gives weights by Gluon's names."""
    _, exact = _run(make, inputs, "float64")
    net, found = _run(make, inputs, "float32")
    return Built(
        model=net,
        inputs=inputs,
        calibration=calibration,
        outputs=dict(zip(outputs, found, strict=True)),
        exact=dict(zip(outputs, exact, strict=True)),
    )


def _run(make: Callable[[], tuple[Any, Arrays]], inputs: Arrays, floats: str) -> tuple[Any, list[np.ndarray]]:
    import mxnet as mx

    net, weights = make()
    net.initialize()
    net.cast(floats)
    for name, parameter in net.collect_params().items():
        parameter.set_data(mx.nd.array(weights[name], dtype=floats))
    given = [mx.nd.array(x, dtype=floats if x.dtype.kind == "f" else x.dtype) for x in inputs.values()]
    found = net(*given)
    listed = found if isinstance(found, (list, tuple)) else (found,)
    return net, [output.asnumpy() for output in listed]
