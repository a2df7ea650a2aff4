"""Make an environment from its pinned requirements, once per lock hash.

`python -m transect.execution.build_environment --name NAME --out STAMP.json` always writes the
stamp and exits 0: a failed build is a cause that its cells carry, not the end of the study.

`envs/NAME/build.sh FOLDER`, where there is one, runs after the requirements are installed and may
leave facts about itself, a JSON object, in `FOLDER/transect-build.json`: they go into the stamp.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from transect.domain.errors import FAULTS, say_fault
from transect.domain.files import write_atomic
from transect.domain.strict_yaml import load_model
from transect.domain.system import EnvironmentChoice, System
from transect.domain.terminal import say
from transect.planning.environments import environment_folder, environment_source, lock_hash

__all__ = ["build", "chosen", "main"]

_COMPLETE = "transect-complete.json"
_FACTS = "transect-build.json"
_TAIL_LINES = 15
# What compilers, CMake, make and our own scripts call an error. What pip calls one (two words, or
# many in capitals) only frames them.
_ERROR = re.compile(
    r"(?:^|[\s:])(?:fatal )?error: (?!subprocess-exited|metadata-generation|legacy-install)"
    r"|^\s*CMake Error|\*\*\* .*Error \d"
)
_AROUND = 2, 5
# A compiler's command line can be kilobytes long.
_WIDTH = 300


def told(lines: list[str]) -> str:
    """Return what a failed build said: the lines around its first error, and its last lines."""
    lines = [line if len(line) <= _WIDTH else f"{line[:_WIDTH]}…" for line in lines]
    start = max(0, len(lines) - _TAIL_LINES)
    first = next((i for i, line in enumerate(lines) if _ERROR.search(line)), None)
    if first is None:
        return "\n".join(lines[start:])
    before, after = max(0, first - _AROUND[0]), first + _AROUND[1]
    if after >= start:
        return "\n".join(lines[min(before, start) :])
    return "\n".join([*lines[before:after], "[…]", *lines[start:]])


def _install(name: str, folder: Path, log: Path) -> dict[str, Any]:
    """Create the virtual environment; return what took how long.

    Raises CalledProcessError; the log tells why.
    """
    source = environment_source(name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    python = folder / "bin" / "python"
    commands = {
        "venv_s": [sys.executable, "-m", "venv", str(folder)],
        "requirements_s": [
            str(python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input",
            "--quiet", "--requirement", str(source / "requirements.txt"),
        ],
    }  # fmt: skip
    if (source / "build.sh").is_file():
        commands["script_s"] = ["bash", str(source / "build.sh"), str(folder)]
    # The driver's PYTHONPATH has no place in another environment's installation.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    facts: dict[str, Any] = {}
    with log.open("wb") as stream:
        for part, command in commands.items():
            start = time.monotonic()
            subprocess.run(
                command, stdout=stream, stderr=subprocess.STDOUT, check=True, env=environment
            )
            facts[part] = round(time.monotonic() - start, 1)
    if (folder / _FACTS).is_file():
        facts |= json.loads((folder / _FACTS).read_text())
    return facts


def build(name: str, log: Path) -> dict[str, Any]:
    """Return the facts of the environment, building it first when the cache has none."""
    folder = environment_folder(name)
    facts: dict[str, Any] = {
        "name": name,
        "lock_hash": lock_hash(name),
        "python": str(folder / "bin" / "python"),
        "status": "ok",
        "message": "",
    }
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = (folder.parent / f"{folder.name}.lock").open("w")
    except OSError as error:
        text = f"no environment can be kept in {folder.parent}: {error.strerror}: set TRANSECT_ENVS"
        return facts | {"status": "failed", "message": text}
    # Two studies may ask at once: the second waits and finds it made.
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / _COMPLETE).is_file():
            facts |= json.loads((folder / _COMPLETE).read_text())
            return facts
        say(f"[transect] building environment '{name}' in {folder}")
        start = time.monotonic()
        try:
            parts = _install(name, folder, log)
        except (subprocess.CalledProcessError, OSError, ValueError) as error:
            lines = log.read_text(errors="replace").splitlines() if log.exists() else []
            shutil.rmtree(folder, ignore_errors=True)
            say(f"[transect] environment '{name}' failed, see {log}")
            return facts | {
                "status": "failed",
                "message": f"could not be built: {error}\n{told(lines)}",
            }
        built = {"build_s": round(time.monotonic() - start, 1)} | parts
        write_atomic(folder / _COMPLETE, json.dumps(built))
    return facts | built


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
    if choice.image and "://" not in choice.image and not Path(choice.image).is_file():
        text = f"the system file names image {choice.image}, which is not there"
        return facts | {"status": "failed", "message": text}
    return facts


def main() -> int:
    """Build one environment and write its stamp."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--system", type=Path, help="a system file that may choose otherwise")
    given = parser.parse_args()
    try:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        choices = load_model(given.system, System).environments if given.system else {}
        if given.name in choices:
            facts = chosen(given.name, choices[given.name])
        else:
            facts = build(given.name, given.out.with_suffix(".log").resolve())
        write_atomic(given.out, json.dumps(facts, indent=1) + "\n")
    except FAULTS as error:
        return say_fault(error, given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
