"""Into OpenCV, which has networks of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from transect.onnx_models.loaders import LOADERS, Compute, Loader


@LOADERS.register("opencv")
class OpenCv(Loader):
    """`cv2.dnn.readNetFromONNX`: OpenCV's networks."""

    environment = "import-others"

    def load(self, path: Path) -> Compute:
        """Read the file into a network of OpenCV."""
        import cv2

        net = cv2.dnn.readNetFromONNX(str(path))

        def compute(inputs: Mapping[str, np.ndarray]) -> Sequence[np.ndarray]:
            for name, array in inputs.items():
                net.setInput(array, name)
            found: Sequence[np.ndarray] = net.forward(net.getUnconnectedOutLayersNames())
            return found

        return compute
