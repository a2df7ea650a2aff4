"""Into TensorFlow, which has no importer of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from transect.onnx_models.loaders import LOADERS, Compute, Loader


@LOADERS.register("onnx2tf")
class Onnx2Tf(Loader):
    """`onnx2tf.convert`: a Keras 2 model, channels last inside."""

    environment = "import-tensorflow"

    def load(self, path: Path) -> Compute:
        """Translate the graph, with inputs in the file's own order of axes."""
        import onnx
        import onnx2tf
        import tensorflow as tf

        graph = onnx.load(str(path)).graph
        weights = {tensor.name for tensor in graph.initializer}
        with tempfile.TemporaryDirectory() as folder:
            model = onnx2tf.convert(
                input_onnx_file_path=str(path),
                output_folder_path=folder,
                keep_shape_absolutely_input_names=[value.name for value in graph.input if value.name not in weights],
                non_verbose=True,
            )

        def compute(inputs: Mapping[str, np.ndarray]) -> Sequence[np.ndarray]:
            given = [tf.constant(array) for array in inputs.values()]
            found = model(given if len(given) > 1 else given[0])
            listed = found if isinstance(found, (list, tuple)) else [found]
            return [tensor.numpy() for tensor in listed]

        return compute
