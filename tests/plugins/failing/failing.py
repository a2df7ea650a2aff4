"""Test frameworks and runtimes that fail in each way that a study must survive."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.cell import Cell
from transect.runtimes import RUNTIMES, Runtime
from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.frameworks.numpy_ import NumpyFramework


@FRAMEWORKS.register("test-raises")
class Raises(NumpyFramework):
    def trainer(self, plan: ModelPlan) -> NumpyTrainer:
        raise ValueError("<script>alert('a crash')</script>")


@FRAMEWORKS.register("test-quits")
class Quits(NumpyFramework):
    def trainer(self, plan: ModelPlan) -> NumpyTrainer:
        sys.exit(0)


@FRAMEWORKS.register("test-killed")
class Killed(NumpyFramework):
    def trainer(self, plan: ModelPlan) -> NumpyTrainer:
        print("about to be killed", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("not reached")


@FRAMEWORKS.register("test-sleeps")
class Sleeps(NumpyFramework):
    def trainer(self, plan: ModelPlan) -> NumpyTrainer:
        print("sleeping past the limit", flush=True)
        time.sleep(600)
        raise AssertionError("not reached")


@FRAMEWORKS.register("test-eats-memory")
class EatsMemory(NumpyFramework):
    def trainer(self, plan: ModelPlan) -> NumpyTrainer:
        hoard = []
        while True:
            hoard.append(b"x" * 2**24)
            time.sleep(0.01)


@FRAMEWORKS.register("test-needs-module")
class NeedsModule(NumpyFramework):
    def trainer(self, plan: ModelPlan) -> NumpyTrainer:
        import transect_no_such_module  # type: ignore[import-not-found]

        return transect_no_such_module


@FRAMEWORKS.register("test-broken-environment")
class BrokenEnvironment(NumpyFramework):
    environment = "broken"


class _WrongTrainer(NumpyTrainer):
    def update(self, learning_rate: float) -> None:
        self.flat_gradient *= 1.01
        super().update(learning_rate)


@FRAMEWORKS.register("test-wrong")
class Wrong(NumpyFramework):
    """Scales every gradient by 1 %: fast, and wrong."""

    def trainer(self, plan: ModelPlan) -> NumpyTrainer:
        return _WrongTrainer(plan)


@FRAMEWORKS.register("test-kills-its-runner")
class KillsItsRunner(NumpyFramework):
    """Takes the runner down with it, as the kernel's out-of-memory killer may."""

    def trainer(self, plan: ModelPlan) -> NumpyTrainer:
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
        raise AssertionError("not reached")


@FRAMEWORKS.register("test-truncates")
class Truncates(NumpyFramework):
    """Its ranks' series lose their second half, and no rank says a word of it."""

    def trainer(self, plan: ModelPlan) -> NumpyTrainer:
        whole = np.savez

        def half(stream: Any, **arrays: np.ndarray) -> None:
            whole(stream, **arrays)
            if "epoch_end" in arrays:
                stream.truncate(stream.tell() // 2)

        np.savez = half  # type: ignore[assignment]
        return NumpyTrainer(plan)


@FRAMEWORKS.register("test-supports-raises")
class SupportsRaises(NumpyFramework):
    def supports(self, cell: Cell) -> str | None:
        raise ZeroDivisionError("asked whether it can")


class _Ends(Runtime):
    """A runner that runs nothing: `program` writes the lines `r` of its result, or does not."""

    environment = "base"
    uses_exporter = False
    program = ""

    def supports(self, cell: Cell) -> str | None:
        return None

    def command(self, python: str, arguments: list[str]) -> list[str]:
        lines = str(Path(arguments[-1]).with_name("result.jsonl"))
        return [python, "-c", f"import os, sys; r = {lines!r}; {self.program}"]

    def files(self, python: str) -> list[Path]:
        return []


def _says(line: str) -> str:
    return f"open(r, 'w').write({line + chr(10)!r})"


_PROGRAMS = {
    "test-fails-silently": _says('{"status": "failed", "cause": "crash", "message": ""}'),
    "test-skips-silently": _says('{"status": "skipped", "reason": ""}'),
    "test-unknown-cause": _says('{"status": "failed", "cause": "bad-luck", "message": "the stars"}'),
    # It says that all went well, and leaves no outputs.
    "test-half-a-record": _says('{"status": "ok", "provider_used": "cpu"}'),
    "test-not-a-record": _says("[1, 2"),
    "test-lies": _says('{"status": "ok", "provider_used": "cuda", "outputs": [[1, [0]]]}')
    + "; open(r.replace('result.jsonl', 'times.bin'), 'w')",
    "test-leaves": _says('{"status": "ok"}') + "; sys.exit(7)",
    "test-aborts": "os.abort()",
    "test-leaks": "kept = [bytearray(b'x' * 50_000_000) for _ in range(10**6)]",
}
for _name, _program in _PROGRAMS.items():
    RUNTIMES.register(_name)(type("Ends", (_Ends,), {"__doc__": _name, "program": _program}))
