"""Back into PyTorch, which has no importer of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from transect.onnx_models.loaders import LOADERS, Compute, Loader


@LOADERS.register("onnx2torch")
class Onnx2Torch(Loader):
    """`onnx2torch.convert`: a torch module that can be trained again."""

    environment = "import-torch"

    def load(self, path: Path) -> Compute:
        """Translate the graph into a module of torch."""
        import torch
        from onnx2torch import convert

        module = convert(str(path)).eval()

        def compute(inputs: Mapping[str, np.ndarray]) -> Sequence[np.ndarray]:
            with torch.inference_mode():
                found = module(*(torch.from_numpy(array.copy()) for array in inputs.values()))
            listed = found if isinstance(found, (tuple, list)) else (found,)
            return [tensor.numpy() for tensor in listed]

        return compute
