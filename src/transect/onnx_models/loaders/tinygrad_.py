"""Into tinygrad."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from transect.domain.cell import Cell
from transect.onnx_models.loaders import LOADERS, Compute, Loader


@LOADERS.register("tinygrad")
class Tinygrad(Loader):
    """`tinygrad.nn.onnx.OnnxRunner`, its kernels run by its interpreter in Python."""

    environment = "import-others"
    rows: int | None = 2

    def supports(self, cell: Cell) -> str | None:
        """Small models: its interpreter does about 100,000 operations in a second."""
        if str(cell.workload).startswith("resnet"):
            return f"tinygrad's interpreter would take more than ten minutes for {cell.workload}"
        return None

    def load(self, path: Path) -> Compute:
        """Build its tensors. Its other devices need a compiler, or a GPU; this one is slow."""
        os.environ["DEV"] = "PYTHON"
        from tinygrad import Tensor
        from tinygrad.nn.onnx import OnnxRunner

        runner = OnnxRunner(str(path))

        def compute(inputs: Mapping[str, np.ndarray]) -> Sequence[np.ndarray]:
            found = runner({name: Tensor(array) for name, array in inputs.items()})
            return [tensor.numpy() for tensor in found.values()]

        return compute
