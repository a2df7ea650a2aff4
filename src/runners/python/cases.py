"""Mode `cases` of the runner contract: many small models, each run once, without times."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, TextIO

from engines import OpenEngine, Skip, Unsupported
from outputs import Outputs
from tensors import BadInput, read_header, read_json

_KEYS = ("name", "model", "inputs", "outputs")


def _read(path: Path) -> list[dict[str, str]]:
    cases = read_json(path)
    if not isinstance(cases, list):
        raise BadInput(f"{path}: expected a list of cases, got {cases!r:.100}")
    for case in cases:
        if not isinstance(case, dict) or not all(isinstance(case.get(k), str) for k in _KEYS):
            raise BadInput(f"{path}: expected cases with {', '.join(_KEYS)}, got {case!r:.200}")
    return cases


def _run(case: dict[str, str], given: argparse.Namespace, open_engine: OpenEngine) -> None:
    own = argparse.Namespace(**vars(given) | {"model": Path(case["model"])})
    tensors, _, _ = read_header(Path(case["inputs"]))
    engine = open_engine(own, None)
    engine.step(tensors)
    outputs = Outputs(Path(case["outputs"]), engine.output_names, engine.output_types)
    outputs.append(engine.results, None)
    outputs.close()


def _say(file: TextIO, line: dict[str, Any]) -> None:
    file.write(json.dumps(line) + "\n")
    file.flush()


def run_cases(given: argparse.Namespace, open_engine: OpenEngine) -> None:
    """Run the cases from `--skip` on; say of each what came of it."""
    cases = _read(given.cases)
    given.record.parent.mkdir(parents=True, exist_ok=True)
    with given.record.open("a", encoding="utf-8") as file:
        for index, case in enumerate(cases[given.skip :], given.skip):
            told = {"case": index, "name": case["name"]}
            _say(file, told | {"status": "started"})
            try:
                _run(case, given, open_engine)
                told |= {"status": "ok"}
            except Skip:
                raise
            except Unsupported as error:
                told |= {"status": "unsupported", "message": str(error)}
            except Exception as error:
                told |= {"status": "failed", "message": f"{type(error).__name__}: {error}"}
            _say(file, told)
