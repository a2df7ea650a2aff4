"""Float32 ONNX files in lower precisions, by the tools that come with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

_CALIBRATION_ROWS, _CALIBRATION_BATCH, _CALIBRATION_NUMBERS = 128, 16, 2**21


def lower(
    path: Path, out: Path, precision: str, calibration: dict[str, np.ndarray], *, batched: bool
) -> dict[str, Any]:
    """Convert the file at `path` into `out`; return how, in words and numbers.

    Integers are unsigned, of weights and activations: products of unsigned by signed bytes saturate
    on processors without VNNI, and give other results there. Raises what the converter raises.
    """
    import onnx

    model = onnx.load(str(path))
    # What exporters note of shapes in between no longer holds when nodes are replaced.
    del model.graph.value_info[:]
    # Older exporters list weights among the inputs, which keep their type.
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in weights]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    if precision == "fp16":
        from onnxruntime.transformers.float16 import convert_float_to_float16

        onnx.save(convert_float_to_float16(model, keep_io_types=True), str(out))
        return {"converter": "onnxruntime.transformers.float16, inputs and outputs stay float32"}
    from onnxruntime import quantization

    unsigned = quantization.QuantType.QUInt8
    if precision == "int8-dynamic":
        quantization.quantize_dynamic(model, str(out), weight_type=unsigned)
        return {"converter": "onnxruntime.quantization.quantize_dynamic, uint8 weights"}
    quantization.quantize_static(
        model,
        str(out),
        _reader(calibration, batched=batched),
        activation_type=unsigned,
        weight_type=unsigned,
        quant_format=quantization.QuantFormat.QDQ,
    )
    return {
        "converter": "onnxruntime.quantization.quantize_static, QDQ, uint8 weights and activations, "
        "ranges from least to largest",
        "calibration_rows": len(next(iter(calibration.values()))) if batched else 1,
    }


def calibration_rows(samples: Any) -> np.ndarray:
    """Return the first rows of the training part, float32: at most 128, or 8 MB of numbers."""
    width = max(1, int(np.prod(samples.shape[1:])))
    rows = min(_CALIBRATION_ROWS, max(2, _CALIBRATION_NUMBERS // width), len(samples))
    return np.ascontiguousarray(samples[:rows], dtype=np.float32)


def _reader(calibration: dict[str, np.ndarray], *, batched: bool) -> Any:
    from onnxruntime.quantization import CalibrationDataReader

    def parts() -> Iterator[dict[str, np.ndarray]]:
        if not batched:
            yield calibration
            return
        for start in range(0, len(next(iter(calibration.values()))), _CALIBRATION_BATCH):
            cut = slice(start, start + _CALIBRATION_BATCH)
            yield {name: array[cut] for name, array in calibration.items()}

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        """Gives one part after another, then None."""

        def __init__(self) -> None:
            self.left = parts()

        def get_next(self) -> dict[str, np.ndarray] | None:
            return next(self.left, None)

    return Reader()


def is_lowered(path: Path, precision: str) -> bool:
    """Whether any node of the file computes in, or any weight is kept in, the lower precision."""
    import onnx

    graph = onnx.load(str(path)).graph
    if precision == "fp16":
        half = onnx.TensorProto.FLOAT16
        casts = (node for node in graph.node if node.op_type == "Cast")
        return any(tensor.data_type == half for tensor in graph.initializer) or any(
            a.name == "to" and a.i == half for node in casts for a in node.attribute
        )
    words = ("Quantize", "Integer", "QLinear")
    return any(word in node.op_type for node in graph.node for word in words)
