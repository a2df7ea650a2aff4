"""Who answers first and who serves most: by which time, and with which right to say it."""

from __future__ import annotations

from typing import Any

from make_runtime_records import infer_record, runs
from runtime_reports import Made, findings

from transect.domain.record import Record


def _inside(runtime: str, latency: float, parts: list[str], **more: Any) -> list[Record]:
    """Repeats of a language whose Run is the whole call."""
    made = [
        infer_record(runtime, latency * t, n, details={"run_includes": parts},
                     metrics={"bind_time": 0.0, "copy_time": 0.0, "end_to_end_time": latency * t},
                     **more)
        for n, t in enumerate((1.0, 1.001, 1.002, 1.003, 1.004, 1.005))
    ]  # fmt: skip
    return made


def _without(records: list[Record], *names: str) -> list[Record]:
    return [
        record.model_copy(update={"metrics": [m for m in record.metrics if m.name not in names]})
        for record in records
    ]


def test_whole_calls_race_where_one_language_copies_inside_of_run() -> None:
    # Run alone: cpp 100 us and go 110 us; whole calls: cpp 120 us and go 110 us.
    cpp = [infer_record("cpp", 1e-4 * t, n, metrics={"end_to_end_time": 1.2e-4 * t})
           for n, t in enumerate((1.0, 1.001, 1.002, 1.003, 1.004, 1.005))]  # fmt: skip
    first, most = findings(*cpp, *_inside("go", 1.1e-4, ["copy"]))["runtime"]
    assert first.claim.startswith("go · from torch-dynamo answers first, 110 µs end to end, 1.09")
    assert most.claim.startswith("go · from torch-dynamo serves most, 9\u202f068 samples/s end to")
    assert all("go's Run includes copy" in one.evidence for one in (first, most))
    assert {first.sureness, most.sureness} == {"firm"}


def test_the_throughput_of_whole_calls_is_by_batch() -> None:
    small = [*runs("cpp", 1e-4), *_inside("go", 1e-4, ["copy"])]
    large = [*runs("cpp", 4e-4, batch=8), *_inside("go", 8e-4, ["copy"], batch=8)]
    most = findings(*small, *large)["runtime"][1]
    # 8 samples in 4.3e-4 s, medians of six runs that differ by a thousandth each.
    assert "cpp" in most.claim and "serves most, 18\u202f558 samples/s end to end" in most.claim


def test_run_alone_races_where_all_languages_do_the_same_inside_of_it() -> None:
    same = [*_inside("python", 1e-4, ["bind"]), *_inside("go", 2e-4, ["bind"])]
    first = findings(*same)["runtime"][0]
    assert "python · from torch-dynamo answers first, 100 µs, 2 times" in first.claim


def test_without_whole_calls_run_alone_is_said_to_hold_more() -> None:
    old = _without(runs("cpp", 1e-4), "end_to_end_time")
    first = findings(*old, *_inside("go", 2e-4, ["copy"]))["runtime"][0]
    assert "100 µs, 2 times" in first.claim and "go's Run includes copy" in first.evidence


def test_calls_beyond_those_of_c_are_whole_calls_where_run_holds_more_elsewhere() -> None:
    identity = {"workload": "identity-1k", "exporter": "onnx"}
    c = runs("c", 1e-6, metrics={"end_to_end_time": 2e-6}, **identity)
    rust = runs("rust", 1.1e-6, metrics={"end_to_end_time": 4e-6}, **identity)
    records = [*c, *rust, *_inside("go", 3e-6, ["bind", "copy"], **identity)]
    [call] = findings(*records)["call"]
    assert "takes 2 µs in C end to end; beyond that take go 1" in call.claim
    assert call.claim.index("go 1") < call.claim.index("rust 2")
    assert "go's Run includes bind and copy" in call.evidence
    listed = Made(*records).table("Calls beside those of C")
    assert [row["Runtime"].split(" · ")[1] for row in listed] == ["c", "go", "rust"]
    assert {row["Compared by"] for row in listed} == {"end to end"}
    alone = Made(*c, *rust).table("Calls beside those of C")
    assert {row["Compared by"] for row in alone} == {"Run"}


def test_an_output_that_is_no_table_of_classes_was_compared_too() -> None:
    records = [*runs("cpp", 1e-4), *runs("c", 2e-4)]
    boxes = findings(*_without(records, "top1_agreement"))["runtime"][0]
    assert boxes.sureness == "firm" and "outputs checked" in boxes.evidence
    nobody = _without(records, "top1_agreement", "max_abs_difference", "max_rel_difference")
    blind = findings(*nobody)["runtime"][0]
    assert blind.sureness == "tentative"
    assert "outputs not compared with the framework's" in blind.evidence
