"""What the tests of mode `train` are made of: a folder with all that a runner is given, to be spoilt."""

from __future__ import annotations

import json
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from checkouts import environment_python
from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.runtimes import RUNTIMES
from transect.runtimes.programs import start_command
from transect.runtimes.training import train_record
from transect.runtimes.training_plans import Training
from warm import run_command, warm

BATCH, STEPS = 4, 24
# Runners with level `train`; a new one is a line here. True: it computes with the kernels of the
# wheel's library or its like, so that the same steps are the same bytes.
TRAINERS = {
    "python": True,
    "python-iobinding": True,
    "c": True,
    "cpp": True,
    "rust": True,
    "go": True,
    "javascript": True,
    "browser": False,
    "java": True,
}


@dataclass
class Run:
    """A runner, a copy of the step and of what goes with it, and the arguments.

    `arguments`: fields of `Training`. `train()` runs it; `start()` lets it run. Any file of `folder` may be written anew before.
    """

    runtime: str
    python: str
    folder: Path
    made: Path

    def __post_init__(self) -> None:
        shutil.copytree(self.made, self.folder, dirs_exist_ok=True)
        paths = {
            "step": "step",
            "data": "data",
            "order": "order.bin",
            "checkpoint": "checkpoint.safetensors",
            "out": "out",
        }
        self.arguments: dict[str, Any] = {k: self.folder / v for k, v in paths.items()}
        # One thread: sums in one order.
        self.arguments |= {"batch": BATCH, "until": STEPS, "options": {"intra_op_num_threads": 1}}

    @property
    def checkpoint(self) -> Path:
        """Where the state goes."""
        return Path(self.arguments["checkpoint"])

    def write(self, name: str, content: Any) -> Path:
        """Write a file: bytes and texts as they are, an array as numbers, all else as JSON."""
        path = self.folder / name
        if isinstance(content, np.ndarray):
            content = content.tobytes()
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def edit(self, name: str, change: Callable[[Any], Any]) -> None:
        """Change what a JSON file says."""
        content = json.loads((self.folder / name).read_text())
        change(content)
        self.write(name, content)

    @property
    def out(self) -> Path:
        """Where the program leaves what it leaves."""
        return Path(self.arguments["out"])

    def command(self) -> list[str]:
        """Write the plan; return the argument list. Raises BadInput for what cannot be used."""
        return start_command(self.runtime, self.python, Training(**self.arguments).plan())

    def train(
        self, *, largest_file: int | None = None, fresh: bool = False, **more: Any
    ) -> tuple[int, dict[str, Any], str]:
        """Run with more arguments; return exit code, record, standard error: all three, also of what Python refuses.

        `fresh`: as in run_command; what compiles starts processes, and has one of its own.

        No file that it writes can grow beyond `largest_file` bytes, as on a full disk.
        """
        self.arguments |= more

        def limit() -> None:
            if largest_file is not None:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
                resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, most))

        try:
            command = self.command()
        except BadInput as error:
            return 2, {"status": "failed", "cause": "bad-input", "message": str(error)}, str(error)
        if largest_file is None:
            done = run_command(command, fresh=fresh or self.runtime == "torch-compile")
        else:
            done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit)
        record = train_record(self.runtime, self.out, done.returncode, self.arguments["step"], self.checkpoint)
        return done.returncode, record, done.stderr

    def good(self, **more: Any) -> dict[str, Any]:
        """Run, which must go well; return the record."""
        code, record, stderr = self.train(**more)
        assert (code, record.get("status")) == (0, "ok"), (record, stderr)
        return record

    def start(self) -> subprocess.Popen[bytes]:
        """Start it and let it run."""
        return subprocess.Popen(self.command(), stdout=subprocess.DEVNULL)


def make_steps(torch_python: str, folder: Path) -> Path:
    """Make what train_steps.py makes; return the folder."""
    helper = Path(__file__).with_name("train_steps.py")
    warm(torch_python).check(helper, folder)
    return folder


def runner_python(name: str, folder: Path) -> str:
    """Return the interpreter of a runner's environment; skips where it cannot be."""
    runtime = RUNTIMES.get(name)
    cell = Cell.of(stage="infer", workload="x", runtime=name, provider="cpu", batch=1)
    if reason := runtime.supports(cell):
        pytest.skip(reason)
    return environment_python(runtime.environment, folder)


def state_file(header: Any, data: bytes = b"") -> bytes:
    """Return a safetensors file with this header: bytes as they are, else as JSON."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def parts(path: Path) -> tuple[dict[str, Any], bytes]:
    """Return the header of a safetensors file, and what is behind it."""
    raw = path.read_bytes()
    end = 8 + int.from_bytes(raw[:8], "little")
    return json.loads(raw[8:end]), raw[end:]


def tensors(path: Path) -> dict[str, np.ndarray]:
    """Return the tensors of a state file."""
    header, data = parts(path)
    kinds = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "F16": "<f2", "BOOL": "?"}
    return {
        name: np.frombuffer(data[slice(*entry["data_offsets"])], kinds[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in header.items()
        if name != "__metadata__"
    }
