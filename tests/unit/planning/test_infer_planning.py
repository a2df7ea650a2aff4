"""Inference cells as they are planned: which exporters a grid takes, and what must be there."""

from __future__ import annotations

from pathlib import Path

import pytest

from factories import plan_study
from transect.domain.errors import BadInput
from transect.planning.plan import StudyPlan

STUDY = """
name: served
train:
  repeats: 2
  grids:
    - {workloads: [iris-mlp-ce], frameworks: [torch, numpy], strategies: [single]}
"""
BOTH = "export: {workloads: [iris-mlp-ce], exporters: [dynamo, torchscript]}\n"


def serving_plan(tmp_path: Path, runtimes: str, export: str = BOTH, more: str = "") -> StudyPlan:
    grid = f"{{workloads: [iris-mlp-ce], runtimes: {runtimes}{more}}}"
    study = f"{STUDY}{export}infer: {{grids: [{grid}]}}\n"
    return plan_study(tmp_path, study, name="served.yaml")


def exporters(made: StudyPlan) -> dict[str, list[str | None]]:
    """Return the exporters of the infer cells by runtime."""
    found: dict[str, list[str | None]] = {}
    for planned in made.stage("infer").values():
        found.setdefault(planned.cell.runtime, []).append(planned.cell.exporter)
    return found


def test_a_grid_without_exporters_takes_all_of_the_study(tmp_path):
    made = serving_plan(tmp_path, "[python, torch-eager]")
    assert exporters(made) == {"python": ["dynamo", "torchscript"], "torch-eager": [None]}
    for planned in made.stage("infer").values():
        stage, cell_id = planned.inputs["export"]
        taken = made.stage(stage)[cell_id].cell
        assert planned.cell.exporter in (None, taken.exporter)
        # A file holds its weights; who builds the model itself is given them.
        assert ("weights" in planned.inputs) is (planned.cell.exporter is None)
        if "weights" in planned.inputs:
            trained = made.stage("train")[planned.inputs["weights"][1]]
            assert trained.cell.framework == "torch"


NO_EXPORTERS = ["", "export: {workloads: [iris-mlp-ce]}\n", "export: {exporters: []}\n"]


@pytest.mark.parametrize("export", NO_EXPORTERS)
def test_onnx_without_any_exporter_names_the_key(tmp_path, export):
    with pytest.raises(BadInput) as raised:
        serving_plan(tmp_path, "[torch-eager, python]", export)
    assert "served.yaml" in str(raised.value)
    assert "infer.grids.0.runtimes" in str(raised.value) and "export.exporters" in str(raised.value)


@pytest.mark.parametrize("export", NO_EXPORTERS)
def test_what_takes_no_onnx_plans_the_export_that_it_is_compared_with(tmp_path, export):
    made = serving_plan(tmp_path, "[torch-eager]", export)
    assert exporters(made) == {"torch-eager": [None]}
    (served,) = made.stage("infer").values()
    (exported,) = made.stage("export").values()
    assert served.inputs["export"] == exported.key
    assert exported.cell.framework == "torch"
    # And what the export takes is planned with it.
    assert made.stage("train")[exported.inputs["weights"][1]].cell.framework == "torch"
    assert exported.inputs["data"][1] in made.stage("dataset")


def test_an_exporter_that_the_study_does_not_run_is_named(tmp_path):
    export = "export: {workloads: [iris-mlp-ce], exporters: [dynamo]}\n"
    with pytest.raises(BadInput, match=r"infer\.grids\.0\.exporters: 'torchscript'"):
        serving_plan(tmp_path, "[python]", export, ", exporters: [torchscript]")


@pytest.mark.parametrize("framework", ["numpy", "tensorflow"])
def test_a_framework_that_nothing_exports_is_named_with_its_key(tmp_path, framework):
    with pytest.raises(BadInput) as raised:
        serving_plan(tmp_path, "[torch-eager]", f"export: {{framework: {framework}}}\n")
    assert "served.yaml" in str(raised.value)
    assert framework in str(raised.value)


