"""Into JAX."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from transect.onnx_models.loaders import LOADERS, Compute, Loader


@LOADERS.register("jaxonnxruntime")
class JaxOnnxRuntime(Loader):
    """`jaxonnxruntime`: a function of JAX, jitted."""

    environment = "import-others"
    # JAX is made with 64-bit types switched off.
    stand_ins: ClassVar[Mapping[str, str]] = {"int64": "int32", "float64": "float32"}

    def load(self, path: Path) -> Compute:
        """Translate the graph into a function of JAX."""
        import onnx
        from jaxonnxruntime.backend import Backend

        prepared = Backend.prepare(onnx.load(str(path)))
        return lambda inputs: prepared.run(dict(inputs))
