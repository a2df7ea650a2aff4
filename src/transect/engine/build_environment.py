"""Make an environment from its pinned requirements, once per lock hash.

`python -m transect.engine.build_environment --name NAME --out STAMP.json` always writes the
stamp and exits 0: a failed build is a cause that its cells carry, not the end of the study.
With `NAME@WRAPPER` it makes the image of the environment besides (transect/engine/build_image.py).

`envs/NAME/build.sh FOLDER`, where there is one, runs after the requirements are installed and may
leave facts about itself, a JSON object, in `FOLDER/transect-build.json`: they go into the stamp.
The folder of each environment that `needs.txt` names is in its variable TRANSECT_NEEDS_NAME.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shutil
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from transect.domain.errors import FAULTS, Interruption, interruption_behind, say_fault
from transect.domain.files import write_atomic, write_if_changed
from transect.domain.paths import StudyPaths, environments_folder
from transect.domain.secrets import without_secrets
from transect.domain.strict_yaml import load_model
from transect.domain.system import EnvironmentChoice, System
from transect.domain.terminal import say
from transect.engine.attempts import CELL_VARIABLE, clear_leftovers
from transect.engine.build_image import build_image
from transect.engine.environment_use import note_use
from transect.engine.locks import on_machine, one_builder
from transect.engine.run_block import end_on_signals
from transect.launch.images import complaint, parts_of
from transect.launch.processes import run
from transect.measure.footprint import footprint, interpreter
from transect.planning.environments import environment_source, lock_hash, lock_hash_now, needed_environments

COMPLETE = "transect-complete.json"
_FACTS = "transect-build.json"
# What compilers, CMake, make and our own scripts call an error. What pip calls one only frames them.
_ERROR = re.compile(
    r"(?:^|[\s:])(?:fatal )?error: (?!subprocess-exited|metadata-generation|legacy-install)"
    r"|^\s*CMake Error|\*\*\* .*Error \d"
)
_AGAIN = "`transect reset RESULTS/STUDY`, and call snakemake again"


class _Failed(ValueError):
    """A command of a build failed, or what is built changed under it."""


def failure_excerpt(log: str) -> str:
    """Return the lines of a failed build's log around its first error, and its last lines."""
    lines = [line[:300] for line in log.splitlines()]  # a compiler's command line can be kilobytes long
    last = max(0, len(lines) - 15)
    first = next((i for i, line in enumerate(lines) if _ERROR.search(line)), len(lines))
    return "\n".join(lines[max(0, first - 2) : min(first + 5, last)] + lines[last:])


def _needs(name: str, log: Path) -> dict[str, str]:
    """Build the environments that this one needs; return variables with their paths."""
    variables = {}
    for needed in needed_environments(name):
        facts = build(needed, log.with_name(f"{log.stem}.{needed}.log"))
        if facts["status"] != "ok":
            raise _Failed(f"it needs environment '{needed}', which {facts['message']}")
        word = re.sub(r"\W", "_", needed).upper()
        variables[f"TRANSECT_NEEDS_{word}"] = str(Path(facts["python"]).parents[1])
    return variables


def _install(name: str, folder: Path, log: Path) -> dict[str, Any]:
    """Create the virtual environment; return the seconds of each step. Raises _Failed (see the log), OSError."""
    source = environment_source(name)
    python = folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet"]
    commands = {
        "venv_s": [sys.executable, "-m", "venv", str(folder)],
        "requirements_s": [*pip, "--requirement", str(source / "requirements.txt")],
    }
    if (source / "build.sh").is_file():
        commands["script_s"] = ["bash", str(source / "build.sh"), str(folder)]
    # The driver's PYTHONPATH has no place in another environment's installation. By the mark the
    # next builder finds what this one left.
    variables = {"PYTHONPATH": "", CELL_VARIABLE: str(folder)} | _needs(name, log)
    facts: dict[str, Any] = {}
    log.parent.mkdir(parents=True, exist_ok=True)
    for part, command in commands.items():
        ended = run([(command, variables)], log=log, cwd=Path.cwd(), seconds=math.inf)
        facts[part] = round(ended.seconds, 1)
        if ended.code:
            how = "died with signal" if ended.end == "signalled" else "returned exit status"
            raise _Failed(f"{command} {how} {ended.code}")
    if (folder / _FACTS).is_file():
        facts |= json.loads((folder / _FACTS).read_text())
    if lock_hash_now(name) != lock_hash(name):
        raise _Failed(f"{source} was edited while it was built: {_AGAIN}")
    return facts


