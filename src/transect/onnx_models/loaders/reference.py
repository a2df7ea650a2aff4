"""The evaluator that belongs to ONNX itself."""

from __future__ import annotations

from pathlib import Path

from transect.onnx_models.loaders import LOADERS, Compute, Loader


@LOADERS.register("onnx-reference")
class OnnxReference(Loader):
    """`onnx.reference.ReferenceEvaluator`: numpy, operator by operator, as the standard says."""

    environment = "import-others"

    def load(self, path: Path) -> Compute:
        """Interpret the graph."""
        from onnx.reference import ReferenceEvaluator

        evaluator = ReferenceEvaluator(str(path))
        return lambda inputs: evaluator.run(None, dict(inputs))
