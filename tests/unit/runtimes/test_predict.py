"""One file from bytes to probabilities: the same through every runner as by Python's tokeniser."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from hostile_texts import CLASSES, batches, expected_numbers, padded, probabilities
from runner_program import python_of

from transect.domain.errors import BadInput
from transect.onnx_models.tensors import read_tensors, write_tensors
from transect.runtimes.programs import said_lines, start_command, write_outputs_header
from transect.runtimes.serving_plans import Case, cases_plan
from transect.text.bundle import read_bundle
from transect.text.lexicon import Lexicon
from transect.text.tokeniser import FIRST

RUNNERS = ("python", "c", "cpp", "rust", "go", "java", "javascript", pytest.param("browser", marks=pytest.mark.browser))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    for name, texts in batches().items():
        write_tensors(folder / name, {"text": padded(texts)})
    return folder


@pytest.mark.parametrize("runtime", RUNNERS)
def test_hostile_texts_give_the_same_through_every_runner(
    runtime: str, bundle: Path, inputs: Path, tmp_path: Path
) -> None:
    python = python_of(runtime, tmp_path)
    cases = [
        Case(
            name=f"{model}-{name}",
            model=bundle / f"{model}.onnx",
            inputs=inputs / name,
            outputs=tmp_path / f"{model}-{name}",
        )
        for model in ("numbers", "narrow", "predict")
        for name in batches()
    ]
    plan, refused = cases_plan(cases, provider="cpu", options={}, out=tmp_path)
    done = subprocess.run(start_command(runtime, python, plan), capture_output=True, text=True, check=False)
    assert (done.returncode, refused) == (0, {}), done.stderr
    ends = [line for line in said_lines(tmp_path) if line["status"] != "started" and "case" in line]
    assert [end["status"] for end in ends] == ["ok"] * len(cases)
    for end in ends:
        write_outputs_header(plan, end["case"], end["outputs"])
    for name, texts in batches().items():
        found = read_tensors(tmp_path / f"numbers-{name}")["numbers"]
        np.testing.assert_array_equal(found, expected_numbers(texts))
        found = read_tensors(tmp_path / f"narrow-{name}")["numbers"]
        longest = (expected_numbers(texts) > 0).sum(axis=1).max()
        np.testing.assert_array_equal(found, expected_numbers(texts)[:, : max(longest, 1)])
        found = read_tensors(tmp_path / f"predict-{name}")["probabilities"]
        np.testing.assert_allclose(found, probabilities(texts), atol=1e-6)


def test_a_word_is_found_by_its_sum_and_no_other() -> None:
    vocabulary = [f"{a}{b}{c}" for a in "abcdefghijkl" for b in "mnopqrstuv" for c in "äöüßéèêñçå"]
    lexicon = Lexicon.of(vocabulary, ["und"])
    assert len(np.unique(lexicon.sums[: -lexicon.longest])) == len(vocabulary) + 1
    assert lexicon.sums.max() < 2**63 - 1 and lexicon.weights[-1] == 0
    # As the graph looks: no further than `longest` from where its sum's list begins.
    sums = lexicon.sums[: -lexicon.longest]
    steps = np.arange(len(sums)) - lexicon.begins[sums % len(lexicon.begins)]
    assert steps.min() == 0 and steps.max() == lexicon.longest - 1
    assert sorted(lexicon.numbers[: len(sums)]) == [0, *range(FIRST, FIRST + len(vocabulary))]


def test_a_vocabulary_of_other_letters_is_refused(bundle: Path) -> None:
    assert "letters are those of Unicode 3.0.0: expected" in (bundle / "refusal").read_text()
    assert not (bundle / "refused").exists()


def test_a_pipeline_belongs_to_its_model(bundle: Path, tmp_path: Path) -> None:
    model, pipeline = read_bundle(bundle)
    assert model == bundle / "predict.onnx" and read_bundle(model) == (model, pipeline)
    assert (pipeline.classes, pipeline.view, pipeline.unsure) == (CLASSES, "first", 0.6)
    with pytest.raises(BadInput, match=r"predict\.onnx: no such file; expected predict\.onnx and"):
        read_bundle(tmp_path)
    (tmp_path / "predict.onnx").write_bytes(b"another")
    (tmp_path / "pipeline.json").write_text((bundle / "pipeline.json").read_text())
    with pytest.raises(BadInput, match=r"its sha256 differs"):
        read_bundle(tmp_path)
    (tmp_path / "pipeline.json").write_text('{"classes": [], "sha256": "x"}')
    with pytest.raises(BadInput, match=r"pipeline\.json: classes: "):
        read_bundle(tmp_path)
