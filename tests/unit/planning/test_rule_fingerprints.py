"""Whatever a workload says of its loss, update and schedule is part of what its cells are."""

from __future__ import annotations

import pytest

from factories import plan_study
from transect.domain.errors import BadInput
from transect.planning.code_hash import closure
from transect.planning.rule_sources import rule_sources

STUDY = """
name: rules
workloads: {{digits-cnn: {{{rule}}}}}
train: {{repeats: 1, grids: [{{workloads: [digits-cnn], frameworks: [torch], strategies: [single]}}]}}
"""


def planned(folder, rule):
    (folder / "rates.py").write_text("def rate(step, steps):\n    return 1.0\n")
    plan = plan_study(folder, STUDY.format(rule=rule))
    return {stage: next(iter(plan.stage(stage).values())) for stage in ("train", "reference")}


@pytest.mark.parametrize(
    "rule",
    [
        "loss: huber",
        "label_smoothing: 0.1",
        "optimiser: rmsprop",
        "optimiser: adam",
        "weight_decay: 0.1, decay: matrices",
        "clip_norm: 1.0",
        "accumulation: 2",
        "ema: 0.99",
        "schedule: cosine",
        "schedule: {name: constant, warmup_steps: 3}",
        "schedule: 'rates.py:rate'",
    ],
)
def test_a_rule_is_part_of_the_fingerprint(tmp_path, rule):
    usual, changed = planned(tmp_path, ""), planned(tmp_path, rule)
    for stage, cell in usual.items():
        assert cell.fingerprint != changed[stage].fingerprint


def test_a_rule_that_is_typed_in_another_way_is_the_same(tmp_path):
    written = [planned(tmp_path, f"schedule: {given}") for given in ("cosine", "Cosine", "{name: cosine, end: 0.0}")]
    assert len({cells["train"].fingerprint for cells in written}) == 1


def test_the_file_of_a_schedule_is_an_input(tmp_path):
    for cell in planned(tmp_path, "schedule: 'rates.py:rate'").values():
        assert cell.spec["named"] == [str(tmp_path / "rates.py")]


def test_a_function_that_a_schedule_s_file_lacks_is_told_while_planning(tmp_path):
    with pytest.raises(
        BadInput, match=r"workloads\.digits-cnn\.schedule': .*rates\.py: unknown member 'rat': did you mean 'rate'"
    ):
        planned(tmp_path, "schedule: 'rates.py:rat'")


@pytest.mark.parametrize("optimiser", ["rates.py:rate", "Function"])
def test_an_optimiser_of_one_s_own_is_of_a_module_s_workload(tmp_path, optimiser):
    with pytest.raises(
        BadInput,
        match=r"workloads\.digits-cnn\.optimiser': an optimiser of your own is FILE\.py:NAME, of a workload with",
    ):
        planned(tmp_path, f"optimiser: '{optimiser}'")


def test_what_imports_an_own_schedule_counts(tmp_path):
    ways = {name for path in rule_sources() for name in closure(path, tmp_path)}
    assert "own_files.py" in {path.name for path in ways}


def test_the_files_of_all_rules_are_sources():
    names = {path.name for path in rule_sources()}
    assert {"huber.py", "lamb.py", "one_cycle.py", "cross_entropy.py", "sgd.py"} <= names
