"""`transect compare`: only like cells, what the repeats show and no more, and an exit code for each end."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from factories import infer_cell, train_cell, write_records
from result_runs import FRAMEWORKS, START, noisy, rates, run_record, write_run
from transect.domain.cell import Cell
from transect.domain.record import Cause, Status


def lines_of(facts: dict[str, Any], word: str, metric: str = "samples_per_second") -> list[str]:
    """Return the frameworks of the cells of which a verdict is this word."""
    return sorted(
        line["cell"].split(".")[1]
        for line in facts["others"][0]["lines"]
        if line["outcome"] == word and line["metric"] == metric
    )


@pytest.fixture
def both(tmp_path: Path, compared: Any) -> Any:
    """Return what writes two runs, the second with some rates times a factor, and compares them."""

    def call(*options: str, base: Any = None, **factors: float) -> Any:
        write_run(tmp_path / "a", rates(1, **base or {}))
        write_run(tmp_path / "b", rates(2, **factors), day=1)
        return compared(*options)

    return call


def test_worse_better_and_the_same_are_told_with_an_exit_code(both):
    code, facts = both(torch=0.7, keras=1.4)
    assert (code, facts["outcome"], facts["exit_code"]) == (4, "worse", 4)
    assert lines_of(facts, "worse") == ["torch"]
    assert lines_of(facts, "better") == ["keras"]
    assert lines_of(facts, "same") == ["jax", "mxnet", "numpy", "tensorflow"]
    (worse,) = (line for line in facts["others"][0]["lines"] if line["outcome"] == "worse")
    assert worse["confidence"] == "confirmed" and worse["low"] < 0.7 < worse["high"] < 0.75
    assert worse["base"]["runs"] == worse["other"]["runs"] == 5


def test_equal_runs_are_the_same(both):
    code, facts = both()
    assert (code, facts["outcome"], lines_of(facts, "same")) == (0, "same", sorted(FRAMEWORKS))
    (together,) = facts["others"][0]["together"]
    assert together["answer"].startswith("the same") and together["cells"] == 6


def test_what_moves_all_cells_is_said_once_for_all(both):
    _, facts = both(**dict.fromkeys(FRAMEWORKS, 0.8))
    (together,) = facts["others"][0]["together"]
    assert together["answer"] == "different" and 0.78 < together["low"] < together["high"] < 0.82


def test_a_margin_is_within_what_two_are_the_same(both, compared):
    assert both("--margin", "5%", torch=0.9)[0] == 4
    code, facts = compared("--margin", "20 %")
    assert (code, lines_of(facts, "worse"), facts["margin"]) == (0, [], 0.2)


def accuracies(worse: float) -> dict[str, list[float]]:
    values = {name: noisy(0.95, 50, noise=0.002) for name in FRAMEWORKS}
    return values | {"torch": [worse * value for value in values["torch"]]}


@pytest.mark.parametrize(
    ("quality", "code", "better", "apart"), [(0.9, 4, [], ["torch"]), (1, 0, ["torch"], [])], ids=["worse", "same"]
)
def test_faster_at_worse_quality_is_not_better(tmp_path, compared, quality, code, better, apart):
    write_run(tmp_path / "a", rates(1), accuracy=accuracies(1))
    write_run(tmp_path / "b", rates(2, torch=1.6), day=1, accuracy=accuracies(quality))
    found, facts = compared()
    assert (found, lines_of(facts, "better"), lines_of(facts, "not comparable")) == (code, better, apart)
    assert lines_of(facts, "worse", "accuracy") == apart
    code, facts = compared("--metric", "accuracy")
    assert {line["metric"] for line in facts["others"][0]["lines"]} == {"accuracy"}


def test_unlike_settings_under_one_name_are_refused_and_named(tmp_path, both, compared, transect):
    both()
    parameters = {"learning_rate": 0.3, "epochs": 3, "only_here": 1}
    for repeat, rate in enumerate(noisy(90, 3)):
        cell = train_cell("torch", repeat)
        write_records(tmp_path / "b", run_record(cell, {"samples_per_second": rate}, parameters=parameters))
    code, facts = compared()
    (refused,) = facts["others"][0]["refused"]
    assert refused["unlike"] == [{"setting": "learning_rate", "base": "0.1", "other": "0.3"}]
    assert code == 0 and "torch" not in str(facts["others"][0]["lines"])
    assert facts["not_compared"] == 1
    assert compared("--complete")[0] == 5
    _, out, _ = transect("compare", tmp_path / "a", tmp_path / "b")
    assert "learning_rate: A 0.1, B 0.3" in " ".join(out.split())


def test_a_layout_of_an_earlier_version_differs_in_what_both_tell(tmp_path, compared):
    layouts = {"a": {"replicas": 2, "servers": 1}, "b": {"replicas": 3, "servers": 1, "workers": []}}
    for name, layout in layouts.items():
        record = run_record(train_cell("torch", 0), {"samples_per_second": 9.0}, details={"layout": layout})
        write_records(tmp_path / name, record)
    _, facts = compared()
    (refused,) = facts["others"][0]["refused"]
    assert refused["unlike"] == [{"setting": "layout.replicas", "base": "2", "other": "3"}]


def test_another_data_set_under_the_same_workload_is_refused(tmp_path, compared):
    for name, sha, day in (("a", "aa", 0), ("b", "bb", 1)):
        write_run(tmp_path / name, rates(1 + day), day=day)
        made = Cell.of(stage="dataset", workload="iris-mlp")
        write_records(tmp_path / name, run_record(made, {}, details={"source_sha256": sha}))
    code, facts = compared()
    assert code == 5 and facts["outcome"] == "not comparable"
    assert len(facts["others"][0]["refused"]) == 6
    assert "dataset source_sha256" in json.dumps(facts)


def test_seeds_of_repeats_are_no_unlike_settings(tmp_path, compared):
    for name, repeats, day in (("a", 5, 0), ("b", 3, 1)):
        for repeat, rate in enumerate(noisy(100, day, repeats)):
            write_records(
                tmp_path / name,
                run_record(
                    train_cell("torch", repeat),
                    {"samples_per_second": rate},
                    parameters={"seed": 17 + repeat},
                    at=START + timedelta(days=day, minutes=repeat),
                ),
            )
    _, facts = compared()
    assert facts["others"][0]["refused"] == [] and len(facts["others"][0]["lines"]) == 1


def test_qualities_of_other_seeds_are_no_gain(tmp_path, compared):
    for name, first, value in (("a", 0, 0.95), ("b", 2, 0.97)):
        for repeat in (first, first + 1):
            numbers = {"samples_per_second": 100.0 + repeat, "accuracy": value + 0.02 * (repeat - first)}
            write_records(tmp_path / name, run_record(train_cell("torch", repeat), numbers))
    _, facts = compared()
    assert lines_of(facts, "open", "accuracy") == ["torch"]


def test_cells_of_one_side_are_listed_and_a_renamed_one_finds_its_counterpart(tmp_path, compared):
    write_run(tmp_path / "a", rates(1))
    write_run(tmp_path / "b", {k: v for k, v in rates(2).items() if k not in ("jax", "keras")}, day=1)
    renamed = train_cell("keras", workload="iris-mlp-ce")
    write_records(tmp_path / "b", run_record(renamed, {"samples_per_second": 300.0}))
    code, facts = compared()
    alone = {lone["cell"].split(".")[1]: lone for lone in facts["others"][0]["only_base"]}
    assert sorted(alone) == ["jax", "keras"] and code == 0
    assert alone["keras"]["nearest"] == renamed.id
    assert alone["keras"]["differs_in"] == {"workload": ['"iris-mlp"', '"iris-mlp-ce"']}
    assert [lone["cell"] for lone in facts["others"][0]["only_other"]] == [renamed.id]


def test_a_cell_that_fails_now_is_worse_and_one_that_is_skipped_is_not_comparable(tmp_path, both, compared):
    both()
    for name, status, cause in (
        ("torch", Status.FAILED, Cause.CRASH),
        ("keras", Status.SKIPPED, Cause.MISSING_DEPENDENCY),
    ):
        for repeat in range(5):
            write_records(tmp_path / "b", run_record(train_cell(name, repeat), {}, status=status, cause=cause))
    code, facts = compared()
    ended = {
        line["cell"].split(".")[1]: (line["outcome"], line["reason"])
        for line in facts["others"][0]["lines"]
        if line["role"] == "outcome"
    }
    assert code == 4
    assert ended["torch"][0] == "worse" and ended["torch"][1].startswith("the other: 5 of 5 ")
    assert "(5 crash)" in ended["torch"][1]
    assert ended["keras"][0] == "not comparable" and "missing-dependency" in ended["keras"][1]


def test_one_wrong_result_makes_a_cell_worse_and_its_speed_no_gain(tmp_path, both, compared):
    both(torch=3)
    write_records(
        tmp_path / "b", run_record(train_cell("torch", 1), {"samples_per_second": 9e9, "equality_ratio": 40.0})
    )
    code, facts = compared()
    assert code == 4 and lines_of(facts, "better") == []


@pytest.mark.parametrize(("repeats", "provisional"), [(1, 5), (2, 4)])
def test_few_repeats_a_side_confirm_nothing(tmp_path, compared, repeats, provisional):
    write_run(tmp_path / "a", {name: values[:repeats] for name, values in rates(1).items()})
    write_run(tmp_path / "b", {n: v[:repeats] for n, v in rates(2, torch=0.2).items()}, day=1)
    code, facts = compared()
    assert (code, facts["outcome"]) == (5, "open")
    assert "confirmed" not in {line["confidence"] for line in facts["others"][0]["lines"] if line["outcome"] == "worse"}
    assert compared("--provisional")[0] == provisional


def test_facts_alone_do_not_make_a_comparison_the_same(tmp_path, compared):
    for name, rate in (("a", 100.0), ("b", 300.0)):
        numbers = {"samples_per_second": rate, "top1_agreement": 1.0}
        write_records(tmp_path / name, run_record(train_cell("torch", 0), numbers, at=START + timedelta(days=rate)))
    code, facts = compared()
    assert (code, facts["outcome"]) == (5, "open")
    assert lines_of(facts, "same", "top1_agreement") == ["torch"]


LIMITS = {"warmup": 20, "min_runs": 30, "max_seconds": 2.0}


def write_latencies(folder: Path, seed: int, settings: dict[str, Any] | None, *, slower: float = 1.0) -> None:
    """Write five repeats of a call; `settings`: `told` of the record, which an older one lacks."""
    details = {"session_options": {"intra_op_num_threads": 1}}
    details |= {} if settings is None else {"told": settings}
    for repeat, latency in enumerate(noisy(1e-3 * slower, seed)):
        cell, at = (infer_cell("c", repeat, exporter="dynamo"), START + timedelta(days=seed, minutes=repeat))
        record = run_record(cell, {"latency": latency}, parameters={}, details=details, at=at)
        write_records(folder, record)


def test_what_a_payload_was_told_besides_its_parameters_is_a_setting(tmp_path, compared):
    write_latencies(tmp_path / "a", 1, {"limits": LIMITS})
    write_latencies(tmp_path / "b", 2, {"limits": LIMITS | {"warmup": 2}}, slower=1.24)
    code, facts = compared()
    (refused,) = facts["others"][0]["refused"]
    assert refused["unlike"] == [{"setting": "spec.limits.warmup", "base": "20", "other": "2"}]
    assert (code, facts["others"][0]["lines"]) == (5, [])


def test_what_is_of_the_machine_or_of_the_number_of_repeats_is_no_setting(tmp_path, compared):
    machine = {"tools": {"node": "20"}, "repeats": 3}
    write_latencies(tmp_path / "a", 1, {"limits": LIMITS} | machine)
    write_latencies(tmp_path / "b", 2, {"limits": LIMITS}, slower=1.24)
    code, facts = compared()
    assert (code, facts["others"][0]["refused"]) == (4, [])
    assert facts["others"][0]["lines"][0]["confidence"] == "confirmed"


@pytest.mark.parametrize("base", [None, {"limits": LIMITS}])
def test_records_that_lack_what_their_payload_was_told_give_nothing_confirmed(tmp_path, compared, base):
    write_latencies(tmp_path / "a", 1, base)
    write_latencies(tmp_path / "b", 2, None, slower=1.24)
    code, facts = compared()
    (line,) = facts["others"][0]["lines"]
    assert (code, line["outcome"], line["confidence"]) == (5, "worse", "provisional")
    assert "settings may differ" in line["reason"]


# Plans of before 2026-11-26 call it aims.
@pytest.mark.parametrize("key", ["analysis_plan", "aims"])
def test_without_an_option_the_margin_is_the_base_studys_and_another_studys_own_is_named(
    tmp_path, both, compared, transect, key
):
    both(torch=0.93)
    for folder, margin in (("a", 0.2), ("b", 0.05)):
        plan = {"study": {"name": folder}, key: {"margin": margin, "pairs": []}}
        (tmp_path / folder / "plan.json").write_text(json.dumps(plan))
    code, facts = compared()
    assert (code, lines_of(facts, "worse"), facts["margin"]) == (0, [], 0.2)
    assert [facts["base"]["margin"], facts["others"][0]["margin"]] == [0.2, 0.05]
    said = " ".join(transect("compare", tmp_path / "a", tmp_path / "b")[1].split())
    assert "margin 20 % (5 % by the study of" in said
    code, facts = compared("--margin", "5%")
    assert (code, lines_of(facts, "worse"), facts["margin"]) == (4, ["torch"], 0.05)