def _made(folder: Path, name: str) -> dict[str, Any] | None:
    for needed in needed_environments(name):
        if _made(environments_folder() / f"{needed}-{lock_hash(needed)}", needed) is None:
            return None
    try:
        facts: dict[str, Any] = json.loads((folder / COMPLETE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return facts if (folder / "bin" / "python").exists() else None


def _make(name: str, folder: Path, log: Path) -> dict[str, Any]:
    say(f"[transect] building environment '{name}' in {folder}")
    start = time.monotonic()
    log.unlink(missing_ok=True)
    # A builder that was killed leaves its pip behind, which would write into ours.
    clear_leftovers(folder)
    try:
        # What cannot be removed must not be built upon: pip takes half a package for a whole one.
        if folder.exists():
            shutil.rmtree(folder)
        built = _install(name, folder, log)
        built |= {"build_s": round(time.monotonic() - start, 1)}
        write_atomic(folder / COMPLETE, json.dumps(built))
    except (OSError, ValueError):
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return built


def build(name: str, log: Path, planned: str | None = None, machine: Path | None = None) -> dict[str, Any]:
    """Return the facts of the environment, building it first when the cache has none.

    `planned`: the lock hash that the cells stand for, by default that of the files as they are. When
    these were edited since, only an environment that was made before is good.
    `machine` is the file by which this machine is held: another study measures beside no build.
    """
    wanted = planned or lock_hash(name)
    folder = environments_folder() / f"{name}-{wanted}"
    facts = {"name": name, "lock_hash": wanted, "python": str(folder / "bin" / "python"), "status": "ok", "message": ""}
    # Before the lock: a cache that others keep may be readable only.
    if (made := _made(folder, name)) is not None:
        note_use(name, wanted)
        return facts | made
    try:
        if wanted != lock_hash(name):
            raise _Failed(f"{environment_source(name)} was edited since the study was planned: {_AGAIN}")
        with one_builder(folder, log), on_machine(machine, f"environment '{name}'"):
            note_use(name, wanted)
            return facts | (_made(folder, name) or _make(name, folder, log))
    except (OSError, ValueError) as error:
        if (end := interruption_behind(error)) is not None:
            raise end from None
        text = log.read_text(errors="replace") if log.exists() else ""
        hint = "" if isinstance(error, ValueError) else "; TRANSECT_ENVS names another folder"
        say(f"[transect] environment '{name}' failed, see {log}")
        return facts | {"status": "failed", "message": f"could not be built: {error}{hint}\n{failure_excerpt(text)}"}


def chosen(name: str, choice: EnvironmentChoice) -> dict[str, Any]:
    """Return the facts of an environment that the system offers as modules or as an image.

    Nothing is built. An image that is not there is a failure; modules show when a cell loads them.
    """
    facts: dict[str, Any] = {
        "name": name,
        "lock_hash": lock_hash(name, choice),
        "python": choice.python,
        "modules": choice.modules,
        "image": choice.image,
        "wrap": True,
        "status": "ok",
        "message": "",
    }
    if choice.wrapper is not None:
        facts["wrapper"] = choice.wrapper
    reason = complaint(choice.image) if choice.image else None
    return facts | {"status": "failed", "message": reason} if reason else facts


def made(
    name: str, choice: EnvironmentChoice | None, log: Path, planned: str | None = None, machine: Path | None = None
) -> dict[str, Any]:
    """Return the facts of what cells stand on: a choice of the system, an environment, or its image.

    `planned` and `machine` as in `build`.
    """
    if choice is not None:
        return chosen(name, choice)
    environment, wrapper = parts_of(name)
    if not wrapper:
        return build(name, log, planned, machine)
    return build_image(name, build(environment, log, machine=machine), planned)


def sized(facts: dict[str, Any]) -> dict[str, Any]:
    """Add what is installed: `environment` and the `interpreter` that it borrows, each files and bytes.

    Of modules nobody knows what belongs to them: nothing is added. An image is one file or a folder.
    """
    image = facts.get("image")
    if facts["status"] != "ok" or facts.get("wrap"):
        parts = {"environment": footprint([Path(image)])} if image and Path(image).exists() else {}
    else:
        # The folder of `bin/python`, which is a link: not where it leads.
        folder = Path(facts["python"]).parents[1]
        parts = {"environment": footprint([folder]), "interpreter": interpreter()}
    return facts | {"installed": {name: asdict(size) for name, size in parts.items()}}


def main() -> int:
    """Build one environment and write its stamp."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--system", type=Path, help="a system file that may choose otherwise")
    parser.add_argument("--results", type=Path, help="whose studies share this machine")
    parser.add_argument("--lock", help="the lock hash that the study was planned with")
    given = parser.parse_args()
    end_on_signals()
    try:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        system = load_model(given.system, System) if given.system else System(name="unknown")
        log = given.out.with_suffix(".log").resolve()
        # Where there is a scheduler, jobs measure elsewhere.
        here = given.results is not None and system.scheduler == "none"
        machine = StudyPaths(results=given.results, study="").machine if here else None
        facts = made(given.name, system.environments.get(given.name), log, given.lock, machine)
        # One that another study has written meanwhile stays: its cells are no older than it.
        write_if_changed(given.out, json.dumps(without_secrets(sized(facts)), indent=1) + "\n")
    except Interruption as end:
        return end.code
    except FAULTS as error:
        return say_fault(error, given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
