"""The evaluator that belongs to ONNX itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from transect.onnx_models.loaders import LOADERS, Compute


@LOADERS.register("onnx-reference")
class OnnxReference:
    """`onnx.reference.ReferenceEvaluator`: numpy, operator by operator, as the standard says."""

    environment = "import-others"
    rows: int | None = None
    stand_ins: Mapping[str, str] = {}

    def load(self, path: Path) -> Compute:
        """Interpret the graph."""
        from onnx.reference import ReferenceEvaluator

        evaluator = ReferenceEvaluator(str(path))
        return lambda inputs: evaluator.run(None, dict(inputs))
