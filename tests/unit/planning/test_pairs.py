"""Which points a study compares, decided before it runs: each with its base, by one metric, for rules of the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from factories import plan_study
from transect.cli.main import app
from transect.domain.cell import Cell
from transect.domain.files import write_atomic
from transect.domain.pairs import Pair, PairRule, joined, pairs_of
from transect.domain.until import AnalysisPlan
from transect.engine.differences import differences
from transect.engine.plan_files import planned_analysis, read_block, write_plan
from transect.planning.blocks import make_blocks
from transect.planning.pairs import make_pairs, pairs_among
from transect.planning.plan import StudyPlan

SYSTEM = "name: here\nlauncher: plain\nmpi_launcher: mpiexec\ncores_per_node: 4\n"


def planned(folder: Path, grids: str, *, questions: str = "", repeats: int = 3, more: str = "") -> StudyPlan:
    study = f"name: s\n{questions}train:\n  repeats: {repeats}\n  grids:\n{grids}{more}"
    return plan_study(folder, study, system=SYSTEM)


def ways(made: StudyPlan, rule: str, *axes: str) -> set[tuple[str, ...]]:
    """Return the pairs of a rule as words: axes of the cell and of its base."""
    cells = {planned.cell.without_repeat().id: planned.cell for planned in made}

    def words(cell: Cell) -> str:
        return " ".join(str(cell.get(axis)) for axis in axes)

    found = [pair for pair in made.analysis_plan.pairs if rule in pair.rules]
    return {(words(cells[pair.cell]), words(cells[pair.base])) for pair in found}


ALONE = "    - {workloads: [iris-mlp], frameworks: [numpy, torch], strategies: [single]}\n"
TOGETHER = (
    "    - {workloads: [iris-mlp], frameworks: [numpy, torch], strategies: [mpi-allreduce, mpi-sendrecv], ranks: [2]}\n"
)


def test_frameworks_are_compared_alone_and_each_way_of_more_ranks_with_its_own_framework_alone(tmp_path: Path) -> None:
    made = planned(tmp_path, ALONE + TOGETHER)
    assert ways(made, "training.fastest", "framework", "strategy", "ranks") == {
        ("torch single 1", "numpy single 1"),
        ("numpy mpi-allreduce 2", "numpy single 1"),
        ("numpy mpi-sendrecv 2", "numpy single 1"),
        ("torch mpi-allreduce 2", "torch single 1"),
        ("torch mpi-sendrecv 2", "torch single 1"),
        ("numpy mpi-sendrecv 2", "numpy mpi-allreduce 2"),
        ("torch mpi-sendrecv 2", "torch mpi-allreduce 2"),
    }
    assert ways(made, "rank.point-to-point", "framework", "strategy") == {
        ("numpy mpi-sendrecv", "numpy mpi-allreduce"),
        ("torch mpi-sendrecv", "torch mpi-allreduce"),
    }
    [pair] = [
        pair for pair in made.analysis_plan.pairs if pair.varies == ("framework",) and pair.rules == ("language",)
    ]
    assert (pair.stage, pair.metric, pair.base.split(".")[1]) == ("train", "step_time", "numpy")


def test_workers_that_come_and_go_stand_beside_those_that_stay_and_nobody_else(tmp_path: Path) -> None:
    coming = "    - {workloads: [iris-mlp], frameworks: [numpy], strategies: [async], ranks: [3], options: [{}, {workers: 1-2}]}\n"
    pairs = planned(tmp_path, ALONE + TOGETHER + coming).analysis_plan.pairs
    assert [pair.rules for pair in pairs if "workers" in pair.cell] == [("asynchronous.workers",)]


def test_points_that_differ_in_anything_else_are_no_pair(tmp_path: Path) -> None:
    other = "    - {workloads: [iris-mlp], frameworks: [torch], strategies: [single], threads: [2]}\n"
    kind = "    - {workloads: [iris-mlp], frameworks: [torch], strategies: [single], precisions: [bf16]}\n"
    numpy = "    - {workloads: [iris-mlp, digits-mlp], frameworks: [numpy], strategies: [single]}\n"
    assert planned(tmp_path, other + kind + numpy).analysis_plan.pairs == ()


def test_a_point_that_does_not_fit_the_machine_is_in_no_pair(tmp_path: Path) -> None:
    made = planned(tmp_path, ALONE + TOGETHER.replace("ranks: [2]", "ranks: [2, 8]"))
    assert {ranks for ranks, _ in ways(made, "training.fastest", "ranks")} == {"1", "2"}


def test_where_a_clusters_cores_are_unknown_the_planning_machines_bar_no_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transect.planning.context.available_cores", lambda: 2)
    for cluster, most in ((SYSTEM.replace("cores_per_node: 4\n", ""), "2"), ("name: c\nscheduler: slurm\n", "8")):
        study = "name: s\ntrain:\n  repeats: 3\n  grids:\n" + ALONE + TOGETHER.replace("ranks: [2]", "ranks: [2, 8]")
        made = plan_study(tmp_path, study, system=cluster)
        assert max(ranks for ranks, _ in ways(made, "training.fastest", "ranks")) == most


def test_ranks_that_keep_their_batch_are_compared_by_samples_a_second(tmp_path: Path) -> None:
    weak = (ALONE + TOGETHER).replace("}", ", scaling: weak}")
    made = planned(tmp_path, weak)
    near = [pair for pair in made.analysis_plan.pairs if "rank.near-linear" in pair.rules]
    assert len(near) == 4 and {pair.metric for pair in near} == {"samples_per_second"}
    assert all("batch" in pair.varies for pair in near)
    # Two frameworks alone, and two ways to the same ranks: nobody else does the same training.
    assert ways(made, "training.fastest", "strategy") == {("single", "single"), ("mpi-sendrecv", "mpi-allreduce")}


ASKED = "questions:\n  - {ask: Which?, answered_by: [RULE]}\n"


@pytest.mark.parametrize(
    ("rule", "repeats", "asked"),
    [
        ("training.fastest", 3, {"training.fastest"}),
        ("training.*", 3, {"training.fastest", "training.scaling"}),
        ("export", 3, set()),
        # Two runs a side never decide anything.
        ("training.fastest", 2, set()),
    ],
)
def test_only_pairs_that_a_question_names_count(tmp_path: Path, rule: str, repeats: int, asked: set[str]) -> None:
    made = planned(tmp_path, ALONE + TOGETHER, questions=ASKED.replace("RULE", rule), repeats=repeats)
    assert {pair.rules[0] for pair in made.analysis_plan.pairs if pair.asked} == asked
    # Only they take turns.
    in_specs = pairs_of(cell.spec for cell in made)
    assert set(in_specs) == {pair for pair in made.analysis_plan.pairs if pair.asked}
    assert any(cell.heat for cell in made) is bool(asked)


@pytest.mark.parametrize(("repeats", "told"), [(2, True), (3, False)])
def test_a_study_of_too_few_repeats_is_told_so(tmp_path: Path, repeats: int, told: bool) -> None:
    planned(tmp_path, ALONE, questions=ASKED.replace("RULE", "training.fastest"), repeats=repeats)
    found = CliRunner().invoke(app, ["check", str(tmp_path / "study.yaml"), "--system", str(tmp_path / "system.yaml")])
    assert found.exit_code == 0 and ("1 pairs that its questions ask for" in found.output) is told


def test_without_a_question_that_names_a_rule_all_count(tmp_path: Path) -> None:
    for questions in ("", "questions: [Which is fastest?]\n"):
        made = planned(tmp_path, ALONE + TOGETHER, questions=questions)
        assert made.analysis_plan.pairs and all(pair.asked for pair in made.analysis_plan.pairs)


def test_the_plan_on_disk_has_the_pairs_for_the_report_and_a_block_for_its_runner(tmp_path: Path) -> None:
    made = planned(tmp_path, ALONE + TOGETHER)
    blocks = make_blocks(made)
    write_plan(made, blocks)
    assert planned_analysis(made.paths) == made.analysis_plan
    [train] = [block for block in blocks if block.rule == "train"]
    file = made.paths.block(train.rule, train.name)
    assert set(pairs_of(read_block(file)[1])) == set(made.analysis_plan.pairs)
    # Another question is told to the runner, and makes nothing stale.
    less = planned(tmp_path, ALONE + TOGETHER, questions=ASKED.replace("RULE", "training.fastest"))
    write_plan(less, make_blocks(less))
    assert {pair.rules for pair in pairs_of(read_block(file)[1])} == {("training.fastest",)}
    assert [p.fingerprint for p in less] == [p.fingerprint for p in made]
    # Nor is it named as what changed, where a cell is stale for another reason.
    before, now = made.stage("train").values(), less.stage("train").values()
    for old, new in zip(before, now, strict=True):
        write_atomic(made.paths.spec(*old.key), json.dumps(old.spec | {"fingerprint": "another"}))
        assert [reason.text for reason in differences(made.paths, new.spec, lambda _: {})] == [
            "its specification changed"
        ]


def test_results_of_before_there_were_pairs_have_those_of_their_cells(tmp_path: Path) -> None:
    assert AnalysisPlan.of({"margin": 0.1, "looks": {"train": 3}}) == AnalysisPlan(margin=0.1)
    made = planned(tmp_path, ALONE + TOGETHER, questions=ASKED.replace("RULE", "training.fastest"))
    found = pairs_among((cell.cell for cell in made), lambda rules: "training.fastest" in rules)
    assert {(pair.cell, pair.base, pair.metric, pair.asked) for pair in found} == {
        (pair.cell, pair.base, pair.metric, pair.asked) for pair in made.analysis_plan.pairs
    }


def cell(**axes: object) -> Cell:
    usual = {"stage": "infer", "workload": "w", "runtime": "c", "provider": "cpu", "batch": 1}
    return Cell.of(**{**usual, **axes})


def test_of_several_bases_the_most_alike_is_taken() -> None:
    rule = PairRule(metric="m", rules=("r",), varies=("runtime", "exporter"), base={"runtime": ("c",)})
    points = [cell(exporter="a"), cell(exporter="b"), cell(exporter="b", runtime="go")]
    [pair] = make_pairs([rule], points, lambda rules: True)
    assert (pair.cell, pair.base, pair.varies) == (points[2].id, points[1].id, ("runtime",))


def test_others_stand_beside_the_first_where_a_rule_names_no_base() -> None:
    rule = PairRule(
        metric="m", rules=("r",), varies=("runtime", "exporter"), first="runtime", neither={"exporter": (None,)}
    )
    points = [
        cell(runtime="torch-eager", exporter=None),
        *(cell(runtime="python", exporter=name) for name in "ab"),
        *(cell(runtime=name, exporter="b") for name in ("go", "c")),
        cell(runtime="go", batch=2, exporter="a"),
    ]
    found = [(pair.cell, pair.base) for pair in make_pairs([rule], points, lambda rules: True)]
    assert found == [(points[3].id, points[2].id), (points[4].id, points[2].id)], "as many as there are others"
    # Of one alone there is nothing to compare, and where a named base is absent neither.
    assert not list(make_pairs([rule], points[:3], lambda rules: True))
    named = PairRule(metric="m", rules=("r",), varies=("runtime",), base={"runtime": ("rust",)})
    assert not list(make_pairs([named], points, lambda rules: True))


def test_what_two_rules_compare_is_one_pair_that_answers_both() -> None:
    first = PairRule(metric="m", rules=("r",), varies=("runtime",), base={"runtime": ("c",)})
    second = PairRule(metric="m", rules=("s",), varies=("runtime",), base={"runtime": ("go",)})
    points = [cell(), cell(runtime="go")]
    [pair] = make_pairs([first, second], points, lambda rules: "s" in rules)
    assert (pair.rules, pair.asked, pair.base) == (("r", "s"), True, points[0].id)


def test_one_option_may_vary_and_the_others_may_not() -> None:
    rule = PairRule(metric="m", rules=("r",), varies=("options.n",), base={"options.n": (None,)})

    def bench(**options: int) -> Cell:
        return Cell.of(stage="bench", benchmark="b", options=tuple(sorted(options.items())))

    points = [bench(), bench(n=1), bench(k=1), bench(k=1, n=2), bench(k=2, n=1)]
    found = {(pair.cell, pair.base) for pair in make_pairs([rule], points, lambda rules: True)}
    assert found == {(points[1].id, points[0].id), (points[3].id, points[2].id)}


def test_what_pairs_join_takes_turns() -> None:
    def pair(one: str, other: str) -> Pair:
        return Pair(stage="train", cell=one, base=other, metric="m", varies=(), rules=())

    heats = joined([pair("b", "a"), pair("e", "d"), pair("c", "b")])
    assert {point: first[1] for (_, point), first in heats.items()} == {
        "a": "a",
        "b": "a",
        "c": "a",
        "d": "d",
        "e": "d",
    }