MADE = "models: {models: [cnn, strings], exporters: [torchscript, sklearn]}\n"
NAMED = "export: {workloads: [iris-mlp-ce], exporters: [dynamo]}\n"
WRONG_GRIDS = {
    "workloads: [iris-mlp-ce], runtimes: [python], exporters: [sklearn]": "'python' runs none",
    "workloads: [cnn], runtimes: [python], exporters: [torchscript, sklearn]": "'sklearn' makes a file",
    "workloads: [cnn, strings], runtimes: [torch-eager]": "only runtimes of ONNX",
    "workloads: [cnn], runtimes: [python], options: [fast]": "'fast'",
    "workloads: [cnn], runtimes: [python], options: [one], threads: [1, 2]": "would all run with 1",
    "workloads: [cnn], runtimes: [python], sessions: [1, 2]": "expected `loads`",
    "workloads: [iris-mlp], runtimes: [python]": "not among export.workloads",
}


@pytest.mark.parametrize("grid", WRONG_GRIDS)
def test_a_grid_that_asks_for_nothing_is_named(tmp_path, grid):
    sets = "" if "options" not in grid else "options: {one: {intra_op_num_threads: 1}}, "
    sets = sets if "[one]" in grid else ""
    with pytest.raises(BadInput) as raised:
        plan_study(tmp_path, f"{STUDY}{NAMED}{MADE}infer: {{{sets}grids: [{{{grid}}}]}}\n")
    assert WRONG_GRIDS[grid] in str(raised.value)


WRONG_SECTIONS = {
    "infer: {options: {one: {intra_op_num_threads: 1}}, grids: []}": "one",
    "infer: {options: {equal: {}}, grids: []}": "the same in every study",
    "infer: {options: {one: {execution_mode: fast}}, grids: []}": "sequential, parallel",
    "infer: {measure: {cnn: {warmup: 3}}, grids: []}": "cnn",
    "roundtrip: {models: [cnn], exporters: [torchscript]}": "without `loaders`",
    "conformance: {only: 'test_a*'}": "without `runtimes`",
}


@pytest.mark.parametrize("section", WRONG_SECTIONS)
def test_a_section_that_asks_for_nothing_is_named(tmp_path, section):
    with pytest.raises(BadInput) as raised:
        plan_study(tmp_path, f"{STUDY}{section}\n")
    assert WRONG_SECTIONS[section] in str(raised.value)


def test_made_models_are_run_by_the_exporters_that_can(tmp_path):
    grid = "{workloads: [iris-mlp-ce, cnn, strings], runtimes: [python], precisions: [fp32, fp16]}"
    made = plan_study(tmp_path, f"{STUDY}{NAMED}{MADE}infer: {{grids: [{grid}]}}\n")
    cells = [planned.cell for planned in made.stage("infer").values()]
    pairs = {(cell.workload, cell.exporter) for cell in cells}
    assert pairs == {("iris-mlp-ce", "dynamo"), ("cnn", "torchscript"), ("strings", "sklearn")}
    for planned in made.stage("infer").values():
        stage, _ = planned.inputs["export"]
        of = {"fp16": "convert"}.get(planned.cell.precision)
        assert stage == (of or ("export" if planned.cell.workload == "iris-mlp-ce" else "generated-model"))


def test_larger_batches_warm_up_with_fewer_calls_but_not_with_none(tmp_path):
    grid = "{workloads: [cnn], runtimes: [python], batches: [1, 32, 128]}"
    for given, expected in ((2000, [2000, 62, 20]), (10, [10, 10, 10]), (0, [0, 0, 0])):
        infer = f"infer: {{warmup: {given}, grids: [{grid}]}}\n"
        made = plan_study(tmp_path, STUDY + NAMED + MADE + infer)
        cells = made.stage("infer").values()
        found = {planned.cell.batch: planned.spec["limits"]["warmup"] for planned in cells}
        assert [found[batch] for batch in (1, 32, 128)] == expected
