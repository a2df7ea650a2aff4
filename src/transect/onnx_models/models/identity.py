"""The smallest model there is: what a call costs, without anything that is computed."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from transect.onnx_models.exporters import INPUT, OUTPUT
from transect.onnx_models.models import MODELS, Built, MadeModel, drawing

# Known to every runtime of the last years.
_OPSET, _IR_VERSION = 17, 8


class _Identity(MadeModel):
    """One Identity node."""

    numbers: ClassVar[int]

    frameworks = ("onnx",)

    def build(self, framework: str, exporter: str, seed: int) -> Built:
        """Draw the numbers that go through it."""
        from onnx import TensorProto, helper

        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [self.numbers]) for name in (INPUT, OUTPUT)]
        node = helper.make_node("Identity", [INPUT], [OUTPUT])
        graph = helper.make_graph([node], "identity", ends[:1], ends[1:])
        generator = drawing(seed, "identity")
        x, calibration = generator.standard_normal((2, self.numbers)).astype(np.float32)
        return Built(
            model=helper.make_model(
                graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION, producer_name="transect"
            ),
            inputs={INPUT: x},
            calibration={INPUT: calibration},
            outputs={OUTPUT: x},
            exact={OUTPUT: x},
            batched=False,
        )


@MODELS.register("identity-1")
class Identity1(_Identity):
    """One float32 number through one Identity node."""

    numbers = 1


@MODELS.register("identity-1k")
class Identity1k(_Identity):
    """1,000 float32 numbers through one Identity node."""

    numbers = 1_000


@MODELS.register("identity-1m")
class Identity1m(_Identity):
    """1,000,000 float32 numbers, 4 MB, through one Identity node."""

    numbers = 1_000_000
