"""How the ranks of a study's own script are started, and why they ended badly."""

from __future__ import annotations

import json
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transect.domain.axes.train import TrainCell
from transect.domain.errors import BadInput
from transect.domain.record import Cause
from transect.engine.job import Job, Result, cell_of
from transect.engine.stage_helpers import ranks
from transect.launch import Request
from transect.launch.processes import Outcome
from transect.stages.train.script_result import script_result
from transect.training.own_workload import SPEC_KEY
from transect.training.rank_files import rank_name
from transect.training.script_workload import FOLDER, SCRIPTS, Script
from transect.training.strategies import STRATEGIES

# What the script finds where it runs: `data` of the study, and what it writes itself.
_WORK = "work"
# The last line of a traceback: the exception's name, which may be dotted, and what it says.
_RAISED = re.compile(r"^([A-Za-z_][\w.]*)(?::.*)?$")
# What torch puts before it.
_OF_RANK = re.compile(r"^\[rank\d+\]: ?")
_MOST = 500
_ENDS = ("Error", "Exception", "Interrupt", "Exit")
_NO_MEMORY = re.compile(r"OutOfMemory|MemoryError|ResourceExhausted|out of memory|can't allocate memory", re.IGNORECASE)
_TRACEBACK = "Traceback (most recent call last):"


def prepare(job: Job) -> tuple[str, Request]:
    """Return the launcher's name and the request; `work` holds links to what `data` names."""
    cell = cell_of(job, TrainCell)
    study, seed = Path(job.spec[FOLDER]), job.spec["seed"]
    script = Script.model_validate(job.spec[SPEC_KEY][SCRIPTS][cell.framework])
    file, work = (study / script.file).resolve(), job.folder / _WORK
    if not file.is_file():
        raise BadInput(f"{file}: no such file, which is the script of {cell.workload}")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    for name in script.data:
        path = Path(name)
        if not path.is_absolute() and path.parts[:1] != ("~",):
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).symlink_to((study / path).resolve())
    command = [job.python, "-m", "transect.payloads.script_rank", "--out", str(job.folder), "--work", str(work)]
    command += ["--device", cell.device, *(["--alone"] if cell.strategy == "single" else [])]
    if script.epoch_line is not None:
        command += [f"--epoch-line={script.epoch_line}"]
    command += ["--", str(file), *(script.filled(text, cell, seed) for text in script.arguments)]
    launcher, request = ranks(job, command, STRATEGIES.get(cell.strategy).rendezvous)
    variables = {name: script.filled(text, cell, seed) for name, text in script.variables.items()}
    if cell.device == "cpu":
        # Most scripts take a GPU where they see one.
        variables["CUDA_VISIBLE_DEVICES"] = ""
    request.variables.update(variables)
    return launcher, request


def _facts(job: Job) -> list[dict[str, Any]]:
    """Return what the ranks left, in rank order."""
    paths = sorted(job.folder.glob("rank-*.json"))
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def who(job: Job) -> str:
    """Name the rank that ended badly first; empty where none says so."""
    failed = [facts for facts in _facts(job) if facts["code"]]
    return f"rank {min(failed, key=lambda facts: facts['ended'])['rank']}" if failed else ""


def collect(job: Job, outcome: Outcome) -> Result:
    """Read what the script told of its epochs; or name the cause of its end."""
    facts = _facts(job)
    failed = [one for one in facts if one["code"]]
    if outcome.code or failed:
        return _failure(job, failed, outcome.code)
    if len(facts) != job.cell.ranks:
        return Result.failed(
            Cause.CRASH, f"{len(facts)} of {job.cell.ranks} ranks left {rank_name(0)}.json and its like"
        )
    return script_result(job, facts)


def _failure(job: Job, failed: list[dict[str, Any]], code: int) -> Result:
    log = job.log.read_text(encoding="utf-8", errors="replace") if job.log.exists() else ""
    cause, message = last_words(log, several=job.cell.ranks > 1)
    if failed:
        code = min(failed, key=lambda one: one["ended"])["code"]
    end = f"exit code {code}" if code > 0 else f"ended by {signal.Signals(-code).name}"
    name = f"{who(job)}: " if failed and job.cell.ranks > 1 else ""
    if not message:
        last = next((line.strip() for line in reversed(log.splitlines()) if line.strip()), "")
        message = f"no exception in its output, which ends: {last[:_MOST]}" if last else "it printed nothing"
    return Result.failed(cause, f"{name}{message} ({end})")


def last_words(log: str, *, several: bool) -> tuple[Cause, str]:
    """Return the cause, and the line of the exception that ended a script; no line where its output has none.

    That is the last one, or of `several` ranks the first: the others' may be no more than that it has gone.

    >>> last_words("Traceback (most recent call last):\\n  File ...\\nValueError: boom\\n", several=False)
    (<Cause.CRASH: 'crash'>, 'ValueError: boom')
    """
    found = list(_exceptions(log.splitlines()))
    message = found[0 if several else -1] if found else ""
    if _NO_MEMORY.search(message):
        return Cause.OUT_OF_MEMORY, message
    if message.startswith(("ModuleNotFoundError", "ImportError")):
        return Cause.MISSING_DEPENDENCY, message
    return Cause.CRASH, message


def _exceptions(lines: list[str]) -> Iterator[str]:
    """Yield the line that ends each traceback."""
    inside = False
    for line in lines:
        inside = inside or _TRACEBACK in line
        text = _OF_RANK.sub("", line)
        found = _RAISED.match(text) if inside else None
        if found is not None and found[1].rpartition(".")[2].endswith(_ENDS):
            inside = False
            yield text.strip()[:_MOST]
