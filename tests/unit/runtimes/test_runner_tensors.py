"""What the runners hand on: every type, scalars, defaults, and what is no tensor."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runner_program import EVERY, NATIVE, Program, X

from thirds import thirds
from transect.domain.errors import BadInput
from transect.onnx_models.tensors import DTYPES, NoTensor

SIZES = {"8": 1, "16": 2, "32": 4, "64": 8}
WORDS = ["", "ohm", "Ω", "a longer one, with a line\nbreak", "日本", "x" * 300]
# What a language cannot be given: as runner_models.py has it.
LACKING = {"java": ("uint16", "uint32", "uint64"), "javascript": ("bfloat16",), "browser": ("bfloat16",)}


def _raw(dtype: str, count: int) -> list[bytes]:
    """Return elements in the contract's bytes, patterns that are no number among them."""
    if dtype == "string":
        texts = [WORDS[i % len(WORDS)].encode() for i in range(count)]
        return [len(text).to_bytes(4, "little") + text for text in texts]
    if dtype == "bool":
        return [bytes([i % 2]) for i in range(count)]
    size = SIZES["".join(filter(str.isdigit, dtype))]
    raw = np.random.default_rng(count).bytes(size * count)
    return [raw[i * size : (i + 1) * size] for i in range(count)]


def _write_raw(folder: Path, entries: dict[str, tuple[str, list[int]]], **header: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tensors = []
    for name, (dtype, shape) in entries.items():
        (folder / f"{name}.bin").write_bytes(b"".join(_raw(dtype, int(np.prod(shape)))))
        tensors.append({"name": name, "dtype": dtype, "shape": shape, "file": f"{name}.bin"})
    (folder / "header.json").write_text(json.dumps({"tensors": tensors, **header}))


SHAPES: dict[str, tuple[list[int], dict[str, int]]] = {
    "batches": ([5, 3], {"batch": 2}),
    "no batches": ([5, 3], {}),
    "nothing in a row": ([2, 0], {}),
    "no rows": ([0, 3], {}),
    "nothing in rows of a batch": ([2, 0], {"batch": 1}),
}


@pytest.mark.parametrize(
    ("program", "shape"), thirds(EVERY, SHAPES, whole=[*NATIVE, "java", "javascript"]), indirect=["program"]
)
def test_every_type_comes_back_bit_by_bit(program: Program, tmp_path: Path, shape: str) -> None:
    axes, header = SHAPES[shape]
    dtypes = [dtype for dtype in DTYPES if dtype not in LACKING.get(program.runtime, ())]
    model = {"java": "types-java", "javascript": "types-javascript", "browser": "types-javascript"}
    _write_raw(tmp_path / "inputs", {dtype: (dtype, axes) for dtype in dtypes}, **header)
    run = program.serve(tmp_path, model.get(program.runtime, "types"), min_runs=2)
    assert run.code == 0, run.stderr
    entries = json.loads((tmp_path / "outputs" / "header.json").read_text())["tensors"]
    assert [entry["name"] for entry in entries] == [f"{dtype}_out" for dtype in dtypes]
    assert [entry["file"] for entry in entries] == [f"output-{i}.bin" for i in range(len(dtypes))]
    for entry, dtype in zip(entries, dtypes, strict=True):
        assert (entry["dtype"], entry["shape"]) == (dtype, axes)
        sent = (tmp_path / "inputs" / f"{dtype}.bin").read_bytes()
        assert (tmp_path / "outputs" / entry["file"]).read_bytes() == sent, dtype
    assert run.record["outputs"]["rows"] == (axes[0] if header else None)


@pytest.mark.parametrize(
    ("program", "dtype"),
    [
        *thirds(NATIVE, DTYPES, whole=["c", "go"]),
        ("java", "float32"),
        ("javascript", "float32"),
        pytest.param("browser", "float32", marks=pytest.mark.exhaustive),
    ],
    indirect=["program"],
)
def test_scalars_come_back_or_are_said_to_be_beyond_the_binding(program: Program, tmp_path: Path, dtype: str) -> None:
    _write_raw(tmp_path / "inputs", {"x": (dtype, [])})
    run = program.serve(tmp_path, f"scalar-{dtype}", min_runs=2)
    if program.runtime == "go" and dtype in ("float16", "bfloat16", "string"):
        assert run.code == 2
        assert "onnxruntime_go has no scalars of" in run.stderr
        return
    assert run.code == 0, run.stderr
    entries = json.loads((tmp_path / "outputs" / "header.json").read_text())["tensors"]
    assert [(entry["dtype"], entry["shape"]) for entry in entries] == [(dtype, [])]
    assert (tmp_path / "outputs" / "output-0.bin").read_bytes() == b"".join(_raw(dtype, 1))


@pytest.mark.parametrize("program", [*NATIVE, "java", "javascript"], indirect=True)
def test_an_output_may_have_more_axes_than_an_entry(program: Program, tmp_path: Path) -> None:
    run = program.latency(tmp_path, "wide", {"x": X}, batch=2)
    assert run.code == 0, run.stderr
    assert np.array_equal(run.outputs()["y"], X.reshape(7, 1, 1, 1, 1, 1, 1, 4))


@pytest.mark.parametrize(
    ("program", "with_default"),
    [*((name, True) for name in NATIVE), *((name, False) for name in (*NATIVE, "java", "javascript"))],
    indirect=["program"],
)
def test_input_with_a_default_may_be_left_out(program: Program, tmp_path: Path, with_default: bool) -> None:
    b = np.array([1, 2, 3, 4], np.float32)
    tensors = {"k": np.arange(7), "x": X} | ({"b": b} if with_default else {})
    run = program.latency(tmp_path, "default", tensors)
    assert run.code == 0, run.stderr
    outputs = run.outputs()
    assert list(outputs) == ["y", "l"]
    assert np.array_equal(outputs["y"], X + (b if with_default else 10))
    assert np.array_equal(outputs["l"], np.arange(7))


@pytest.mark.parametrize("program", EVERY, indirect=True)
def test_what_is_no_tensor_has_a_kind_and_no_file(program: Program, tmp_path: Path) -> None:
    run = program.latency(tmp_path, "gives-sequence", {"x": X}, batch=3)
    assert run.code == 0, run.stderr
    found = run.outputs()
    assert np.array_equal(found["y"], np.maximum(X, 0))
    assert isinstance(found["s"], NoTensor)
    assert found["s"].is_like(NoTensor("sequence"))
    assert not (tmp_path / "outputs" / "output-1.bin").exists()


CUT = b"\3\0\0\0abc"
BROKEN: dict[str, tuple[str, bytes, str]] = {
    "a string that is cut": ("string", CUT + b"\5\0\0\0abcd", "ends behind the file"),
    "one string more": ("string", b"\0" * 12, "holds 3 texts, expected the shape [1, 2]"),
    "a string that is none": ("string", CUT + b"\1\0\0\0\xff", "no texts"),
    "a bool that is 2": ("bool", b"\0\2", "0 and 1"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_elements_that_are_none_are_bad_input(runner_models: Path, tmp_path: Path, broken: str) -> None:
    dtype, raw, words = BROKEN[broken]
    _write_raw(tmp_path / "inputs", {"x": (dtype, [1, 2])})
    (tmp_path / "inputs" / "x.bin").write_bytes(raw)
    with pytest.raises(BadInput, match=re.escape(words)):
        Program("c", "python", runner_models).plan(tmp_path, f"identity-{dtype}")
