"""Logs of trainings in many dialects, as people have them."""

from __future__ import annotations

import pytest
from learning_logs import (
    BERT,
    DEEPSPEED,
    DLL,
    DLLL,
    ESTIMATOR,
    FAIRSEQ,
    FAIRSEQ_JSON,
    HF,
    SPEED,
    TRAININGS,
    megatron,
    normalised,
    only_run,
    printed,
)


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("dllogger", 6744.25),
        ("dllogger units", 4200.5),
        ("dllogger json", 71.0),
        ("neuron", 2.5),
        ("mxnet", 540.4),
        ("mxnet gluon", 1200.0),
        ("tensorflow", 3584.0),
        ("nvidia-bert-tensorflow", 65.0),
        ("fairseq", None),
        ("fairseq json", None),
        ("megatron", 254.473),
        ("deepspeed", 58.3),
        ("hf-trainer", 20.0),
    ],
)
def test_trainings_of_each_variant(name: str, rate: float | None) -> None:
    run = only_run("noise\n" + TRAININGS[name])
    assert (run.benchmark, run.variant) == ("dl-training", name.split()[0])
    assert run.status == "ok", run.reason
    assert normalised(run).get("samples_per_second") == rate


def test_training_values() -> None:
    run = only_run(DLL)
    assert run.samples["total_ips"].values == [6700.5, 6800.5, 6750.5]
    assert printed(run, "total_ips", "median") == "6750.5"
    assert (run.parameters["arch"], run.parameters["batch_size"]) == ("resnet50", 256)
    assert only_run(DLLL).parameters["amp"] is True
    run = only_run(FAIRSEQ)
    assert printed(run, "epoch_wps") == "26603" and printed(run, "valid_loss") == "10.5"
    assert normalised(run)["train_time"] == 95.5 and run.parameters["world_size"] == 16
    assert printed(only_run(FAIRSEQ_JSON), "epoch_wps") == "2512.9"
    run = only_run(megatron())
    assert printed(run, "elapsed time per iteration (ms)", "median") == "502.0"
    assert normalised(run)["step_time"] == pytest.approx(0.502)
    assert run.parameters["planned_iterations"] == 4
    run = only_run(HF)
    assert normalised(run)["train_time"] == 50.0 and printed(run, "eval_accuracy") == "0.75"
    assert run.parameters["total_optimization_steps"] == 100
    run = only_run(ESTIMATOR)
    assert printed(run, "eval_top_1_accuracy") == "0.25" and normalised(run)["train_time"] == 142.0
    assert only_run(BERT).samples["loss"].values == [5.9, 5.8]  # every line stands there twice
    run = only_run(SPEED)
    assert printed(run, "epoch_time") == "47.5" and printed(run, "train_accuracy") == "0.11"
    begin = "INFO:root:start with arguments Namespace(disp_batches=20, num_epochs={})\n"
    assert [only_run(begin.format(count) + SPEED).status for count in (2, 3)] == ["ok", "truncated"]


def test_trainings_in_other_dress() -> None:
    assert only_run(megatron(prefix="[2025-08-01 07:19:37] ")).status == "ok"
    legacy = " iteration 5/ 5 | elapsed time per iteration (ms): 51.5 | learning rate 1.5E-04 | lm loss 9.7E+00 |\n"
    assert printed(only_run(legacy), "lm loss") == "9.7E+00"
    quoted = HF.replace("'loss': 2.5", "'loss': '2.5'").replace("50.0, 'train_s", "'50.0', 'train_s")
    assert only_run(quoted).status == "ok" and only_run(quoted).samples["loss"].values == [2.5, 1.5]
    logged = HF.replace("***** Run", "[INFO|trainer.py:1516] 2023-05-10 09:09:22,555 >> ***** Run")
    assert only_run(logged).parameters["num_epochs"] == 1
    labelled = "".join(f"3: {line}\n" for line in HF.splitlines())
    assert only_run(labelled).parameters["rank"] == 3
    mixed = only_run(HF.replace("{'eval", DEEPSPEED + "{'eval"))
    assert mixed.variant == "hf-trainer" and mixed.parameters["also_prints"] == ["deepspeed"]
    old = "[2021-01-01 00:00:00,1] [INFO] [timer.py:157:stop] 0/10, SamplesPerSec=22.5\n"
    assert normalised(only_run(old)) == {"samples_per_second": 22.5}
