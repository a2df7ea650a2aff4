"""`repeat_until` in a study: what is planned, in which blocks, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from factories import plan_study
from transect.domain.errors import BadInput
from transect.engine.plan_files import planned_analysis, planned_cells, write_plan
from transect.engine.repetition import repeat_until_of
from transect.engine.staleness import Staleness
from transect.planning.blocks import make_blocks
from transect.planning.plan import StudyPlan

STUDY = """
name: until
{until}
train:
  repeats: 3
  {own}
  grids:
    - {{workloads: [iris-mlp], frameworks: [numpy], strategies: [single], ranks: [1]}}
    - {{workloads: [iris-mlp], frameworks: [numpy], strategies: [mpi-allreduce], ranks: [2]}}
"""
SYSTEM = "name: here\nscheduler: none\nlauncher: plain\nmpi_launcher: mpiexec\n"
SLURM = "name: there\nscheduler: slurm\nlauncher: srun\nmpi_launcher: srun\nnodes: 4\ncores_per_node: 8\n"


def until_plan(folder: Path, until: str = "", section: str = "", system: str = SYSTEM) -> StudyPlan:
    return plan_study(folder, STUDY.format(until=until, own=section), system=system)


def test_repeats_up_to_the_cap_are_planned_and_may_not_be_needed(tmp_path: Path) -> None:
    plain = until_plan(tmp_path)
    made = until_plan(tmp_path, "repeat_until: {equivalence_margin: 4 %, max_repeats: 7, budget_minutes: 2}")
    assert not any(p.optional for p in plain)
    train = made.stage("train").values()
    assert {p.cell.repeat for p in train if p.optional} == {3, 4, 5, 6} and len(train) == 14
    # References of repeats that may not be needed may not be needed either.
    assert [p.optional for p in made.stage("reference").values()].count(True) == 4
    assert not any(p.optional for p in made.stage("dataset").values())
    assert {p.id for p in plain.stage("train").values()} < {p.id for p in train}
    rule = next(iter(train)).spec["repeat_until"]
    assert (rule["equivalence_margin"], rule["min_repeats"], rule["max_repeats"], rule["budget_s"]) == (
        0.04,
        3,
        7,
        120.0,
    )
    assert made.analysis_plan.margin == 0.04 and any(pair.asked for pair in made.analysis_plan.pairs)


def test_optional_repeats_and_what_only_they_need_run_last_in_their_block(tmp_path: Path) -> None:
    made = until_plan(tmp_path, "repeat_until: {equivalence_margin: 4 %, max_repeats: 5}")
    blocks = {block.id: block for block in make_blocks(made)}
    [train] = [block for name, block in blocks.items() if name.startswith("train")]
    assert [p.optional for p in train.cells] == [False] * 6 + [True] * 6
    stages = [p.cell.stage for p in train.cells[6:]]
    assert stages == ["reference", "train", "train"] * 2
    rounds = [p.cell.repeat for p in train.cells[:6]]
    assert rounds == sorted(rounds)
    [prepare] = [block for name, block in blocks.items() if name.startswith("prepare")]
    assert not any(p.optional for p in prepare.cells)


def test_on_a_scheduler_a_block_keeps_a_cells_repeats_together(tmp_path: Path) -> None:
    system, until = SLURM + "cells_per_job: {}\n", "repeat_until: {equivalence_margin: 4 %, max_repeats: 5}"
    together = make_blocks(until_plan(tmp_path, until, system=system.format(6)))
    assert [len({p.cell.without_repeat() for p in block.cells}) for block in together if block.rule == "train"] == [2]
    # Where what takes turns is too much for one job, each cell has one.
    made = until_plan(tmp_path, until, system=system.format(3))
    train = [block for block in make_blocks(made) if block.rule == "train"]
    assert len(train) == 2
    for block in train:
        assert len({p.cell.without_repeat() for p in block.cells}) == 1 and len(block.cells) == 5
    every = [p for block in make_blocks(made) for p in block.cells]
    # Two blocks need each reference: it is made before both.
    assert not any(p.optional for p in every if p.cell.stage == "reference")
    assert len(every) == len({p.key for p in every})


def test_another_margin_makes_a_block_stale_and_no_cell(tmp_path: Path) -> None:
    first, two = (
        until_plan(tmp_path, f"repeat_until: {{equivalence_margin: {margin}, max_repeats: 5}}")
        for margin in ("4 %", "3 %")
    )
    assert [p.fingerprint for p in first] == [p.fingerprint for p in two]
    before, after = ({b.id: b.fingerprint for b in make_blocks(made)} for made in (first, two))
    changed = {name for name in before if before[name] != after[name]}
    assert len(changed) == 1 and changed.pop().startswith("train")


def test_a_repeat_without_a_record_is_not_missing(tmp_path: Path) -> None:
    made = until_plan(tmp_path, "repeat_until: {equivalence_margin: 4 %, max_repeats: 5}")
    write_plan(made, make_blocks(made))
    optional = {f"{p.cell.stage}/{p.id}": p for p in made if p.optional}
    assert optional and len(planned_cells(made.paths) or ()) == sum(1 for _ in made) - len(optional)
    name, planned = next(iter(optional.items()))
    one_record = made.paths.record(*planned.key)
    one_record.parent.mkdir(parents=True)
    one_record.touch()
    assert optional.keys() & (planned_cells(made.paths) or {}).keys() == {name}
    assert planned_analysis(made.paths) == made.analysis_plan


def test_a_repeat_whose_record_has_gone_is_not_taken_for_one_that_was_not_needed(tmp_path: Path) -> None:
    made = until_plan(tmp_path, "repeat_until: {equivalence_margin: 4 %, max_repeats: 5}")
    optional = [p for p in made.stage("train").values() if p.optional]
    gone, skipped, begun, unknown = optional
    stamp = made.paths.stamp("train", "iris-mlp.n1")
    stamp.parent.mkdir(parents=True)
    state, earlier = repeat_until_of(skipped.spec), "an earlier one"

    def reasons(**stamped: dict[str, str]) -> dict[str, list[str]]:
        stamp.write_text(json.dumps({"state": "s", **stamped}))
        stale = Staleness(made)
        return {p.id: [reason.kind for reason in stale.of(p)] for p in optional}

    assert reasons() == {p.id: [] for p in optional}
    key = {p.id: f"train/{p.id}" for p in optional}
    begun_spec = made.paths.spec(*begun.key)
    begun_spec.parent.mkdir(parents=True)
    begun_spec.write_text("{}")
    found = reasons(completed_optional={key[gone.id]: state}, skipped_optional={key[skipped.id]: state})
    assert found == {gone.id: ["missing"], skipped.id: [], begun.id: ["missing"], unknown.id: []}
    # Who ran the block again without it did not need it.
    found = reasons(
        completed_optional={}, skipped_optional={key[gone.id]: state, key[skipped.id]: earlier, key[begun.id]: state}
    )
    assert found == {gone.id: [], skipped.id: ["repeat_until"], begun.id: [], unknown.id: []}
    # Nobody skipped it, but its cell's repeats ended: the maximum was a lower one.
    found = reasons(stop_reasons={unknown.cell.without_repeat().id: "max_repeats"})
    assert found[unknown.id] == ["repeat_until"] and found[skipped.id] == []


def test_a_sections_own_until_goes_before_the_studys(tmp_path: Path) -> None:
    section = "repeat_until: {ci_half_width: 2 %, min_repeats: 2, max_repeats: 4}"
    made = until_plan(tmp_path, "repeat_until: {equivalence_margin: 4 %, max_repeats: 7}", section)
    train = made.stage("train").values()
    assert {p.cell.repeat for p in train} == {0, 1, 2, 3}
    assert {p.cell.repeat for p in train if p.optional} == {2, 3}
    until = next(iter(train)).spec["repeat_until"]
    assert until["ci_half_width"] == 0.02
    assert until["equivalence_margin"] is None and until["metric"] == "step_time"


def test_nobody_goes_on_for_a_cell_that_is_compared_with_nothing(tmp_path: Path) -> None:
    study = STUDY.format(until="repeat_until: {equivalence_margin: 4 %, max_repeats: 5}", own="")
    alone = study.replace("strategies: [mpi-allreduce], ranks: [2]", "strategies: [mpi-allreduce], ranks: [64]")
    system = SYSTEM + "cores_per_node: 4\n"
    assert any(p.optional for p in plan_study(tmp_path, study, system=system))
    # Ranks that share cores are measured, and compared with nothing.
    made = plan_study(tmp_path, alone, system=system)
    assert not any(p.optional for p in made) and not made.analysis_plan.pairs
    both = plan_study(tmp_path, alone.replace("equivalence_margin: 4 %", "ci_half_width: 3 %"), system=system)
    assert any(p.optional for p in both), "a cell's own interval needs no other one"


@pytest.mark.parametrize(
    ("until", "section", "message"),
    [
        ("repeat_until: {max_repeats: 7}", "", "expected ci_half_width, equivalence_margin or both"),
        (
            "repeat_until: {equivalence_margin: 5 %, min_repeats: 5, max_repeats: 5}",
            "",
            "max_repeats 5 leaves nothing beyond min_repeats 5",
        ),
        (
            "repeat_until: {ci_half_width: 3 %, max_repeat: 5}",
            "",
            "unknown key 'repeat_until.max_repeat': did you mean 'max_repeats'?",
        ),
        ("repeat_until: {equivalence_margin: 5 %}", "repeat_until: {equivalence_margin: 3 %}", "expected one margin"),
        ("repeat_until: {ci_half_width: 100 %}", "", "found '100 %'"),
        ("repeat_until: {ci_half_width: 3 %, budget_minutes: 0}", "", "repeat_until.budget_minutes"),
        (
            "repeat_until: {ci_half_width: 3 %, max_repeats: 3}",
            "",
            "max_repeats 3 leaves nothing beyond the 3 repeats of train",
        ),
        ("infer: {repeat_until: {ci_half_width: 3 %}}", "", "infer.repeat_until: no cell of this study is repeated"),
    ],
)
def test_what_cannot_be_meant_is_one_message(tmp_path: Path, until: str, section: str, message: str) -> None:
    with pytest.raises(BadInput, match=r"study\.yaml") as raised:
        until_plan(tmp_path, until, section)
    assert message in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


def test_an_until_that_no_stage_goes_on_by_is_refused(tmp_path: Path) -> None:
    study = "name: s\n{}bench: {{grids: [{{benchmarks: [memory-bandwidth-probe]}}]}}\n"
    assert len(list(plan_study(tmp_path, study.format(""), system=SYSTEM))) == 1
    with pytest.raises(BadInput, match=r"repeat_until: no cell .*train"):
        plan_study(tmp_path, study.format("repeat_until: {ci_half_width: 3 %}\n"), system=SYSTEM)
