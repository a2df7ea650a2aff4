"""One call from a module of torch to a small study: trained, held to its reference, exported and served."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transect.domain.errors import BadInput
from transect.planning.python_members import PYTHON_MEMBER

# Enough that a difference can be told from chance.
_REPEATS = 5


def names_a_module(given: str) -> bool:
    """Whether what `transect train` is given is `FILE.py:NAME`, and no workload's name."""
    return PYTHON_MEMBER.fullmatch(given) is not None


def study_of_module(
    module: str, data: str | None, target: float | None, *, ranks: int, batch: int | None, repeats: int | None
) -> dict[str, Any]:
    """Return a study of one module: alone and data parallel on `ranks`, exported, served by the module itself and by ONNX Runtime.

    Raises BadInput where data or target is missing.
    """
    if data is None or target is None:
        raise BadInput(
            f"{module}: expected --data, a file such as my.npz or my_data.py:dataset, and --target, "
            "the score at which training is done, such as 0.9"
        )
    found = PYTHON_MEMBER.fullmatch(module)
    assert found is not None
    name = found["name"].lower().replace("_", "-")
    # The study lies among its results, so what it names is absolute.
    workload: dict[str, Any] = {"module": _absolute(module), "data": _absolute(data), "target": target}
    if batch is not None:
        workload["batch"] = batch
    alone: dict[str, Any] = {"workloads": [name], "frameworks": ["torch"], "strategies": ["single"]}
    grids = [alone] if ranks == 1 else [alone, alone | {"strategies": ["ddp-gloo"], "ranks": [ranks]}]
    served = {"workloads": [name], "runtimes": ["torch-eager", "python"], "exporters": ["dynamo"]}
    runs = _REPEATS if repeats is None else repeats
    return {
        "name": f"own-{name}",
        "workloads": {name: workload},
        "train": {"repeats": runs, "grids": grids},
        "export": {"workloads": [name], "exporters": ["dynamo"]},
        "infer": {"repeats": runs, "grids": [served]},
    }


def _absolute(given: str) -> str:
    file, colon, name = given.rpartition(":") if PYTHON_MEMBER.fullmatch(given) else (given, "", "")
    return f"{Path(file).expanduser().resolve()}{colon}{name}"
