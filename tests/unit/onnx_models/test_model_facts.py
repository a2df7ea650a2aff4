"""What cells take from a model's folder: `facts.json`, and that it is in their fingerprints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from transect.domain import takes
from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.domain.paths import StudyPaths
from transect.engine.stage import RUNNERS
from transect.onnx_models.facts import facts_of_model, write_facts
from transect.onnx_models.loaders import LOADERS
from transect.onnx_models.tensors import write_tensors
from transect.payloads.roundtrip import roundtrip

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def folder_of_model(folder: Path) -> Path:
    """Make the folder of a model cell: twice its input, and the number of the largest."""
    write_tensors(folder / "inputs", {"x": X})
    write_tensors(folder / "expected", {"y": 2 * X, "best": X.argmax(1)})
    (folder / "model.onnx").write_bytes(b"a file")
    write_facts(folder, tolerance={"y": 1e-6, "best": 0.0}, batched=True, costs=None)
    return folder


class Fake:
    """Gives what it was made with."""

    environment = "import-others"
    rows: int | None = 2
    stand_ins: Mapping[str, str] = {}

    def __init__(self, *outputs: Any) -> None:
        self.outputs = outputs

    def load(self, path: Path) -> Any:
        """Load nothing."""
        return self.compute

    def compute(self, inputs: Mapping[str, np.ndarray]) -> Sequence[Any]:
        """Raise what it was made with, or give it."""
        for output in self.outputs:
            if isinstance(output, Exception):
                raise output
        return self.outputs


@pytest.mark.parametrize(
    ("outputs", "cause", "words"),
    [
        ((2 * X[:2], X[:2].argmax(1)), None, ""),
        ((2 * X[:2] + 1e-3, X[:2].argmax(1)), "wrong-result", "differs by"),
        ((2 * X[:2],), "wrong-result", "1 outputs, expected"),
        ((2 * X[:1], X[:2].argmax(1)), "wrong-result", "'y' is float32 [1, 3], expected float32 [2, 3]"),
        ((2.0 * X[:2].astype(float), X[:2].argmax(1)), "wrong-result", "'y' is float64"),
        ((2 * X[:2], [{0: 1}]), "wrong-result", "'best' is list, expected int64 [2]"),
        ((RuntimeError("no operator Twice"),), "unsupported", "no operator Twice"),
        ((BadInput("no such opset"),), "unsupported", "no such opset"),
    ],
)
def test_a_loader_that_gives_other_outputs_is_wrong_and_one_that_raises_does_not_support(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outputs: tuple[Any, ...], cause: str | None, words: str
) -> None:
    monkeypatch.setattr(LOADERS, "get", lambda name, *_: Fake(*outputs))
    cell = Cell.of(stage="roundtrip", workload="mlp", exporter="dynamo", loader="opencv")
    result = roundtrip({"cell": cell.axes()}, {"model": folder_of_model(tmp_path)}, tmp_path)
    assert result["cause"] == cause and words in result["message"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "finished export, model or convert cell"),
        ("{", "finished export, model or convert cell"),
        ('{"tolerance": 1.0, "batched": true}', "costs"),
        ('{"tolerance": null, "batched": true, "costs": null}', "tolerance is None"),
        ('{"tolerance": 1.0, "batched": 1, "costs": null}', "batched is 1"),
    ],
)
def test_facts_that_are_none_are_named(tmp_path: Path, content: str | None, words: str) -> None:
    if content is not None:
        (tmp_path / "facts.json").write_text(content)
    with pytest.raises(BadInput, match=words):
        facts_of_model(tmp_path)


@pytest.fixture
def taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Return what a cell takes of one input whose files have these sums."""

    def inputs(role: str, axes: dict[str, Any], files: dict[str, str]) -> list[str]:
        cell = Cell.of(workload="mlp", exporter="dynamo", **axes)
        job = SimpleNamespace(
            spec={"inputs": {role: ["model", "one"]}, "cell": cell.axes()},
            cell=cell,
            paths=StudyPaths(results=tmp_path, study="s"),
            input=lambda role: tmp_path,
        )
        monkeypatch.setattr(takes, "record_of", lambda path: SimpleNamespace(files=files, details={}))
        found: list[str] = RUNNERS.get(axes["stage"]).inputs(job)
        return found

    return inputs


INFER = {"stage": "infer", "runtime": "python", "provider": "cpu", "batch": 8}


@pytest.mark.parametrize(
    ("role", "axes"),
    [
        ("export", INFER),
        ("model", {"stage": "roundtrip", "loader": "opencv"}),
        ("model", {"stage": "convert", "precision": "fp16"}),
    ],
)
def test_an_edited_tolerance_changes_the_inputs_of_whatever_reads_it(
    taken: Callable[..., list[str]], role: str, axes: dict[str, Any]
) -> None:
    files = {"model.onnx": "1", "inputs/header.json": "2"}
    before, after = (taken(role, axes, files | {"facts.json": facts}) for facts in "34")
    assert set(before) - set(after) == {"facts.json 3"}
    assert set(after) - set(before) == {"facts.json 4"}


def test_a_cell_of_dynamic_ranges_takes_the_outputs_of_its_own_batch(taken: Callable[..., list[str]]) -> None:
    """Another size of batch in the study makes no record stale."""

    def of(precision: str, **sums: str) -> list[str]:
        files = {"model.onnx": "1", "facts.json": "2"}
        files |= {f"batch-{size.removeprefix('b')}/facts.json": text for size, text in sums.items()}
        return taken("export", INFER | {"precision": precision}, files)

    usual = of("int8-dynamic", b8="3", b32="4")
    assert "facts.json 3" in usual
    assert of("int8-dynamic", b8="3", b32="5", b64="6") == usual != of("int8-dynamic", b8="7", b32="4")
    assert of("int8-static", b8="7") == of("int8-static", b8="8")
