"""The onnx-node-tests stage: ONNX's operator tests, made once for all runtimes."""

from __future__ import annotations

from transect.domain.axes.export import NodeTestsCell
from transect.planning.stage import STAGES, Placement, Stage


@STAGES.register("onnx-node-tests")
class NodeTests(Stage[NodeTestsCell]):
    """Planned where a runtime is tested with them."""

    payload = "transect.payloads.onnx_node_tests:prepare"
    placement = Placement(group="prepare")

    def environment(self, cell: NodeTestsCell) -> str:
        """Where the pinned `onnx` is."""
        return "conformance"
