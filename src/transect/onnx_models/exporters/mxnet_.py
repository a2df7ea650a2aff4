"""MXNet's export: operator by operator from its symbol."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from transect.onnx_models.exporters import EXPORTERS, Exporter, Source

_OPSET = 13


@EXPORTERS.register("mxnet")
class MxnetExporter(Exporter):
    """`mx.onnx.export_model` of MXNet 1.9.1, its last."""

    framework = "mxnet"
    environment = "export-mxnet"

    def export(self, source: Source, path: Path) -> None:
        """Translate the net's symbol, made with our names of the ends."""
        import mxnet as mx

        variables = [mx.sym.var(name) for name in source.examples]
        made = source.model(*variables)
        listed = made if isinstance(made, (list, tuple)) else (made,)
        outputs = [mx.sym.identity(output, name=name) for output, name in zip(listed, source.outputs, strict=True)]
        parameters = {name: value.data() for name, value in source.model.collect_params().items()}
        shapes = [array.shape for array in source.examples.values()]
        with _operator_set(source.opset or _OPSET):
            mx.onnx.export_model(
                mx.sym.Group(outputs),
                parameters,
                shapes,
                [array.dtype for array in source.examples.values()],
                str(path),
                dynamic=source.batched,
                dynamic_input_shapes=[(None, *shape[1:]) for shape in shapes],
            )


@contextmanager
def _operator_set(version: int) -> Iterator[None]:
    """Let the exporter find this as the newest operator set of the onnx package.

    It takes its newest translations, those of 13, but heads the file with that number.
    """
    from onnx import defs

    original, defs.onnx_opset_version = defs.onnx_opset_version, lambda: version
    try:
        yield
    finally:
        defs.onnx_opset_version = original
