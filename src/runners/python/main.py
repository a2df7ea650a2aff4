"""A program in Python under the runner contract: docs/runner-contract.md.

Needs numpy and nothing of transect. A program gives what makes a session, an `Engine`, and where it trains
what makes a `Trainer`; the work itself is in `measure.py`, `load.py` and `train.py`.
"""

from __future__ import annotations

import platform
import sys
import traceback
from typing import Any

from engines import BadInput, OpenEngine, OpenTrainer, Skip, Unsupported
from load import run_load
from measure import run_cases, run_latency
from plan import Level, read_plan
from result import Result
from train import run_train

CRASH, BAD_INPUT, SKIPPED = 1, 2, 3


def run_program(name: str, open_engine: OpenEngine | None, open_trainer: OpenTrainer | None = None) -> int:
    """Do what the plan says that the only argument names; return the exit code."""
    try:
        if len(sys.argv) != 2:
            raise BadInput(f"usage: {sys.argv[0]} PLAN")
        plan = read_plan(sys.argv[1])
    except BadInput as error:
        print(f"{name}: {error}", file=sys.stderr)
        return BAD_INPUT
    result = Result(plan)
    runs = {Level.LATENCY: run_latency, Level.LOAD: run_load, Level.CASES: run_cases, Level.TRAIN: run_train}
    run: Any = runs[Level(plan.level)]
    end: dict[str, Any]
    opened = open_trainer if plan.level == Level.TRAIN else open_engine
    try:
        if opened is None:
            raise BadInput(f"the program has no level {Level(plan.level).name.lower()}")
        facts = run(plan, result, opened)
        end, code = {"status": "ok", "language_version": f"Python {platform.python_version()}"} | facts, 0
    except Skip as skip:
        end, code = {"status": "skipped", "reason": str(skip)}, SKIPPED
        print(f"{name}: skipped: {skip}", file=sys.stderr)
    except Exception as error:
        cause, code = _cause(error)
        told = code == BAD_INPUT or isinstance(error, OSError)
        message = str(error) if told else f"{type(error).__name__}: {error}"
        if not told:
            traceback.print_exc()
        print(f"{name}: {' '.join(message.split())}", file=sys.stderr)
        end = {"status": "failed", "cause": cause, "message": message}
    try:
        result.say(**end)
    except OSError as error:
        print(f"{name}: the result cannot be written: {error}", file=sys.stderr)
        return code or CRASH
    return code


def _cause(error: Exception) -> tuple[str, int]:
    # ONNX Runtime's exceptions are internal classes: told apart by name.
    if isinstance(error, (BadInput, Unsupported)) or type(error).__name__ == "InvalidArgument":
        return "bad-input", BAD_INPUT
    if isinstance(error, ImportError):
        return "missing-dependency", CRASH
    full = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    if full or any(words in str(error) for words in ("bad_alloc", "Failed to allocate")):
        return "out-of-memory", CRASH
    return "crash", CRASH
