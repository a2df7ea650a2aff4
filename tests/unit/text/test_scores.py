"""Scores of probabilities, on tickets that can be counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from transect.text import scores

# Classes told: 0, 0, 1, 2; true ones: 0, 1, 1, 0.
SHARES = np.array([[0.7, 0.2, 0.1], [0.5, 0.4, 0.1], [0.2, 0.6, 0.2], [0.25, 0.0, 0.75]], np.float32)
TRUE = np.array([0, 1, 1, 0])


def test_accuracy_counts_the_likeliest():
    assert [scores.accuracy_at(SHARES, TRUE, k) for k in (1, 2, 3)] == [0.5, 1.0, 1.0]


def test_of_equal_shares_the_first_class_counts_as_for_argmax():
    equal = np.full((3, 3), 1 / 3, np.float32)
    assert scores.places_of(equal, np.arange(3)).tolist() == [0, 1, 2]


def test_confusion_has_true_classes_in_rows():
    assert scores.confusion(SHARES, TRUE).tolist() == [[1, 0, 1], [1, 1, 0], [0, 0, 0]]


def test_macro_f1_leaves_out_a_class_that_nobody_has_or_was_told():
    table = np.array([[2, 1, 0], [0, 3, 0], [0, 0, 0]])
    assert scores.macro_f1(table) == pytest.approx((4 / 5 + 6 / 7) / 2)


def test_an_impossible_truth_costs_much_but_not_infinity():
    assert scores.log_loss(SHARES[3:], np.array([1])) == pytest.approx(-np.log(scores.MIN_PROBABILITY))
    expected = -np.log([0.7, 0.4, 0.6, 0.25]).mean()
    assert scores.log_loss(SHARES, TRUE) == pytest.approx(expected, rel=1e-6)


def test_calibration_compares_confidence_with_accuracy():
    ranges = scores.calibration(SHARES, TRUE)
    # 0.5, 0.6, 0.7 and 0.75, the middle ones a little more or less in float32.
    assert [row["tickets"] for row in ranges[:5]] == [0] * 5 and ranges[5]["tickets"] >= 1
    assert sum(row["tickets"] for row in ranges) == 4
    assert ranges[0]["confidence"] is None and ranges[0]["accuracy"] is None
    sure = np.array([[1.0, 0.0], [1.0, 0.0]], np.float32)
    assert scores.calibration_error(scores.calibration(sure, np.array([0, 1]))) == 0.5


def test_who_answers_less_answers_better():
    rows = {row["threshold"]: row for row in scores.answers(SHARES, TRUE)}
    assert rows[0.0] == {"threshold": 0.0, "answered": 1.0, "accuracy": 0.5}
    assert rows[0.55]["answered"] == 0.75 and rows[0.55]["accuracy"] == pytest.approx(2 / 3)
    assert rows[0.95] == {"threshold": 0.95, "answered": 0.0, "accuracy": None}
