"""`python -m transect.portable_step.check_export MODEL.onnx --against MODULE:FACTORY`: what `transect check-export` runs."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import math
import os
import sys
import traceback
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.errors import FAULTS, BadInput, MissingDependency, say_fault
from transect.domain.terminal import say
from transect.onnx_models.accumulation import MADE_TOLERANCE_RULE
from transect.onnx_models.results import versions
from transect.portable_step.departure import Departure, departure
from transect.portable_step.factory import made_by
from transect.portable_step.faithful import Compared, Faithfulness, check_faithful, first_line

# A code of its own, as of `compare`: whatever ends Python with 1 is no verdict.
UNFAITHFUL, UNUSABLE = 4, 2


def main(arguments: list[str] | None = None) -> int:
    """Compare; return the exit code: 0 faithful, 4 not, 2 for what cannot be used, 3 when a library is missing."""
    parser = argparse.ArgumentParser(prog="transect check-export")
    parser.add_argument("model", type=Path)
    parser.add_argument("--against", metavar="MODULE:FACTORY", required=True)
    parser.add_argument("--inputs", type=Path)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.path.insert(0, str(Path.cwd()))
    try:
        # What a user's module prints is no part of the answer.
        with contextlib.redirect_stdout(sys.stderr):
            found, parts, note = _compare(given.model, given.against, given.inputs)
    except FAULTS as error:
        return say_fault(error, given.model) if isinstance(error, MissingDependency) else say_fault(error) and UNUSABLE
    if note:
        found.notes.append(note)
    try:
        if given.json:
            print(json.dumps(_facts(given.model, given.against, found, parts), indent=1))
        else:
            say(*_lines(given.model, given.against, found, parts), to=sys.stdout)
        sys.stdout.flush()
    except BrokenPipeError:
        # Or Python complains once more when it flushes at its end, and ends as for what is not faithful.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0 if found.faithful else UNFAITHFUL


def _compare(model: Path, against: str, inputs: Path | None) -> tuple[Faithfulness, Departure | None, str]:
    for library in ("torch", "onnx", "onnxruntime"):
        if importlib.util.find_spec(library) is None:
            raise MissingDependency(f"{library}: not installed in {sys.executable}")
    import torch

    module, example = _module(against)
    given = example if inputs is None else _read_inputs(inputs)
    if given is None:
        raise BadInput(f"{against}: it returned a module alone: expected its example inputs too, or --inputs FILE.npz")
    # One order of summation, or a module may give other outputs each time.
    torch.set_num_threads(1)
    module = module.cpu().eval()
    found = check_faithful(model, module, given)
    if found.faithful:
        return found, None, ""
    try:
        return found, departure(model, module, found.inputs, found.named), ""
    except Exception as error:
        return found, None, f"where the two part could not be found out: {first_line(error)}"


def _module(against: str) -> tuple[Any, Sequence[np.ndarray] | None]:
    """Return the module that a factory makes, and its example inputs, if it has any."""
    import torch

    from transect.portable_step.export import Step

    try:
        made = made_by(against)
    except BadInput:
        raise
    except FAULTS as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{at.filename}:{at.lineno}"
        raise BadInput(f"{against}: it failed: {place}: {type(error).__name__}: {first_line(error)}") from error
    if isinstance(made, torch.nn.Module):
        return made, None
    if isinstance(made, Step):
        # The last one of a step's example is the target.
        module, example = made.module, list(made.example)[:-1]
    elif isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], torch.nn.Module):
        module, example = made[0], [made[1]] if isinstance(made[1], torch.Tensor) else list(made[1])
    else:
        raise BadInput(
            f"{against}: it returned {type(made).__name__}: expected a module, a pair of it and its inputs, or a "
            "transect.portable_step.Step"
        )
    if strange := [type(one).__name__ for one in example if not isinstance(one, torch.Tensor)]:
        raise BadInput(f"{against}: its example holds {strange[0]}: expected tensors")
    try:
        return module, [one.detach().cpu().numpy() for one in example]
    except (TypeError, RuntimeError) as error:
        raise BadInput(f"{against}: an array cannot be made of its example: {first_line(error)}") from None


def _read_inputs(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as file:
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise BadInput(f"{path}: is a single array: expected a file .npz with an array for each input")
            return {name: file[name] for name in file.files}
    except BadInput:
        raise
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, AttributeError, TypeError) as error:
        raise BadInput(f"{path}: {first_line(error)}: expected a file .npz with an array for each input") from None


def _lines(model: Path, against: str, found: Faithfulness, parts: Departure | None) -> list[str]:
    lines = [_line(output) for output in found.outputs]
    if parts is not None:
        lines.append(f"first place: {_place(parts)}")
    lines += [f"note: {note}" for note in found.notes]
    wrong = sum(not output.faithful for output in found.outputs)
    verdict = f"is not faithful to {against} in {wrong} of" if wrong else f"is faithful to {against} in"
    return [*lines, f"{model} {verdict} {len(found.outputs)} outputs, on {', '.join(found.runs)}"]


def _place(parts: Departure) -> str:
    if not parts.last:
        return f"no part's output is in the file, from the first one on: {parts.first}"
    after = f"not that of {parts.first} after it" if parts.first else "no part comes after it"
    there = f"; in the file {', '.join(parts.operators)} takes it" if parts.operators else ""
    return f"the file has the output of {parts.last}, and {after}{there}"


def _line(output: Compared) -> str:
    word = "faithful" if output.faithful else "NOT faithful"
    if output.problem:
        return f"{output.name}: {word}: {output.problem} (on {output.run})"
    where = (
        f" at {list(output.at)} (the file {output.found}, torch {output.wanted}; {output.run})" if output.found else ""
    )
    return f"{output.name}: {word}: largest deviation {output.deviation:.3g}, tolerance {output.tolerance:.3g}{where}"


def _facts(model: Path, against: str, found: Faithfulness, parts: Departure | None) -> Mapping[str, Any]:
    outputs = [
        asdict(output)
        | {"deviation": output.deviation if math.isfinite(output.deviation) else None, "faithful": output.faithful}
        for output in found.outputs
    ]
    return {
        "model": str(model),
        "against": against,
        "faithful": found.faithful,
        "outputs": outputs,
        "runs": found.runs,
        "first_place": None if parts is None else asdict(parts),
        "notes": found.notes,
        "tolerance_rule": MADE_TOLERANCE_RULE,
        "libraries": versions("torch", "onnx", "onnxruntime", "onnxruntime-gpu", "numpy"),
    }


if __name__ == "__main__":
    sys.exit(main())
