"""Made models as they are planned: every model by every exporter, and who does not offer which."""

from __future__ import annotations

from onnx_cells import plan_models
from transect.onnx_models.exporters import EXPORTERS
from transect.onnx_models.models import MODELS
from transect.planning.expand import reason_to_skip
from transect.training.workloads import WORKLOADS


def test_every_model_is_planned_by_every_exporter_and_says_who_does_not_offer_it(tmp_path):
    made = plan_models(tmp_path, f"models: {{models: {MODELS.names()}, exporters: {EXPORTERS.names()}}}")
    cells = list(made.stage("generated-model").values())
    assert len(cells) == len(MODELS.names()) * len(EXPORTERS.names())
    reasons = {(c.cell.workload, c.cell.exporter): reason_to_skip(c.cell) for c in cells}
    offered = {pair for pair, reason in reasons.items() if reason is None}
    assert all("none in" in reason for reason in reasons.values() if reason)
    assert ("mlp", "mxnet") in offered and ("strings", "sklearn") in offered
    assert ("strings", "dynamo") not in offered and ("identity-1", "sklearn") not in offered
    for planned in cells:
        assert planned.cell.framework == EXPORTERS.get(planned.cell.exporter).framework
        assert planned.spec["seed"] == 20261120


def test_no_model_has_the_name_of_a_workload():
    """Cells tell them apart by name."""
    assert not set(MODELS.names()) & set(WORKLOADS.names())
