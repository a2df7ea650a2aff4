"""Logs of MLPerf: what they state, and what is wrong with them."""

from __future__ import annotations

import pytest
from learning_logs import OLD, T0, mll, mllog, mlperf, normalised, only_run, printed
from log_scan import scan


def test_mlperf_time_to_train_is_stop_minus_start_in_the_digits_of_the_log() -> None:
    run = only_run(mlperf())
    assert (run.benchmark, run.variant, run.status, run.line) == ("mlperf-training", "resnet", "ok", 1)
    assert printed(run, "time_to_train") == "5.123" and printed(run, "eval_accuracy") == "0.7601"
    assert normalised(run) == {"time_to_quality": 5.123, "accuracy": 0.7601}
    assert run.parameters["evaluations"] == 2 and run.parameters["global_batch_size"] == 256
    assert run.parameters["opt_learning_rate_decay_boundary_epochs"] == [16, 32]
    assert run.samples["eval_accuracy"].values == [0.5, 0.7601]
    assert run.samples["throughput"].values == [2500.5, 2501.5]


@pytest.mark.parametrize(
    ("name", "key", "benchmark", "direction"),
    [
        ("resnet", "eval_accuracy", "mlperf-training", "higher"),
        ("rnnt", "eval_accuracy", "mlperf-training", "lower"),  # a word error rate
        ("llama2_70b_lora", "eval_accuracy", "mlperf-training", "lower"),  # a loss
        ("cosmoflow", "eval_error", "mlperf-hpc", "lower"),
        ("deepcam", "eval_accuracy", "mlperf-hpc", "higher"),
        ("oc20", "eval_error", "mlperf-hpc", "lower"),
        ("openfold", "eval_accuracy", "mlperf-hpc", "higher"),
    ],
)
def test_mlperf_benchmark_and_direction_of_its_quality(name: str, key: str, benchmark: str, direction: str) -> None:
    run = only_run(mlperf(name, key, (0.9, 0.01)))
    found = run.metric(key)
    assert (run.benchmark, run.status) == (benchmark, "ok")
    assert found is not None and found.direction == direction


def test_mlperf_of_version_0_5_states_no_status() -> None:
    run = only_run(OLD)
    assert (run.variant, run.version, run.status) == ("transformer", "0.5.0", "ok")
    assert float(printed(run, "time_to_train")) == 20.0
    assert printed(run, "eval_accuracy") == "25.25" and run.parameters["evaluations"] == 2
    assert run.parameters["opt_name"] == "adam" and run.parameters["run_set_random_seed"] == 11
    assert any("no status" in warning for warning in run.warnings)


def test_mlperf_lines_behind_loggers_and_doubled_by_them() -> None:
    doubled = "".join(
        f"{line}\nI0122 12:00:14.874658 140303790921536 mlperf_log.py:136] NCF_RAW_{line}\n"
        for line in OLD.splitlines()
    )
    for text in (doubled, doubled.replace("I0122", "\x1b[1mI0122"), OLD.replace(":::", "x0: :::")):
        run = only_run(text)
        assert run.parameters["evaluations"] == 2 and run.status == "ok"


def test_mlperf_0_6_and_a_deferred_value() -> None:
    text = OLD.replace("v0.5.0", "v0.6.0").replace("run_stop", 'run_stop: {"status": "success"}')
    run = only_run(text)
    assert (run.version, run.parameters["run_status"]) == ("0.6.0", "success")
    uuid = "1df9b2ab-3dc8-478b-8682-ce574b800024"
    late = text.replace('{"epoch": 1, "value": 25.25}', f'"DEFERRED: {uuid}"')
    late = late.replace("eval_target: 25.0\n", "x: 1\n")
    assert only_run(late).status == "invalid"
    settled = late + f":::MLPv0.5.0 [{uuid}][1541632790.1][25.5]\n"
    assert printed(only_run(settled), "eval_accuracy") == "25.5"


def test_mlperf_0_6_without_a_number_in_its_lines() -> None:
    run = only_run(mll("gnmt", (21.5, 24.25)))
    assert (run.benchmark, run.variant, run.version, run.status) == ("mlperf-training", "gnmt", "0.6", "ok")
    assert float(printed(run, "time_to_train")) == 200.625 and run.parameters["evaluations"] == 2
    assert printed(run, "eval_accuracy") == "24.25" and run.parameters["global_batch_size"] == 128
    assert run.parameters["run_status"] == "success" and run.parameters["last_epoch_num"] == "1"
    labelled = "".join(f"{i % 4}: {x}" for i, x in enumerate(mll().splitlines(keepends=True)))
    assert only_run(labelled).status == "ok"


@pytest.mark.parametrize(
    "values",
    [
        ([0.2, 0.19], [0.378, 0.341]),
        ({"BBOX": 0.2, "SEGM": 0.19}, {"BBOX": 0.378, "SEGM": 0.341}),
        ({"accuracy": {"BBOX": 0.2, "SEGM": 0.19}}, {"accuracy": {"BBOX": 0.378, "SEGM": 0.341}}),
    ],
)
def test_mlperf_0_6_two_accuracies_of_one_evaluation(values: tuple[object, ...]) -> None:
    run = only_run(mll("mask", values))
    assert (printed(run, "eval_accuracy", "BBOX"), printed(run, "eval_accuracy", "SEGM")) == ("0.378", "0.341")
    assert run.status == "ok" and run.parameters["evaluations"] == 2


