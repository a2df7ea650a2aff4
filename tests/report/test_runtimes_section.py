"""The section on runtimes: what stands in it, what does not, and how it looks."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from make_runtime_records import infer_record, load_record, runs, seen
from said_of_records import Made as Section
from said_of_records import rows

from transect.domain.record import Cause, Record, Status

WRONG = {"status": Status.FAILED, "cause": Cause.WRONG_RESULT, "message": "3 elements are NaN"}
SKIPPED = {"status": Status.SKIPPED, "cause": Cause.UNSUPPORTED, "message": "no CUDA device"}
CRASH = {"status": Status.FAILED, "cause": Cause.CRASH, "message": "signal 11 in the session"}

# The section that records make.
Made = partial(Section, "runtimes")


def many(*records: list[Record]) -> list[Record]:
    return [record for part in records for record in part]


def matrix() -> list[Record]:
    return [
        *runs("cpp", 1e-4),
        *runs("rust", 1.0003e-4),
        *runs("python", 2e-4),
        *runs("torch-eager", 5e-4),
        infer_record("go", 1.0, fields=CRASH),
        infer_record("java", 1e-9, fields=WRONG),
        *runs("cpp", 3e-4, exporter="torchscript"),
        infer_record("python", 1.0, provider="cuda", fields=SKIPPED),
        infer_record("cpp", 1.0, provider="cuda", fields=SKIPPED),
    ]


def under_load(**changes: Any) -> list[Record]:
    loads = (100.0, 4000.0, 8000.0, 16000.0)
    return [
        load_record(name, load, 1, capacity, **changes)
        for name, capacity in (("cpp", 9000.0), ("python", 5000.0))
        for load in loads
    ]


def sizes(*names: str) -> list[Record]:
    """Make models that hand 1 and 1000 numbers on, in C and others."""
    latencies = {"c": 1e-6, "python": 5e-6, "rust": 1.001e-6}
    return many(
        *(
            runs(name, latencies[name] * (1 + size / 100), workload=f"identity-{word}", exporter="onnx")
            for word, size in (("1", 1), ("1k", 1000))
            for name in names
        )
    )


def other_options() -> list[Record]:
    basic = runs("rust", 2e-4, options="basic", details={"session_options": {"graph_optimization_level": "basic"}})
    unset = runs("cpp", 1.1e-4, options="language-defaults", details={"session_options": {}})
    return [*runs("cpp", 1e-4), *runs("rust", 1e-4), *basic, *unset]


def conditions() -> list[Record]:
    other = {"session_options_seen": seen(enable_mem_pattern=False), "options_not_set": ["enable_mem_pattern"]}
    return [
        *runs("cpp", 1e-4),
        *runs("c", 1e-4),
        *runs("java", 1e-4, details=other),
        *runs("go", 1e-4, told=False),
        *runs("torch-eager", 1e-3),
    ]


def profiled() -> list[Record]:
    def ratio(runtime: str, *values: float, workload: str = "tickets") -> list[Record]:
        return [
            infer_record(runtime, 1e-4, n, workload=workload, details={"run_over_profiler": value})
            for n, value in enumerate(values)
        ]

    return [
        *ratio("cpp", 1.01, 1.02, 1.9),
        *ratio("go", 1.5),
        *runs("c", 1e-4, 1),
        *ratio("go", 1.25, 1.25, workload="images"),
    ]


def fourteen_models() -> list[Record]:
    return many(*(runs(name, 1e-4, 1, workload=f"model-{n:02}") for n in range(14) for name in ("cpp", "c")))


def test_prose(snapshot: Any) -> None:
    made = (matrix, other_options, conditions, profiled, fourteen_models)
    told = {each.__name__: Made(*each()).prose for each in made}
    told["under_load"] = Made(*runs("cpp", 1e-4), *under_load()).prose
    told |= {"sizes": Made(*sizes("c", "python")).prose, "sizes without C": Made(*sizes("rust")).prose}
    assert told == snapshot


def test_the_matrix_has_models_by_runtimes_with_ratios_and_reasons() -> None:
    made = Made(*matrix())
    first, second = made.table("Models by runtimes, on cpu,")
    assert first["From"] == "torch-dynamo" and first["cpp"] == "✓ 100 µs"
    assert (first["rust"], first["python"]) == ("✓ ≈ 1.000", "✓ 2")
    assert (first["go"], first["java"], first["torch-eager"]) == ("crash", "wrong output", "✓ 5")
    told = (second["cpp"], second["python"], second["torch-eager"])
    assert told == ("✓ 301 µs", "–", "✓ 1.67")
    assert made.table("Models by runtimes, on cuda")[0]["cpp"] == "unsupported"
    why = [rows(one) for one in made.tables if one.folded.startswith("Why 2 runs of the matrix")]
    reasons = [row["Reason"] for own in why for row in own]
    assert reasons == ["signal 11 in the session", "3 elements are NaN", *["no CUDA device"] * 2]
    assert "1 point left out" in made.text and "2 skipped" in made.text


def test_a_run_that_failed_once_says_in_how_many_it_passed() -> None:
    lost = infer_record("rust", 1.0, 6, fields=CRASH)
    [row] = Made(*runs("cpp", 1e-4), *runs("rust", 2e-4), lost).table("Models by runtimes")
    assert row["rust"] == "✓ 6 of 7: 2"


def test_without_cpp_there_is_a_pass_and_no_ratio() -> None:
    made = Made(*runs("rust", 1e-4), *runs("python", 2e-4))
    [row] = made.table("Models by runtimes")
    assert (row["rust"], row["python"]) == ("✓ 100 µs", "✓ 200 µs")
    assert not [chart for chart in made.charts if chart.title.startswith("Latency over that")]


def test_a_provider_of_one_runtime_has_a_matrix_too() -> None:
    alone = runs("python-openvino", 1e-4, provider="openvino")
    [row] = Made(*runs("cpp", 1e-4), *alone).table("Models by runtimes, on openvino")
    assert row["python-openvino"] == "✓ 100 µs"


def test_what_is_wrong_has_no_time_in_any_chart() -> None:
    made = Made(
        *runs("cpp", 1e-4),
        *runs("c", 1.1e-4),
        infer_record("java", 1e-9, fields=WRONG),
        *runs("rust", 1e-9, metrics={"nonfinite_outputs": 2}),
    )
    for chart in made.charts:
        assert "java" not in chart.svg + repr(chart.table), chart.title
        assert "rust" not in chart.svg + repr(chart.table), chart.title
    outputs = {row["Runtime"]: row for row in made.table("Outputs beside")}
    assert outputs["rust"]["Output"] == "wrong in 1" and outputs["rust"]["NaN and Inf"] == "2"
    assert (outputs["cpp"]["Output"], outputs["java"]["Output"]) == ("right", "wrong in 1")


@pytest.mark.parametrize(("slow", "log"), [(5e-4, False), (3e-3, True)])
def test_latencies_more_than_a_decade_apart_stand_on_a_log_axis(slow: float, log: bool) -> None:
    chart = Made(*runs("cpp", 1e-4), *runs("python", slow)).chart("Latency at batch 1")
    assert ("log scale" in chart.svg) is log


def test_a_tail_ends_where_twenty_samples_lie_beyond() -> None:
    def sampled(amount: int) -> list[Record]:
        values = [1e-4 * (1 + n / amount) for n in range(amount)]
        return [infer_record("cpp", 1.5e-4, samples=values), *runs("c", 1e-4)]

    [row] = rows(Made(*sampled(300)).chart("Tail").table)
    assert (row["90th (µs)"], row["95th (µs)"], row["99th (µs)"]) == ("190", "–", "–")
    [row] = rows(Made(*sampled(400)).chart("Tail").table)
    assert (row["95th (µs)"], row["99th (µs)"]) == ("195", "–")
    assert rows(Made(*sampled(2000)).chart("Tail").table)[0]["99th (µs)"] == "199"
    assert not [chart for chart in Made(*sampled(30)).charts if chart.title.startswith("Tail")]


def test_ratios_have_their_interval_or_range_or_neither() -> None:
    def ratio(amount: int) -> dict[str, str]:
        chart = Made(*runs("cpp", 1e-4, amount), *runs("rust", 2e-4, amount)).chart("Latency over")
        [row] = rows(chart.table)
        return row

    assert ratio(6)["Range or interval"] == "1.99 – 2.01" and ratio(6)["Runs"] == "6, 6"
    assert ratio(1)["Range or interval"] == "–" and ratio(1)["Ratio"] == "2"
    old = runs("rust", 2e-4, details={"runtime_version": "1.20.0"})
    [row] = rows(Made(*runs("cpp", 1e-4), *old).chart("Latency over").table)
    assert "crosses versions" in row.values()


def test_the_breakdown_goes_from_the_start_to_the_program_s_size() -> None:
    inside = {"run_includes": ["copy"]}
    made = Made(*runs("cpp", 1e-4, 3), *runs("javascript", 2e-4, 3, details=inside))
    first, second = made.table("What serving takes, at batch 1, 1 thread")
    assert first == {
        "Runtime": "cpp · from torch-dynamo",
        "Start to first result": "80 ms",
        "Session": "12 ms",
        "Bind": "5 µs",
        "Run": "100 µs",
        "Copy": "2.5 µs",
        "End to end": "108 µs",
        "Peak memory": "85.8 MiB",
        "Program and libraries": "22.9 MiB",
        "Run includes": "",
    }
    assert second["Run includes"] == "copy"
    assert "holds that time" in made.chart("Parts of one inference").note


def test_saturated_loads_are_marked_and_percentiles_need_requests() -> None:
    made = Made(*runs("cpp", 1e-4), *under_load())
    listed = {(row["Runtime"].split(" · ")[0], row["Offered (1/s)"]): row for row in made.table("tickets under load")}
    marked = {key for key, row in listed.items() if "saturated" in row.values()}
    assert marked == {("cpp", "16\u202f000"), ("python", "8\u202f000"), ("python", "16\u202f000")}
    few, enough = listed["cpp", "100"], listed["cpp", "4\u202f000"]
    tails = [head for head in few if head.startswith(("95th", "99th"))]
    assert [few[head] == "–" for head in tails] == [False, True]
    assert [enough[head] == "–" for head in tails] == [False, False]
    assert made.chart("All runtimes").svg.count("<path") > 8 and made.chart("python · torch-dynamo")


def test_calls_stand_beside_those_of_c_by_size() -> None:
    made = Made(*sizes("c", "python", "rust"))
    listed = made.table("Calls beside")
    small = [row for row in listed if row["Runtime"].startswith("identity-1 ")]
    assert [row["Runtime"].split(" · ")[1] for row in small] == ["c", "rust", "python"]
    assert small[0]["Beyond C"] == "–" and small[2]["Beyond C"].startswith("4.0")
    assert "within noise" in small[1].values()
    assert "numbers (float32)" in made.chart("A call over the numbers").svg
    assert "identity-1 on cpu" not in made.text, "its charts are those of calls"
    assert "C was not measured" in Made(*sizes("python", "rust")).text


def test_other_options_stand_beside_the_same_runtime_s_equal_ones() -> None:
    made = Made(*other_options())
    first, second = made.table("tickets: other")
    assert first["Changed"] == "nothing set" and second["Times equal"] == "2"
    assert second["Changed"].startswith("graph_optimization_level=basic, 7 others")


def test_what_all_runtimes_set_and_had_stands_once_and_the_rest_with_its_runtime() -> None:
    made = Made(*conditions())
    listed = {row["Runtime"]: row for row in made.table("What the runtimes ran with")}
    assert {name: row["Beside the others"] for name, row in listed.items()} == {
        "c": "the same",
        "cpp": "the same",
        "java": "differs",
        "go": "not told",
        "torch-eager": "no ONNX Runtime",
    }
    assert listed["java"]["Had beside what all had"] == "enable_mem_pattern=false"
    assert listed["java"]["Could not be set"] == "enable_mem_pattern"
    assert listed["cpp"]["Kernels"] == "2"
    assert "all had: enable_cpu_mem_arena=true, execution" in made.text


def test_a_language_s_own_times_stand_over_those_of_onnx_runtime_s_profiler() -> None:
    head = "Run over ONNX Runtime's profiler"
    made = Made(*profiled())
    listed = {row["Runtime"]: row[head] for row in made.table("What the runtimes ran with")}
    assert listed == {"c": "–", "cpp": "1.020", "go": "1.25 – 1.5"}
    assert "ONNX Runtime measured" in made.text
    without = Made(*runs("cpp", 1e-4), *runs("c", 1e-4))
    assert head not in without.table("What the runtimes ran with")[0] and head not in without.text


def test_precisions_and_batches_stand_apart() -> None:
    made = Made(
        *runs("cpp", 1e-4),
        *runs("c", 1e-4),
        *runs("cpp", 5e-5, precision="fp16"),
        *runs("cpp", 4e-4, batch=8),
        *runs("c", 4e-4, batch=8),
    )
    titles = [chart.title for chart in made.charts]
    assert titles.count("Latency at batch 1") == 2
    assert made.chart("Throughput over batch")
    assert "tickets on cpu, fp16" in made.text
    assert len({chart.svg for chart in made.charts}) == len(made.charts)


def test_of_many_models_the_first_are_drawn_and_the_others_named() -> None:
    made = Made(*fourteen_models())
    assert len(made.table("Models by runtimes")) == 14
    assert "model-11 on cpu" in made.text and "model-12 on cpu" not in made.text
    assert "model-12 and model-13" in made.text
