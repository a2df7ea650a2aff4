"""Tensors of every type of the runner contract, to files and back."""

from __future__ import annotations

import json

import numpy as np
import pytest

from transect.domain.errors import BadInput
from transect.onnx_models.tensors import DTYPES, NoTensor, read_tensors, write_tensors


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name not in ("string", "bfloat16")])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_a_tensor_of_any_type_comes_back(tmp_path, dtype, shape):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    write_tensors(tmp_path, {"x": array})
    found = read_tensors(tmp_path)["x"]
    assert (found.dtype, found.shape) == (array.dtype, shape)
    assert np.array_equal(found, array)
    assert (tmp_path / "tensor-0.bin").stat().st_size == array.size * DTYPES[dtype]


def test_texts_are_lengths_and_utf8(tmp_path):
    texts = np.array([["", "grün"], ["a\n", "𝒳"]], object)
    write_tensors(tmp_path, {"t": texts, "k": NoTensor("map")}, batch=2)
    raw = (tmp_path / "tensor-0.bin").read_bytes()
    assert raw[:9] == b"\0\0\0\0\5\0\0\0g"
    found = read_tensors(tmp_path)
    assert np.array_equal(found["t"], texts) and found["k"] == NoTensor("map")
    header = json.loads((tmp_path / "header.json").read_text())
    assert header["batch"] == 2 and header["tensors"][1] == {"name": "k", "kind": "map"}


@pytest.mark.parametrize(
    ("raw", "message"),
    [(b"\5\0\0\0abc", "ends behind"), (b"\1\0\0", "no texts"), (b"\1\0\0\0\xff", "no texts"), (b"", "holds 0 texts")],
)
def test_damaged_texts_are_named(tmp_path, raw, message):
    write_tensors(tmp_path, {"t": np.array(["abc"], object)})
    (tmp_path / "tensor-0.bin").write_bytes(raw)
    with pytest.raises(BadInput, match=rf"tensor-0\.bin.*{message}"):
        read_tensors(tmp_path)


@pytest.mark.parametrize("change", [{"dtype": "float31"}, {"shape": [10**12]}, {"file": "none"}])
def test_a_header_that_lies_is_named(tmp_path, change):
    write_tensors(tmp_path, {"x": np.zeros(3, np.float32)})
    header = tmp_path / "header.json"
    entry = json.loads(header.read_text())["tensors"][0]
    header.write_text(json.dumps({"tensors": [entry | change]}))
    with pytest.raises(BadInput, match=r"header\.json"):
        read_tensors(tmp_path)


def test_a_type_that_the_contract_lacks_is_refused(tmp_path):
    with pytest.raises(BadInput, match="'x' is complex64"):
        write_tensors(tmp_path, {"x": np.zeros(1, np.complex64)})
