"""What cannot be run is named before a program is started, whatever its language."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnx_cells import SERVING
from transect.domain.errors import BadInput
from transect.runtimes.options import session_options
from transect.runtimes.plan_file import Plan
from transect.runtimes.programs import start_command
from transect.runtimes.serving_plans import Serving


@dataclass
class Case:
    """A folder with all that a runner is given, and what is asked: fields of `Serving`, to be spoilt."""

    folder: Path
    asked: dict[str, Any] = field(default_factory=dict)
    provider: str = "cpu"

    def header(self, **changes: Any) -> None:
        """Change what the header says of the tensor."""
        path = self.folder / "inputs" / "header.json"
        header = json.loads(path.read_text())
        header["batch"] = changes.pop("batch", header["batch"])
        header["tensors"][0] |= changes
        path.write_text(json.dumps(header))

    def options(self, **changes: Any) -> None:
        """Change the session options."""
        self.asked["options"] = self.asked["options"] | changes

    def write(self, name: str, text: str | bytes) -> None:
        """Replace a file."""
        (self.folder / name).write_bytes(text.encode() if isinstance(text, str) else text)

    def plan(self) -> Plan:
        """Return the plan, and start nothing."""
        paths = {"model": "model.onnx", "inputs": "inputs", "outputs": "outputs", "out": "."}
        return Serving(**{key: self.folder / path for key, path in paths.items()} | self.asked).plan()


@pytest.fixture
def case(digits: Path, tmp_path: Path) -> Case:
    exported = digits / "torchscript"
    shutil.copy(exported / "model.onnx", tmp_path)
    shutil.copytree(exported / "inputs", tmp_path / "inputs")
    header = tmp_path / "inputs" / "header.json"
    header.write_text(json.dumps(json.loads(header.read_text()) | {"batch": 16}))
    return Case(tmp_path, {"options": session_options("equal", 1, "cpu", {})})


def test_what_is_right_has_a_plan(case: Case) -> None:
    plan = case.plan()
    assert (plan.batch, plan.rows) == (16, 50)


@pytest.mark.parametrize("runtime", SERVING)
def test_unknown_provider_is_named(case: Case, runtime: str) -> None:
    case.asked["provider"] = "quantum"
    with pytest.raises(BadInput, match=f"'quantum': {runtime} has "):
        start_command(runtime, "python", case.plan())
    assert not (case.folder / "plan.bin").exists()


# Each with a word that the message must have.
FAULTS: dict[str, tuple[Callable[[Case], Any], str]] = {
    "no model": (lambda c: (c.folder / "model.onnx").unlink(), "model.onnx"),
    "empty model": (lambda c: c.write("model.onnx", b""), "model.onnx"),
    "no header": (lambda c: (c.folder / "inputs" / "header.json").unlink(), "header.json"),
    "deep header": (lambda c: c.write("inputs/header.json", "[" * 200_000), "header.json"),
    "huge shape": (lambda c: c.header(shape=[2**40, 2**40]), "input"),
    "number beyond 64 bits": (lambda c: c.header(shape=[2**70]), "input"),
    "other shape": (lambda c: c.header(shape=[50, 1, 8, 9]), "input"),
    "negative shape": (lambda c: c.header(shape=[-50, 1, 8, 8]), "input"),
    "unknown type": (lambda c: c.header(dtype="float31"), "float31"),
    "other type": (lambda c: c.header(dtype="int32"), "int32"),
    "no file": (lambda c: c.header(file="gone.bin"), "gone.bin"),
    "cut file": (lambda c: c.write("inputs/tensor-0.bin", b"\0" * 1000), "tensor-0.bin"),
    "unknown input": (lambda c: c.header(name="other"), "other"),
    "no batch of that size": (lambda c: c.header(batch=51), "batch"),
    "batch of nothing": (lambda c: c.header(batch=0), "batch"),
    "unknown option": (lambda c: c.options(intra_threads=1), "intra_threads"),
    "negative threads": (lambda c: c.options(intra_op_num_threads=-1), "intra_op_num_threads"),
    "text for a flag": (lambda c: c.options(enable_mem_pattern="yes"), "enable_mem_pattern"),
    "number for an entry": (lambda c: c.options(**{"session.x": 1}), "session.x"),
    "no runs": (lambda c: c.asked.update(min_runs=0), "min_runs"),
    "endless": (lambda c: c.asked.update(max_seconds=float("inf")), "max_seconds"),
    "fewer than no calls before": (lambda c: c.asked.update(warmup=-1), "warmup"),
    "no session": (lambda c: c.asked.update(sessions=0), "sessions"),
    "list in place of a header": (lambda c: c.write("inputs/header.json", "[]"), "header.json"),
    "tensor twice": (
        lambda c: c.write(
            "inputs/header.json",
            json.dumps({"tensors": json.loads((c.folder / "inputs" / "header.json").read_text())["tensors"] * 2}),
        ),
        "twice",
    ),
    "zero byte in a name": (lambda c: c.header(name="in\0put"), "texts"),
    "number for a provider's option": (lambda c: c.options(provider_options={"device_id": 0}), "provider_options"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_is_named(case: Case, fault: str) -> None:
    spoil, word = FAULTS[fault]
    spoil(case)
    before = sorted(case.folder.rglob("*"))
    with pytest.raises(BadInput) as error:
        case.plan()
    assert word in str(error.value)
    assert sorted(case.folder.rglob("*")) == before


ARRIVALS = {
    "none": b"",
    "cut": b"\0" * 12,
    "that fall": np.array([5, 3], "<i8").tobytes(),
    "before the begin": np.array([-1], "<i8").tobytes(),
    "beyond 64 bits": np.array([2**60 + 1], "<i8").tobytes(),
}


@pytest.mark.parametrize("arrivals", ARRIVALS)
def test_arrivals_that_are_none_are_named(case: Case, arrivals: str) -> None:
    case.write("arrivals.bin", ARRIVALS[arrivals])
    case.asked["arrivals"] = case.folder / "arrivals.bin"
    with pytest.raises(BadInput, match=r"arrivals\.bin"):
        case.plan()
