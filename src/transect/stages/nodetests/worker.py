"""ONNX's own operator tests as files of the runner contract.

`python -m transect.stages.nodetests.worker --out DIR` writes `nodetests.tar` and `result.json`. The
archive holds for each test NAME/model.onnx, NAME/inputs/ and NAME/expected/ with tensors as
docs/runner-contract.md has them, and first `cases.json` with name, opset and tolerances of each.
Tests whose values the contract cannot express are named in the result, with the reason.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tarfile
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.errors import FAULTS
from transect.onnx_models.node_tests import ARCHIVE, CASES, EXPECTED, INPUTS, MODEL
from transect.onnx_models.results import result, write_fault, write_result
from transect.onnx_models.typed_tensors import DTYPES, Tensor, write_tensors

__all__ = ["main", "opset_of", "write_case"]

# Their outputs are what numpy's generator drew when ONNX made the test: no other generator draws them.
_RANDOM = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
           "RandomUniformLike")  # fmt: skip


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


def _tensor(value: Any, declared: Any) -> Tensor:
    """Return a test's value, as its model declares it. Raises _Outside."""
    import onnx

    kind = declared.type.WhichOneof("value")
    if kind != "tensor_type":
        raise _Outside(f"{kind.removesuffix('_type').replace('_', ' ')} as input or output")
    code = declared.type.tensor_type.elem_type
    dtype = {"FLOAT": "float32", "DOUBLE": "float64"}.get(
        onnx.TensorProto.DataType.Name(code), onnx.TensorProto.DataType.Name(code).lower()
    )
    if dtype not in DTYPES:
        raise _Outside(f"{dtype} as input or output")
    is_proto = isinstance(value, onnx.TensorProto)
    array = onnx.numpy_helper.to_array(value) if is_proto else np.asarray(value)
    if dtype == "string":
        texts = [text.decode() if isinstance(text, bytes) else str(text) for text in array.flat]
        objects = np.empty(array.size, dtype=object)
        objects[:] = texts
        return Tensor(name=declared.name, dtype=dtype, array=objects.reshape(array.shape))
    if array.dtype.name != dtype:
        raise _Outside(f"{array.dtype.name} where its model declares {dtype}")
    if dtype == "bfloat16":
        array = np.ascontiguousarray(array).view(np.uint16).reshape(array.shape)
    return Tensor(name=declared.name, dtype=dtype, array=array)


def _tensors(values: Iterable[Any], declared: Iterable[Any]) -> list[Tensor]:
    values, declared = list(values), list(declared)
    if len(values) != len(declared):
        raise _Outside(f"{len(values)} values where its model declares {len(declared)}")
    return [_tensor(value, one) for value, one in zip(values, declared, strict=True)]


def _draws(node: Any, inputs: dict[str, Tensor]) -> bool:
    """Whether an output of the node is a random draw. A dropout draws in training, above ratio 0."""
    if node.op_type != "Dropout":
        return node.op_type in _RANDOM
    ratio, training = (
        inputs[node.input[place]].array if len(node.input) > place and node.input[place] else None
        for place in (1, 2)
    )
    return training is not None and bool(training) and (ratio is None or float(ratio) > 0)


def write_case(case: Any, folder: Path) -> dict[str, Any] | str:
    """Write a test into `folder`; return its entry, or why the contract cannot express it.

    Takes an `onnx.backend.test.case.test_case.TestCase` of the kind `node`.
    """
    if len(case.data_sets) != 1:
        return f"{len(case.data_sets)} sets of data"
    values, results = case.data_sets[0]
    graph = case.model.graph
    try:
        inputs, outputs = _tensors(values, graph.input), _tensors(results, graph.output)
        values_of = {tensor.name: tensor for tensor in inputs}
        if any(_draws(node, values_of) for node in graph.node):
            raise _Outside("expects what one random generator drew")
    except _Outside as reason:
        return str(reason)
    write_tensors(folder / INPUTS, inputs)
    write_tensors(folder / EXPECTED, outputs)
    (folder / MODEL).write_bytes(case.model.SerializeToString(deterministic=True))
    opset = opset_of(case.model)
    return {"name": case.name, "opset": opset, "rtol": case.rtol, "atol": case.atol}


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    """Add a file that is the same whoever writes it, and whenever."""
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def _pack(folder: Path, entries: list[dict[str, Any]], target: Path) -> None:
    with tarfile.open(target, "w") as archive:
        _add(archive, CASES, json.dumps(entries, indent=1).encode())
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            _add(archive, path.relative_to(folder).as_posix(), path.read_bytes())


def prepare(out: Path) -> dict[str, Any]:
    """Write the archive; return the result."""
    import onnx
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        # Tests of overflow do overflow.
        warnings.simplefilter("ignore")
        cases = sorted(collect_testcases(None), key=lambda case: str(case.name))
    entries, outside = [], defaultdict(list)
    with tempfile.TemporaryDirectory(dir=out) as scratch:
        folder = Path(scratch)
        for case in cases:
            entry = write_case(case, folder / case.name)
            if isinstance(entry, str):
                outside[entry].append(case.name)
            else:
                entries.append(entry)
        _pack(folder, entries, out / ARCHIVE)
    return result(
        details={
            "onnx_version": onnx.__version__,
            "tests": len(cases),
            "expressible": len(entries),
            "outside_contract": dict(sorted(outside.items())),
        },
        libraries={"onnx": onnx.__version__, "numpy": np.__version__},
    )


def main(arguments: list[str] | None = None) -> int:
    """Prepare the tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    try:
        given.out.mkdir(parents=True, exist_ok=True)
        write_result(given.out, prepare(given.out))
    except FAULTS as error:
        return write_fault(given.out, error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
