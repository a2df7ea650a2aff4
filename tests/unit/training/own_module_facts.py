"""Inspects modules of users, and makes modules and datasets of theirs twice; prints what was found, as JSON.

`python own_module_facts.py NAME...`, in the environment `torch`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from transect.domain.errors import BadInput
from transect.payloads import inspect_module
from transect.training.datasets import DATASETS
from transect.training.datasets.python import PythonDataset
from transect.training.datasets.table import Table
from transect.training.frameworks._module_files import make_module
from transect.training.module_model import MODULE_FACTS
from transect.training.own_workload import register_own

FILE = Path(__file__).with_name("modules_of_users.py")


def inspected(name: str) -> dict[str, Any] | str:
    """Return what the stage finds, or what it says."""
    with tempfile.TemporaryDirectory() as folder:
        generator, data = np.random.default_rng(1), Path(folder, "my.npz")
        np.savez(data, x=generator.standard_normal((30, 2, 6, 6)).astype(np.float32), y=np.arange(30) % 3)
        register_own("mine", {"file": str(FILE), "name": name, "options": {}, "dataset": "arrays"})
        parameters = {"batch": 6, "epochs": 1, "learning_rate": 0.1, "quality_target": 0.5}
        parameters["dataset_options"] = {"path": str(data)}
        spec = {"workload": "mine", "parameters": parameters, "seed": 1, "repeats": 1}
        try:
            inspect_module.run(spec, {}, Path(folder))
        except BadInput as error:
            return str(error)
        found: dict[str, Any] = json.loads(Path(folder, MODULE_FACTS).read_text())
        return {key: found[key] for key in ("draws", "not_checkable")}


def made_twice() -> dict[str, bool]:
    """Return whether what is made again is the same, or another one."""
    first, again = (make_module(FILE, "Shuffled", {}) for _ in range(2))
    one, other = (make_module(FILE, "made", {}) for _ in range(2))
    dataset, options = DATASETS.get("python"), {"path": str(FILE), "name": "divided"}
    assert isinstance(dataset, PythonDataset)
    samples, rows = dataset.load(options), np.arange(5)
    torch.rand(1)
    (read,) = dataset.reader(Path(), options, 0, np.float32, 1).read([(0, rows)])
    return {
        "order": bool((first.order == again.order).all()),
        "one for each": one.head.weight.data_ptr() != other.head.weight.data_ptr(),
        "samples": bool((samples.x[rows] == read).all()),
    }


def tables() -> dict[str, Any]:
    """Return what is said of tables that cannot be used, and how many rows one has that was saved twice."""
    import pyarrow as pa
    from pyarrow import ipc

    said: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "my.csv")
        for name, text, features in (("leak", "a,kind\n1,0\n", ["a", "kind"]), ("gap", "a,kind\n1,x\n2,\n", None)):
            path.write_text(text)
            try:
                said[name] = Table().load({"path": str(path), "target": "kind", "features": features}).y.tolist()
            except BadInput as error:
                said[name] = str(error)
        rows = pa.table({"a": [1, 2, 3], "kind": [0, 1, 0]})
        # The second time in one file.
        for file in ("data-00000-of-00002.arrow", "data-00000-of-00001.arrow"):
            with ipc.new_stream(str(Path(folder, file)), rows.schema) as writer:
                writer.write_table(rows)
        Path(folder, "state.json").write_text(json.dumps({"_data_files": [{"filename": file}]}))
        said["saved"] = len(Table().load({"path": folder, "target": "kind"}).y)
    return said


if __name__ == "__main__":
    print(json.dumps({name: inspected(name) for name in sys.argv[1:]} | {"made": made_twice(), "tables": tables()}))
