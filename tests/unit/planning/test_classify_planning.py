"""Classifiers as they are planned: hyper-parameters, what goes on with what, and what is refused."""

from __future__ import annotations

import pytest

from ticket_study import TEXT, plan_grids, plan_study
from transect.domain.errors import BadInput
from transect.planning.blocks import make_blocks
from transect.planning.plan import StudyPlan


def cells(made: StudyPlan) -> list:
    return [planned.cell for planned in made.stage("classify").values()]


def test_a_hyperparameter_that_is_not_said_is_the_classifiers_own(tmp_path):
    [cell] = cells(plan_grids(tmp_path, "models: [encoder]"))
    assert cell.hyperparameters() == {
        "epochs": 4,
        "batch": 32,
        "learning_rate": 0.003,
        "optimiser": "adamw",
        "heads": 2,
        "layers": 1,
    }


def test_a_list_does_not_multiply_a_classifier_without_that_hyperparameter(tmp_path):
    grid = "models: [encoder, pairs, words], heads: [1, 2, 4], batches: [8, 64]"
    found = [cell.model for cell in cells(plan_grids(tmp_path, grid))]
    assert {name: found.count(name) for name in found} == {"encoder": 6, "pairs": 2, "words": 1}


def test_a_record_tells_what_a_preset_gives(tmp_path):
    """Two models that differ in one option differ in one: else no doubt would find the pair."""
    preset = "kind: transformer, options: {preset: published, batch: 8, heads: 4"
    models = f"    given: {{{preset}}}}}\n    right: {{{preset}, reshape: right}}}}\n"
    text = TEXT.replace("small", "large")
    made = plan_study(tmp_path, f"{models}  grids: [{{{text}, models: [given, right]}}]\n")
    models_used = [planned.spec["parameters"]["model"] for planned in made.stage("classify").values()]
    given, right = sorted(models_used, key=lambda model: model["options"]["reshape"])
    assert (given["options"]["reshape"], given["options"]["pooling"]) == ("published", "flatten")
    assert given["options"] | {"reshape": "right"} == right["options"]


def test_a_longer_run_goes_on_with_the_next_shorter_one_of_the_same_kind(tmp_path):
    made = plan_grids(tmp_path, "models: [encoder], epochs: [8, 2, 4], heads: [1, 2], repeats: 2")
    goes_on = {}
    for planned in made.stage("classify").values():
        taken = planned.inputs.get("shorter")
        before = made.stage("classify")[taken[1]].cell if taken else None
        goes_on[planned.cell.epochs] = before and before.epochs
        assert before is None or before.changed(epochs=planned.cell.epochs) == planned.cell
    assert goes_on == {2: None, 4: 2, 8: 4}


def test_in_a_block_what_is_gone_on_with_runs_first(tmp_path):
    grid = "models: [encoder], epochs: [9, 8, 7, 6, 5, 4, 3, 2, 1], repeats: 3"
    made = plan_grids(tmp_path, grid)
    [block] = [block_of_plan for block_of_plan in make_blocks(made) if block_of_plan.shape.group == "classify"]
    # `transect run` goes by the plan's own order.
    for cells_in_turn in (block.cells, made.stage("classify").values()):
        ran: set[str] = set()
        for planned in cells_in_turn:
            shorter = planned.inputs.get("shorter")
            assert shorter is None or shorter[1] in ran
            ran.add(planned.id)
        assert len(ran) == 27


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ("models: [words], heads: [2]", "grids.0.heads: none of words has this hyper-parameter"),
        ("models: [encoder], heads: [2, 5]", "5 heads do not share vectors of width 12 equally"),
        ("models: [encoder], optimisers: [sgd, function]", "optimiser 'function' is for a workload with a"),
        ("models: [encoder], epochs: [2], updates: [3]", "grids.0.updates: stands in the place"),
    ],
)
def test_what_makes_no_cell_is_refused(tmp_path, grid, message):
    with pytest.raises(BadInput, match=message.replace("?", r"\?")):
        plan_grids(tmp_path, grid)


def test_patience_needs_a_part_to_look_at(tmp_path):
    with pytest.raises(BadInput, match=r"'patient' .*`validation`.*without"):
        plan_grids(tmp_path, "models: [patient]", text=TEXT.replace("plain", "without"))
    [cell] = cells(plan_grids(tmp_path, "models: [patient]"))
    assert cell.model == "patient"


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("{kind: transformer, options: {head: 2}}", "odd.options.head: .*given 2. Known options: epochs, updates"),
        (
            "{kind: transformer, options: {preset: best}}",
            "odd.options.preset: Input should be 'published', given 'best'",
        ),
        ("{kind: n-grams, options: {learning_rate: 0}}", "odd.options.learning_rate: .*given 0"),
        ("{kind: tfidf, options: {epochs: 3}}", "odd.options.epochs: .*given 3. Known options: strength, iterations"),
        ("{kind: fasttext}", "odd.kind: unknown classifier 'fasttext'"),
    ],
)
def test_an_option_that_no_classifier_has_is_refused(tmp_path, rule, message):
    with pytest.raises(BadInput, match=message):
        plan_study(tmp_path, f"    odd: {rule}\n")
