"""Make an environment from its pinned requirements, once per lock hash.

`python -m transect.execution.build_environment --name NAME --out STAMP.json` always writes the
stamp and exits 0: a failed build is a cause that its cells carry, not the end of the study.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from transect.domain.files import write_atomic
from transect.domain.strict_yaml import load_model
from transect.domain.system import EnvironmentChoice, System
from transect.planning.environments import environment_folder, environment_source, lock_hash

__all__ = ["build", "chosen", "main"]

_COMPLETE = "transect-complete.json"
_TAIL_LINES = 15


def _install(name: str, folder: Path, log: Path) -> None:
    """Create the virtual environment. Raises CalledProcessError; the log tells why."""
    source = environment_source(name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    python = folder / "bin" / "python"
    commands = [
        [sys.executable, "-m", "venv", str(folder)],
        [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input",
         "--quiet", "--requirement", str(source / "requirements.txt")],
    ]  # fmt: skip
    if (source / "build.sh").is_file():
        commands.append(["bash", str(source / "build.sh"), str(folder)])
    # The driver's PYTHONPATH has no place in another environment's installation.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    with log.open("wb") as stream:
        for command in commands:
            subprocess.run(
                command, stdout=stream, stderr=subprocess.STDOUT, check=True, env=environment
            )


def build(name: str, log: Path) -> dict[str, Any]:
    """Return the facts of the environment, building it first when the cache has none."""
    folder = environment_folder(name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    facts: dict[str, Any] = {
        "name": name,
        "lock_hash": lock_hash(name),
        "python": str(folder / "bin" / "python"),
        "status": "ok",
        "message": "",
    }
    # Two studies may ask at once: the second waits and finds it made.
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / _COMPLETE).is_file():
            return facts | json.loads((folder / _COMPLETE).read_text())
        print(f"[transect] building environment '{name}' in {folder}", file=sys.stderr)
        start = time.monotonic()
        try:
            _install(name, folder, log)
        except (subprocess.CalledProcessError, OSError) as error:
            lines = log.read_text(errors="replace").splitlines() if log.exists() else []
            shutil.rmtree(folder, ignore_errors=True)
            tail = "\n".join(lines[-_TAIL_LINES:])
            print(f"[transect] environment '{name}' failed, see {log}", file=sys.stderr)
            return facts | {"status": "failed", "message": f"could not be built: {error}\n{tail}"}
        built = {"build_s": round(time.monotonic() - start, 1)}
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
    given.out.parent.mkdir(parents=True, exist_ok=True)
    choices = load_model(given.system, System).environments if given.system else {}
    if given.name in choices:
        facts = chosen(given.name, choices[given.name])
    else:
        facts = build(given.name, given.out.with_suffix(".log").resolve())
    write_atomic(given.out, json.dumps(facts, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
