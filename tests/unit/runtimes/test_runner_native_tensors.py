"""What the runners in C, C++, Rust and Go hand on: every type, scalars, and what is no tensor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native_program import ABSENT, NATIVE, Program, X

from transect.onnx_models.tensors import DTYPES, NoTensor, read_tensors

SIZES = {"8": 1, "16": 2, "32": 4, "64": 8}
WORDS = ["", "ohm", "Ω", "a longer one, with a line\nbreak", "日本", "x" * 300]


@pytest.fixture(scope="module", params=NATIVE)
def program(request: pytest.FixtureRequest, native_models: Path) -> Program:
    return Program.of(request.param, native_models)


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


@pytest.mark.parametrize(
    ("shape", "header"), [([5, 3], {"batch": 2}), ([5, 3], {}), ([2, 0], {}), ([0, 3], {}), ([2, 0], {"batch": 1})]
)
def test_every_type_comes_back_bit_by_bit(
    program: Program, tmp_path: Path, shape: list[int], header: dict[str, int]
) -> None:
    _write_raw(tmp_path / "inputs", {dtype: (dtype, shape) for dtype in DTYPES}, **header)
    done = program.start(tmp_path, *program.paths(tmp_path, "types"))
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "outputs" / "header.json").read_text())["tensors"]
    assert [entry["name"] for entry in told] == [f"{dtype}_out" for dtype in DTYPES]
    assert [entry["file"] for entry in told] == [f"output-{i}.bin" for i in range(len(DTYPES))]
    for entry, dtype in zip(told, DTYPES, strict=True):
        assert (entry["dtype"], entry["shape"]) == (dtype, shape)
        sent = (tmp_path / "inputs" / f"{dtype}.bin").read_bytes()
        assert (tmp_path / "outputs" / entry["file"]).read_bytes() == sent, dtype


@pytest.mark.parametrize("dtype", DTYPES)
def test_scalars_come_back_or_are_said_to_be_beyond_the_binding(program: Program, tmp_path: Path, dtype: str) -> None:
    _write_raw(tmp_path / "inputs", {"x": (dtype, [])})
    done = program.start(tmp_path, *program.paths(tmp_path, f"scalar-{dtype}"))
    if program.name == "go" and dtype in ("float16", "bfloat16", "string"):
        assert done.returncode == 2
        assert "onnxruntime_go has no scalars of" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "outputs" / "header.json").read_text())["tensors"]
    assert [(entry["dtype"], entry["shape"]) for entry in told] == [(dtype, [])]
    assert (tmp_path / "outputs" / "output-0.bin").read_bytes() == b"".join(_raw(dtype, 1))


@pytest.mark.parametrize("with_default", [False, True])
def test_input_with_a_default_may_be_left_out(program: Program, tmp_path: Path, with_default: bool) -> None:
    b = np.array([1, 2, 3, 4], np.float32)
    tensors = {"k": np.arange(7), "x": X} | ({"b": b} if with_default else {})
    code, _, stderr = program.latency(tmp_path, "default", tensors)
    assert code == 0, stderr
    outputs = read_tensors(tmp_path / "outputs")
    assert list(outputs) == ["y", "l"]
    assert np.array_equal(outputs["y"], X + (b if with_default else 10))
    assert np.array_equal(outputs["l"], np.arange(7))


def test_what_is_no_tensor_is_named_by_its_kind(program: Program, tmp_path: Path) -> None:
    code, record, stderr = program.latency(tmp_path, "classes", {"x": X}, batch=3)
    assert (code, record["status"]) == (0, "ok"), stderr
    outputs = read_tensors(tmp_path / "outputs")
    assert outputs == {"y": NoTensor("sequence(map(int64,float32))")}


def test_absent_optional_has_a_kind_or_is_said_to_be_beyond_the_binding(program: Program, tmp_path: Path) -> None:
    code, record, stderr = program.latency(tmp_path, "absent", {"x": X})
    if ABSENT[program.name] == "unsupported":
        assert (code > 0, record["status"]) == (True, "failed")
        return
    assert code == 0, stderr
    outputs = read_tensors(tmp_path / "outputs")
    assert outputs["o"] == NoTensor("optional(float32)")
    assert np.array_equal(outputs["y"], np.maximum(X, 0))


@pytest.mark.parametrize(
    ("dtype", "raw", "words"),
    [
        ("string", b"\3\0\0\0abc\5\0\0\0abcd", "ends within string 1"),
        ("string", b"\0\0\0\0\1\0\0\0\xff", "UTF-8"),
        ("string", b"\0\0\0\0\0\0\0\0\0\0\0\0", "are left after 2 strings"),
        ("string", b"\0\0\0\0", "takes >= "),
        ("bool", b"\0\2", "0 and 1"),
    ],
)
def test_elements_that_are_none_are_bad_input(
    program: Program, tmp_path: Path, dtype: str, raw: bytes, words: str
) -> None:
    _write_raw(tmp_path / "inputs", {"x": (dtype, [2])})
    (tmp_path / "inputs" / "x.bin").write_bytes(raw)
    done = program.start(tmp_path, *program.paths(tmp_path, f"scalar-{dtype}"))
    assert done.returncode == 2
    assert words in done.stderr
    assert "x.bin" in done.stderr
