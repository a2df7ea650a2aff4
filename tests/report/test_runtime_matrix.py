"""The matrix of models by runtimes: at which point, compared with what, and how coarsely."""

from __future__ import annotations

from make_runtime_records import runs
from runtime_reports import Made


def test_a_pass_says_when_not_all_or_no_outputs_were_compared() -> None:
    partly = {"outputs_compared": 1, "outputs_expected": 2}
    none = [record.model_copy(update={"metrics": [m for m in record.metrics if m.name == "latency"]})
            for record in runs("go", 2e-4)]  # fmt: skip
    made = Made(*runs("cpp", 1e-4), *runs("rust", 2e-4, details=partly), *none)
    [row] = made.table("Models by runtimes")
    assert (row["rust"], row["go"]) == ("✓ (1 of 2 outputs): 2", "not compared: 2")
    listed = {row["Runtime"]: row["Output"] for row in made.table("Outputs beside")}
    assert listed == {"cpp": "right", "rust": "1 of 2 outputs of tickets", "go": "not compared"}


def test_outputs_of_converted_files_stand_in_a_table_of_their_own() -> None:
    far = runs("cpp", 1e-4, precision="fp16", metrics={"max_abs_difference": 2e-3})
    made = Made(*runs("cpp", 1e-4), *runs("rust", 1e-4), *far)
    own = {row["Runtime"]: row for row in made.table("Outputs beside the framework's")}
    assert own["cpp"]["Largest absolute difference"] == "3e-7" and "rust" in own
    [other] = made.table("Outputs of converted files beside ONNX Runtime's own")
    assert (other["Runtime"], other["Largest absolute difference"]) == ("cpp", "0.002")
    assert "what ONNX Runtime itself computes of the converted file" in made.text
