"""Every runner, whatever its language: what is wrong is named, and ends with exit code 2."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from checkouts import environment_python
from onnx_cells import SERVING
from thirds import thirds
from transect.domain.cell import Cell
from transect.runtimes import RUNTIMES
from transect.runtimes.options import session_options
from warm import run_command

# Runtimes that do not run on `cpu`.
PROVIDERS = {"python-openvino": "openvino"}


@dataclass
class Case:
    """A folder with all that a runner is given, and the arguments, to be spoilt."""

    folder: Path
    python: str
    runtime: str

    def __post_init__(self) -> None:
        names = ("model", "inputs", "outputs", "options", "record")
        paths = ("model.onnx", "inputs", "outputs", "options.json", "record.json")
        self.arguments: dict[str, str] = {
            name: str(self.folder / path) for name, path in zip(names, paths, strict=True)
        }
        self.arguments |= {"warmup": "1", "min-runs": "10", "max-seconds": "0"}
        self.arguments["provider"] = PROVIDERS.get(self.runtime, "cpu")
        self.more: list[str] = []

    def header(self, **changes: Any) -> None:
        """Change what the header says of the tensor."""
        path = self.folder / "inputs" / "header.json"
        header = json.loads(path.read_text())
        header["batch"] = changes.pop("batch", header["batch"])
        header["tensors"][0] |= changes
        path.write_text(json.dumps(header))

    def options(self, **changes: Any) -> None:
        """Change the session options."""
        path = self.folder / "options.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    def write(self, name: str, text: str | bytes) -> None:
        """Replace a file."""
        (self.folder / name).write_bytes(text.encode() if isinstance(text, str) else text)

    def run(self, *, fresh: bool = False) -> tuple[int, dict[str, Any], str]:
        """Return exit code, record (empty when there is none) and standard error; `fresh` as in run_command."""
        given = [part for key, value in self.arguments.items() for part in (f"--{key}", value)]
        command = RUNTIMES.get(self.runtime).command(self.python, [*given, *self.more])
        done = run_command(command, cwd=self.folder, fresh=fresh)
        record = self.folder / "record.json"
        found = json.loads(record.read_text()) if record.exists() else {}
        return done.returncode, found, done.stderr


@pytest.fixture(scope="module", params=SERVING)
def runner(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    runtime = RUNTIMES.get(request.param)
    cell = Cell.of(
        stage="infer",
        workload="digits-cnn",
        runtime=request.param,
        provider=PROVIDERS.get(request.param, "cpu"),
        batch=1,
    )
    if reason := runtime.supports(cell):
        pytest.skip(reason)
    return request.param, environment_python(runtime.environment, tmp_path_factory.mktemp("env"))


@pytest.fixture
def case(runner: tuple[str, str], digits: Path, tmp_path: Path) -> Case:
    exported = digits / "torchscript"
    shutil.copy(exported / "model.onnx", tmp_path)
    shutil.copytree(exported / "inputs", tmp_path / "inputs")
    header = tmp_path / "inputs" / "header.json"
    header.write_text(json.dumps(json.loads(header.read_text()) | {"batch": 16}))
    (tmp_path / "options.json").write_text(json.dumps(session_options("equal", 1, "cpu", {})))
    return Case(tmp_path, runner[1], runner[0])


def test_what_is_right_runs(case: Case) -> None:
    code, record, stderr = case.run(fresh=True)
    assert (code, record.get("status")) == (0, "ok"), stderr
    assert len(record["run_ns"]) == len(record["bind_ns"]) == len(record["copy_ns"]) >= 10


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
    "no options": (lambda c: (c.folder / "options.json").unlink(), "options.json"),
    "unknown option": (lambda c: c.options(intra_threads=1), "intra_threads"),
    "negative threads": (lambda c: c.options(intra_op_num_threads=-1), "intra_op_num_threads"),
    "text for a flag": (lambda c: c.options(enable_mem_pattern="yes"), "enable_mem_pattern"),
    "number for an entry": (lambda c: c.options(**{"session.x": 1}), "session.x"),
    "unknown provider": (lambda c: c.arguments.update(provider="quantum"), "quantum"),
    "unknown argument": (lambda c: c.more.extend(["--colour", "red"]), "colour"),
    "argument twice": (lambda c: c.more.extend(["--warmup", "3"]), "warmup"),
    "no runs": (lambda c: c.arguments.update({"min-runs": "0"}), "min-runs"),
    "endless": (lambda c: c.arguments.update({"max-seconds": "inf"}), "max-seconds"),
    "load without arrivals": (lambda c: c.arguments.update(mode="load"), "arrivals"),
    "nothing to be run": (lambda c: c.arguments.pop("model"), "model"),
}


@pytest.mark.parametrize(("runner", "fault"), thirds(SERVING, FAULTS), indirect=["runner"])
def test_what_is_wrong_is_named(case: Case, fault: str) -> None:
    spoil, word = FAULTS[fault]
    spoil(case)
    code, record, stderr = case.run()
    assert (code, record.get("cause")) == (2, "bad-input"), (record, stderr)
    assert word in record["message"], record["message"]
    assert word in stderr
    assert record["runner"] == case.runtime


ARRIVALS = {
    "none": b"",
    "cut": b"\0" * 12,
    "that fall": np.array([5, 3], "<i8").tobytes(),
    "before the begin": np.array([-1], "<i8").tobytes(),
}


@pytest.mark.parametrize(("runner", "arrivals"), thirds(SERVING, ARRIVALS), indirect=["runner"])
def test_arrivals_that_are_none_are_named(case: Case, arrivals: str) -> None:
    case.write("arrivals.bin", ARRIVALS[arrivals])
    case.arguments |= {"mode": "load", "arrivals": str(case.folder / "arrivals.bin")}
    code, record, stderr = case.run()
    assert (code, record.get("cause")) == (2, "bad-input"), (record, stderr)
    assert "arrivals.bin" in record["message"]


def test_without_a_record_the_message_is_all(case: Case) -> None:
    del case.arguments["record"]
    code, record, stderr = case.run()
    assert (code, record) == (2, {})
    assert "record" in stderr
