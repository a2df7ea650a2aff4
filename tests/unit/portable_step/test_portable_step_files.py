"""Manifest and state files of a portable step: exact bytes, and one clear error for what is wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.domain.errors import BadInput
from transect.portable_step import read_manifest, read_state, transfer, write_state
from transect.portable_step.manifest import Graph, Manifest
from transect.portable_step.state import read_tensors, state_bytes

HASH = "ab" * 32
FACTS = {
    "format": "transect-portable-step",
    "version": 1,
    "step_graph": HASH,
    "state_file": "state.safetensors",
    "data": [
        {"name": "x", "dtype": "float32", "shape": ["batch", 2], "target": False},
        {"name": "y", "dtype": "int64", "shape": ["batch"], "target": True},
    ],
    "hyper": [{"name": "lr", "dtype": "float64", "default": 1}],
    "seed": {"name": "seed", "dtype": "int64"},
    "state": [
        {"name": "step", "role": "counter", "dtype": "int64", "shape": [], "next": "next.step"},
        {"name": "model.w", "role": "parameter", "dtype": "float32", "shape": [2, 3], "next": "next.model.w"},
        {"name": "model.seen", "role": "buffer", "dtype": "bool", "shape": [1], "next": None},
    ],
    "metrics": [{"name": "loss", "dtype": "float32"}],
    "outputs": [{"name": "output", "dtype": "float32", "shape": ["batch", 3]}],
    "graphs": {
        "step": {
            "file": "step.onnx",
            "inputs": ["x", "y", "lr", "seed", "step", "model.w"],
            "outputs": ["loss", "next.step", "next.model.w"],
        },
        "eval": {"file": "eval.onnx", "inputs": ["x", "y", "model.w"], "outputs": ["loss"]},
        "infer": {"file": "infer.onnx", "inputs": ["x", "model.w"], "outputs": ["output"]},
    },
}
STATE = {
    "step": np.array(3, np.int64),
    "model.w": np.arange(6, dtype=np.float32).reshape(2, 3),
    "model.seen": np.array([True]),
}


def manifest_of(folder, facts=FACTS) -> Manifest:
    folder.mkdir(exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps(facts))
    return read_manifest(folder)


def test_a_manifest_is_read_and_written_as_it_was(tmp_path):
    manifest = manifest_of(tmp_path)
    assert manifest.graphs["eval"] == Graph(file="eval.onnx", inputs=("x", "y", "model.w"), outputs=("loss",))
    assert manifest.hyper[0].default == 1.0 and manifest.seed is not None
    assert json.loads(manifest.to_json()) == json.loads(json.dumps(FACTS))
    expected = {"runtime": "onnxruntime 1.29.0", "lengths": {"batch": [2, 3]}, "unchecked": None}
    checked = manifest_of(tmp_path / "checked", FACTS | {"checked": expected})
    assert json.loads(checked.to_json())["checked"] == expected
    assert read_manifest(tmp_path) == manifest_of(tmp_path / "more", json.loads(manifest.to_json()))
    assert manifest_of(tmp_path, FACTS | {"seed": None, "graphs": _without_seed()}).seed is None


def _without_seed():
    graphs = json.loads(json.dumps(FACTS["graphs"]))
    graphs["step"]["inputs"].remove("seed")
    return graphs


def changed(path: str, value) -> dict:
    """Return the facts with one entry, such as `state.1.role`, changed or taken away (None)."""
    facts = json.loads(json.dumps(FACTS))
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    inner = facts
    for part in way:
        inner = inner[part]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return facts


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("format", "other", '"format": "transect-portable-step"'),
        ("version", 2, "version 2, this program reads 1"),
        ("state.1.role", "weights", "model.w: role 'weights'"),
        ("state.1.shape", [2, "n"], "state[1].shape[1]: 'n'"),
        ("state.1.name", "x", "x: two inputs"),
        ("state.1.next", "next.other", "graphs.step.outputs: next.other"),
        ("graphs.infer", None, "expected step, eval, infer"),
        ("graphs.eval.inputs", ["z"], "graphs.eval.inputs: z"),
    ],
)
def test_a_wrong_manifest_is_one_error_that_names_the_file_and_the_entry(tmp_path, path, value, words):
    with pytest.raises(BadInput) as error:
        manifest_of(tmp_path, changed(path, value))
    assert str(tmp_path / "manifest.json") in str(error.value) and words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_state_file_has_exactly_these_bytes(tmp_path):
    manifest = manifest_of(tmp_path)
    write_state(tmp_path / "a.safetensors", STATE, manifest)
    header = (
        '{"__metadata__":{"step_graph":"' + HASH + '"},'
        '"step":{"dtype":"I64","shape":[],"data_offsets":[0,8]},'
        '"model.w":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]},'
        '"model.seen":{"dtype":"BOOL","shape":[1],"data_offsets":[32,33]}}'
    ).encode()
    header += b" " * (-len(header) % 8)
    body = b"".join(STATE[name].tobytes() for name in STATE)
    expected = len(header).to_bytes(8, "little") + header + body
    assert (tmp_path / "a.safetensors").read_bytes() == expected
    given = read_state(tmp_path / "a.safetensors", manifest)
    assert list(given) == list(STATE)
    for name, array in STATE.items():
        assert given[name].dtype == array.dtype and np.array_equal(given[name], array)


def test_any_valid_file_is_read(tmp_path):
    """Another order of tensors, white space and further metadata, as other writers have them."""
    manifest = manifest_of(tmp_path)
    header = {
        "model.seen": {"dtype": "BOOL", "shape": [1], "data_offsets": [0, 1]},
        "model.w": {"data_offsets": [1, 25], "shape": [2, 3], "dtype": "F32"},
        "step": {"dtype": "I64", "shape": [], "data_offsets": [25, 33]},
        "__metadata__": {"by": "another", "step_graph": HASH},
    }
    text = json.dumps(header, indent=2).encode()
    body = b"".join(STATE[name].tobytes() for name in ("model.seen", "model.w", "step"))
    path = tmp_path / "other.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)
    assert list(read_state(path, manifest)) == list(STATE)
    assert state_bytes(read_state(path, manifest), manifest) == state_bytes(STATE, manifest)


@pytest.mark.parametrize(
    ("name", "array", "words"),
    [
        ("model.w", np.zeros((3, 2), np.float32), r"model\.w is float32 \[3, 2\], expected float32"),
        ("model.w", np.zeros((2, 3)), r"model\.w is float64"),
        ("model.w", None, r"model\.w is not there"),
    ],
)
def test_a_tensor_that_does_not_fit_is_named(tmp_path, name, array, words):
    manifest = manifest_of(tmp_path)
    state = {k: v for k, v in (STATE | {name: array}).items() if v is not None}
    with pytest.raises(BadInput, match=words):
        state_bytes(state, manifest)


def test_a_strange_or_missing_tensor_is_named(tmp_path):
    manifest = manifest_of(tmp_path)
    facts = json.loads(json.dumps(FACTS))
    facts["state"].append({**FACTS["state"][2], "name": "model.more"})
    larger = manifest_of(tmp_path, facts)
    write_state(tmp_path / "large", STATE | {"model.more": np.array([False])}, larger)
    with pytest.raises(BadInput, match=r"model\.more is no tensor of this step"):
        read_state(tmp_path / "large", manifest)
    write_state(tmp_path / "small", STATE, manifest)
    with pytest.raises(BadInput, match=r"model\.more is not there"):
        read_state(tmp_path / "small", larger)


@given(cut=st.integers(0, 400), change=st.integers(0, 255))
def test_a_damaged_file_is_an_error_or_other_numbers(tmp_path_factory, cut, change):
    folder = tmp_path_factory.mktemp("damaged")
    raw = bytearray(state_bytes(STATE, manifest_of(folder)))
    at = cut % len(raw)
    (folder / "cut").write_bytes(raw[:at])
    with pytest.raises(BadInput, match="no valid safetensors file"):
        read_tensors(folder / "cut")
    raw[at] = change
    (folder / "changed").write_bytes(raw)
    try:
        tensors, _ = read_tensors(folder / "changed")
    except BadInput as error:
        assert str(folder / "changed") in str(error)
    else:
        assert sum(array.nbytes for array in tensors.values()) == 33


def test_transfer_takes_what_has_the_same_name_shape_and_dtype():
    source = {
        "step": np.array(9, np.int64),
        "model.a": np.ones(2, np.float32),
        "model.b": np.ones(3, np.float32),
        "model.c": np.ones(2),
        "optimiser.momentum.a": np.ones(2),
    }
    state = {
        "step": np.array(0, np.int64),
        "model.a": np.zeros(2, np.float32),
        "model.b": np.zeros(2, np.float32),
        "model.c": np.zeros(2, np.float32),
        "optimiser.momentum.a": np.zeros(2),
    }
    made, taken = transfer(source, state)
    assert taken == ["model.a"] and list(made) == list(state)
    assert made["model.a"].all()
    assert not any(made[name].any() for name in made if name != "model.a")
    with pytest.raises(BadInput, match="share no model tensor"):
        transfer({"model.z": np.ones(2)}, state)
