"""Storage as a bound of input and checkpoints: what counts as a rate of storage, and the least times by hand."""

from __future__ import annotations

from typing import Any

import pytest
from make_records import make_record
from make_retrain_records import retrain_record
from said_of_records import Made, findings, only

from factories import bench_cell, train_cell
from transect.analysis.storage import storage_rates
from transect.domain.cell import Cell
from transect.domain.record import LogPoint, MetricValue, Record

GB = 1e9


def bench(name: str, rates: dict[str, float], parameters: dict[str, Any] | None = None, **axes: Any) -> Record:
    metrics = [
        MetricValue.of("storage_bandwidth", value, phase, LogPoint(series="bandwidth", phase=phase))
        for phase, value in rates.items()
    ]
    details = {"runs": [{"status": "ok", "benchmark": name, "parameters": parameters or {}}]}
    return make_record(bench_cell(name, **axes), metrics, details=details)


def training(step_s: float, **details: Any) -> Record:
    facts = {"steps_per_epoch": 10, "epoch_bytes": 2e9, "state_bytes": 5e8, "global_batch": 16, **details}
    return make_record(train_cell(), {"step_time": step_s, "input_time": step_s / 4, "accuracy": 0.9}, details=facts)


PROBE = bench(
    "file-probe", {"read-own-easy-direct": 2 * GB, "read-own-hard-dropped": GB, "write-own-easy-direct-synced": GB}
)


def test_the_least_times_are_bytes_over_the_best_rates() -> None:
    (row,) = Made("hardware", PROBE, training(0.5)).table("What storage allows")
    assert row["Workload"] == "iris-mlp"
    assert (row["Read once, at least"], row["Fastest epoch"]) == ("1 s", "5 s")
    assert (row["Getting batches, an epoch"], row["Checkpoint, at least"]) == ("1.25 s", "500 ms")


def test_storage_stands_among_the_bounds_without_a_training_too() -> None:
    rows = Made("hardware", PROBE).table("What the bounds in this report are made of")
    assert [(row["Bound"], row["With"], row["At best"]) for row in rows] == [
        ("Storage, read", "read-own-easy-direct", "2 GB/s"),
        ("Storage, write", "write-own-easy-direct-synced", "1 GB/s"),
    ]


def test_prose_of_a_training_and_its_storage() -> None:
    finding = only("storage", PROBE, training(0.5))
    assert finding.text == (
        "iris-mlp: reading its training data once takes at least 1 s from this storage, 20 % of its fastest epoch."
    )
    assert finding.evidence == (
        "1.86 GiB at 2 GB/s (file-probe, read-own-easy-direct), epoch 5 s; "
        "a checkpoint of 477 MiB at least 500 ms at 1 GB/s (file-probe, write-own-easy-direct-synced)"
    )


def test_an_epoch_that_is_faster_than_its_storage_had_its_data_in_memory() -> None:
    assert "as from memory" in only("storage", PROBE, training(0.05)).claim


@pytest.mark.parametrize(
    ("record", "ways"),
    [
        (bench("fio", {"read": GB, "write": GB}, {"invalidate": "1", "direct": "0"}), {"read", "write"}),
        (bench("fio", {"random-read read": GB}, {"direct": "1", "invalidate": "0"}), {"read"}),
        (bench("fio", {"read": GB, "write": GB}, {"invalidate": "0"}), {"write"}),
        (bench("fio", {"read": GB}), set()),
        (bench("ior", {"read": GB, "write": GB}), {"write"}),
        (bench("ior", {"read": GB, "write": GB}, nodes=2), {"read", "write"}),
        (bench("io500", {"ior-easy-read": GB, "ior-hard-write": GB}), {"write"}),
    ],
)
def test_what_memory_may_have_answered_is_no_bound(record: Record, ways: set[str]) -> None:
    assert set(storage_rates([record])) == ways


def test_the_quickest_checkpoint_is_set_beside_the_bound() -> None:
    times = {"rust": 3e-3, "c": 1e-3, "python": 2e-3}
    retrained = [retrain_record(name, metrics={"checkpoint_time": s}, workload="iris-mlp") for name, s in times.items()]
    (row,) = Made("hardware", PROBE, training(0.5), *retrained).table("What storage allows")
    assert row["Checkpoint, measured"] == "1 ms"


def test_without_a_rate_or_without_bytes_nothing_is_said() -> None:
    wrong = training(0.5, epoch_bytes=None)
    for records in ([training(0.5)], [PROBE], [PROBE, wrong]):
        assert "storage" not in findings(*records)
    cached: Cell = bench_cell("file-probe")
    assert storage_rates([make_record(cached, {"metadata_rate": 1e4})]) == {}