def test_a_quoted_accuracy_is_a_number() -> None:
    run = only_run(mll("transformer", ("21.5", "25.125")))
    assert printed(run, "eval_accuracy") == "25.125" and run.parameters["evaluations"] == 2


def test_several_accuracies_without_names_are_told_apart_by_their_place() -> None:
    run = only_run(mll("other", ([0.2, 0.19],)))
    assert (printed(run, "eval_accuracy", "1"), printed(run, "eval_accuracy", "2")) == ("0.2", "0.19")


def test_a_submission_without_a_time_is_of_the_run_that_it_precedes() -> None:
    runs = scan(mll("gnmt", (24.5,)) + mll("ssd", (0.24,), start=1_559_000_000.0))
    assert [(r.variant, r.status) for r in runs] == [("gnmt", "ok"), ("ssd", "ok")]
    assert [printed(r, "eval_accuracy") for r in runs] == ["24.5", "0.24"]


def test_mlperf_ranks_repeat_lines_and_make_one_run() -> None:
    lines = mlperf().splitlines(keepends=True)
    apart = "".join(line * 8 for line in lines)
    labelled = "".join(f"{rank}: {line}" for line in lines for rank in range(8))
    for text in (apart, labelled, "".join(f"[1,{i % 4}]<stdout>:{x}" for i, x in enumerate(lines))):
        run = only_run(text)
        assert run.parameters["evaluations"] == 2 and run.status == "ok"


def test_mlperf_several_runs_in_one_file() -> None:
    text = mlperf() + mlperf(start=T0 + 100_000, status="aborted") + mlperf("bert") + OLD + mlperf()
    runs = scan(text)
    assert [r.variant for r in runs] == ["resnet", "resnet", "bert", "transformer", "resnet"]
    assert [r.status for r in runs] == ["ok", "failed", "ok", "ok", "ok"]
    assert [r.line for r in runs] == sorted({r.line for r in runs})
    restarted = mlperf()[: mlperf().index("run_stop") - 200] + mlperf(start=T0 + 900_000)
    assert [r.status for r in scan(restarted)] == ["truncated", "ok"]


def test_mlperf_epoch_num_that_counts_samples() -> None:
    text = mlperf("openfold", values=(0.81,)).replace('"epoch_num": 1', '"epoch_num": 107520')
    run = only_run(text)
    assert run.parameters["last_epoch_num"] == "107520"
    assert run.parameters["epoch_num_counts"] == "samples"
    assert only_run(mlperf()).parameters["epoch_num_counts"] == "epochs"


def test_mlperf_evaluation_after_run_stop() -> None:
    late = mlperf() + mllog("eval_accuracy", T0 + 9000, 0.99, epoch_num=3)
    run = only_run(late)
    assert printed(run, "eval_accuracy") == "0.7601" and run.parameters["evaluations"] == 3
    out_of_order = mlperf() + mllog("eval_accuracy", T0 + 5000, 0.77, epoch_num=3)
    assert printed(only_run(out_of_order), "eval_accuracy") == "0.77"
    only = mlperf(values=()) + mllog("eval_accuracy", T0 + 9000, 0.77, epoch_num=3)
    assert any("after run_stop" in suspicion for suspicion in only_run(only).suspicions)


def test_mlperf_hpc_staging() -> None:
    staged = mlperf("cosmoflow", "eval_error", (0.3, 0.12)).replace(
        mllog("run_start", T0),
        mllog("run_start", T0) + mllog("staging_start", T0 + 5) + mllog("staging_stop", T0 + 505),
    )
    run = only_run(staged)
    assert printed(run, "staging_time") == "0.500" and printed(run, "time_to_train") == "5.123"


def test_mlperf_broken_lines_are_counted() -> None:
    text = mlperf() + ':::MLLOG {"key": "epoch_stop", "time_ms": 17\n:::MLLOG [\n:::MLLOG {]\n'
    assert any("cut or broken" in warning for warning in only_run(text).warnings)


def test_a_second_run_that_died_before_run_start_is_a_run() -> None:
    died = mllog("cache_clear", T0 + 90_000, True) + mllog("init_start", T0 + 91_000)
    died += mllog("submission_benchmark", T0 + 92_000, "resnet")
    first, second = scan(mlperf() + died + "RuntimeError: out of memory\n")
    assert (first.status, first.warnings) == ("ok", only_run(mlperf()).warnings)
    assert (second.status, second.variant) == ("failed", "resnet")
    assert "out of memory" in second.reason
    # What a script says after the run is part of it.
    assert [run.status for run in scan(mlperf() + mllog("cache_clear", T0 + 90_000, True))] == ["ok"]


def test_a_rank_that_aborted_outweighs_the_one_whose_log_came_first() -> None:
    late = mlperf(status="aborted").replace('"run_start"', '"rank_start"')
    run = only_run(mlperf() + late)
    assert run.status == "failed" and "aborted" in run.reason
    assert only_run(mlperf() + late.replace("aborted", "success")).status == "ok"


def test_a_run_that_died_in_its_setup_is_no_part_of_the_next():
    died = mllog("cache_clear", T0 - 99_000, True) + mllog("init_start", T0 - 98_000)
    for between, gap in (("RuntimeError: NCCL failure\n", 0), ("", 700_000)):
        runs = scan(died + between + mlperf(start=T0 + gap))
        assert [run.status for run in runs][-1] == "ok" and len(runs) == 2, between
        assert runs[0].status in ("failed", "truncated") and "before run_start" in runs[0].reason
    # Ranks of one run begin one after the other.
    assert len(scan(died + mlperf())) == 1
