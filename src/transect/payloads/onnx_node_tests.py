"""ONNX's own operator tests as files of the runner contract.

Leaves `nodetests.tar` and `result.json`. The
archive holds for each test NAME/model.onnx, NAME/inputs/ and NAME/expected/ with tensors as
docs/runner-contract.md has them, and first `cases.json` with name, opset and tolerances of each.
Tests whose values the contract cannot express are named in the result, with the reason.
"""

from __future__ import annotations

import io
import json
import tarfile
import warnings
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from transect.onnx_models.node_tests import ARCHIVE, CASES, EXPECTED, INPUTS, MODEL
from transect.onnx_models.results import result
from transect.onnx_models.tensors import DTYPES, HEADER, describe, dtype_of, to_bytes

# Their outputs are what numpy's generator drew when ONNX made the test: no other generator draws them.
_RANDOM = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")


class _Outside(ValueError):
    """The runner contract cannot express a test."""


def opset_of(model: Any) -> str:
    """Return the version of the default domain, or of the first other one with its name.

    Takes an `onnx.ModelProto`.
    """
    versions = {entry.domain: entry.version for entry in model.opset_import}
    for domain in ("", "ai.onnx"):
        if domain in versions:
            return str(versions[domain])
    domain, version = next(iter(versions.items()))
    return f"{domain} {version}"


def _array(value: Any, declared: Any) -> np.ndarray:
    """Return a test's value, as its model declares it. Raises _Outside."""
    import onnx

    kind = declared.type.WhichOneof("value")
    if kind != "tensor_type":
        raise _Outside(f"{kind.removesuffix('_type').replace('_', ' ')} as input or output")
    code = onnx.TensorProto.DataType.Name(declared.type.tensor_type.elem_type)
    dtype = {"FLOAT": "float32", "DOUBLE": "float64"}.get(code, code.lower())
    if dtype not in DTYPES:
        raise _Outside(f"{dtype} as input or output")
    is_proto = isinstance(value, onnx.TensorProto)
    array = onnx.numpy_helper.to_array(value) if is_proto else np.asarray(value)
    if dtype == "string":
        texts = [text.decode() if isinstance(text, bytes) else str(text) for text in array.flat]
        array = np.array([*texts, None], object)[:-1].reshape(array.shape)
    if dtype_of(declared.name, array) != dtype:
        raise _Outside(f"{array.dtype.name} where its model declares {dtype}")
    return array


def _arrays(values: Iterable[Any], declared: Iterable[Any]) -> dict[str, np.ndarray]:
    values, declared = list(values), list(declared)
    if len(values) != len(declared):
        raise _Outside(f"{len(values)} values where its model declares {len(declared)}")
    return {declaration.name: _array(value, declaration) for value, declaration in zip(values, declared, strict=True)}


def _draws(node: Any, inputs: dict[str, np.ndarray]) -> bool:
    """Whether an output of the node is a random draw. A dropout draws in training, above ratio 0."""
    if node.op_type != "Dropout":
        return node.op_type in _RANDOM
    ratio, training = (inputs.get(node.input[place]) if len(node.input) > place else None for place in (1, 2))
    return training is not None and bool(training) and (ratio is None or float(ratio) > 0)


def _files(folder: str, arrays: dict[str, np.ndarray]) -> dict[str, bytes]:
    files, entries = {}, []
    for index, (name, array) in enumerate(arrays.items()):
        dtype, file = dtype_of(name, array), f"{index}.bin"
        files[f"{folder}/{file}"] = to_bytes(array, dtype)
        entries.append(describe(name, array.shape, file, dtype))
    return files | {f"{folder}/{HEADER}": json.dumps({"tensors": entries}).encode()}


def files_of(case: Any) -> dict[str, bytes] | str:
    """Return the files of a test by name, or why the contract cannot express it.

    Takes an `onnx.backend.test.case.test_case.TestCase` of the kind `node`.
    """
    if len(case.data_sets) != 1:
        return f"{len(case.data_sets)} sets of data"
    values, results = case.data_sets[0]
    graph = case.model.graph
    try:
        inputs, outputs = _arrays(values, graph.input), _arrays(results, graph.output)
    except _Outside as reason:
        return str(reason)
    if any(_draws(node, inputs) for node in graph.node):
        return "expects what one random generator drew"
    model = case.model.SerializeToString(deterministic=True)
    return {MODEL: model, **_files(INPUTS, inputs), **_files(EXPECTED, outputs)}


def _pack(files: dict[str, bytes], target: Path) -> None:
    with tarfile.open(target, "w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def prepare(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Write the archive; return the result."""
    import onnx
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        # Tests of overflow do overflow.
        warnings.simplefilter("ignore")
        cases = sorted(collect_testcases(None), key=lambda case: str(case.name))
    entries: list[dict[str, Any]] = []
    files: dict[str, bytes] = {}
    outside: defaultdict[str, list[str]] = defaultdict(list)
    for case in cases:
        found = files_of(case)
        if isinstance(found, str):
            outside[found].append(case.name)
            continue
        files |= {f"{case.name}/{name}": content for name, content in found.items()}
        opset = opset_of(case.model)
        entries.append({"name": case.name, "opset": opset, "rtol": case.rtol, "atol": case.atol})
    _pack({CASES: json.dumps(entries, indent=1).encode(), **files}, out / ARCHIVE)
    return result(
        details={
            "onnx_version": onnx.__version__,
            "tests": len(cases),
            "expressible": len(entries),
            "outside_contract": dict(sorted(outside.items())),
        },
        libraries={"onnx": onnx.__version__, "numpy": np.__version__},
    )
