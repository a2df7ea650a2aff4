"""Published step times of Megatron, predicted by a calibration that has not seen them."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from transformer_steps import A100, Calibration, Transformer, calibrate, held_out_errors

from transect.simulation.networks import Network
from transect.simulation.pipelines import Pipeline

TIMES = Path(__file__).resolve().parents[2] / "data" / "simulation" / "megatron-step-times.csv"
# Calculon's own mean and worst error on these eight (version of 2023).
CALCULON = (0.0365, 0.0887)


def published() -> tuple[list[Transformer], list[float], list[str]]:
    lines = [line for line in TIMES.read_text().splitlines() if not line.startswith("#")]
    models, times, names = [], [], []
    for row in csv.DictReader(lines):
        keys = {key: int(row[key]) for key in Transformer.__slots__ if key in row}
        models.append(Transformer(**keys, selective=row["recompute"].startswith("selective")))
        times.append(float(row["step_time_s"]))
        names.append(row["model"])
    return models, times, names


def test_a_model_that_was_held_out_is_predicted_better_than_by_calculon():
    models, times, names = published()
    assert len(models) == 8
    errors = np.abs(held_out_errors(models, times, names, A100))
    assert errors.mean() < CALCULON[0]
    assert errors.max() < CALCULON[1]


def test_what_is_fitted_is_physical():
    models, times, _ = published()
    fitted = calibrate(models, times, A100)
    # Nothing runs faster than its data sheet, and nothing at less than half of it.
    assert ((fitted.vector >= 1) & (fitted.vector <= 2)).all(), fitted


def test_errors_are_those_of_others_calibrations():
    models, times, names = published()
    wrong = [*times[:-2], times[-2] * 2, times[-1] * 2]
    own = held_out_errors(models, times, names, A100)
    # Doubling what is held out changes the others' fit, and its own error alone by itself.
    assert held_out_errors(models, wrong, names, A100)[-1] == pytest.approx((own[-1] + 1) / 2 - 1)


def test_products_are_counted_as_in_the_paper():
    model = published()[0][2]
    parts, _ = model.parts(A100)
    b, s, h, layers, v = 64, model.sequence, model.hidden, model.layers, 51_200
    # Korthikanti et al., equation 8 with a second forward pass: 96 b s l h^2 (1 + s/6h) + 6 b s h v
    # (their own counts the logits' second forward pass too).
    flops = 96 * b * s * layers * h * h * (1 + s / (6 * h))
    ranks = model.tensor_parallel * model.pipeline_parallel
    turns = 1 + (model.pipeline_parallel - 1) / model.interleaving / b
    logits = 6 * b * s * h * v / model.tensor_parallel
    assert parts[0] * A100.flops_per_s == pytest.approx(flops / ranks * turns + logits)


@pytest.mark.parametrize("index", range(2, 8, 2))
def test_the_pipelines_turns_are_those_of_the_simulated_one(index):
    model = published()[0][index]
    parts = model.pipeline_parallel * model.interleaving
    run = Pipeline(
        stages=model.pipeline_parallel,
        micro_batches=model.global_batch,
        schedule="interleaved" if model.interleaving > 1 else "1f1b",
        forward_s=np.ones(parts),
        backward_s=np.full(parts, 2.0),
        passed_bytes=np.zeros(parts - 1),
        networks=(Network(0.0, 0.0),) * (parts - 1),
    ).run()
    turns = model.global_batch + (model.pipeline_parallel - 1) / model.interleaving
    assert run.ends.max() == pytest.approx(3 * model.interleaving * turns)


def test_a_calibration_of_one_is_the_data_sheet():
    model = published()[0][0]
    parts, rest = model.parts(A100)
    assert model.step_s(A100, Calibration()) == pytest.approx(parts.sum() + rest)
