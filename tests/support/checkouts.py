"""Where the repository is, a folder for studies, and a copy of the repository in which a test may edit anything."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import psutil

from engine import Engine

ROOT = Path(__file__).resolve().parents[2]


# Compiled modules come with their sources, whose time and size they hold, unless one is just being written.
LEFT_OUT = ("*.egg-info", "*.pyc.*")


class Place:
    """A folder in which a test plans and runs studies with the repository's own sources."""

    _shared: ClassVar[Engine | None] = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def engine(self) -> Engine:
        """What runs transect here: one for all places of this process."""
        if Place._shared is None:
            Place._shared = Engine(ROOT / "src")
        return Place._shared

    def environment(self) -> dict[str, str]:
        """Return variables in which nothing of the tests' own run is left but how XLA compiles."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("TRANSECT_", "PYTHON"))}
        if "TRANSECT_ENVS" in os.environ:
            kept["TRANSECT_ENVS"] = os.environ["TRANSECT_ENVS"]
        return kept

    def _call(self, kind: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        return self.engine(kind, *arguments, folder=self.folder, environment=self.environment())

    def transect(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command line."""
        return self._call("command", *arguments)

    def module(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a module of transect, as `python -m` does."""
        return self._call("module", name, *arguments)

    def make(
        self, study: str, *, dry: bool = False, report: bool = True, **config: object
    ) -> subprocess.CompletedProcess[str]:
        """Bring a study up to date without Snakemake: its records, and its report."""
        return self._call("study", {"study": study, **config}, dry, report, False)

    def pending(self, study: str, *, report: bool = True) -> set[str]:
        """Return the outputs that `make` would make again."""
        run = self._call("study", {"study": study}, False, report, True)
        assert run.returncode == 0, run.stderr
        return set(run.stdout.splitlines())

    def why(self, study: str, *patterns: str) -> dict[str, list[tuple[str, str]]]:
        """Return which cells would run again: kind and text of the reasons by `STAGE/ID`."""
        run = self.transect("why", study, *patterns, "--results", "results", "--json")
        assert run.returncode == 0, run.stderr
        return {
            f"{cell['stage']}/{cell['cell']}": [(r["kind"], r["text"]) for r in cell["reasons"]]
            for cell in json.loads(run.stdout)["cells"]
        }

    def records(self, name: str, stage: str = "*") -> dict[str, dict[str, Any]]:
        """Return a study's records by `STAGE/ID`, of one stage when given."""
        found = {}
        for path in (self.folder / "results" / name).glob(f"{stage}/*/record.json"):
            found[f"{path.parts[-3]}/{path.parts[-2]}"] = json.loads(path.read_text())
        return found

    def made_again(self, name: str, before: dict[str, dict[str, Any]]) -> set[str]:
        """Return which of a study's records were made since."""
        return {key for key, record in self.records(name).items() if record["started"] != before[key]["started"]}

    def payloads(self) -> list[psutil.Process]:
        """Return the running processes that are of a cell of this folder."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                found += [process] if str(self.folder) in process.environ().get("TRANSECT_CELL", "") else []
        return found

    def stamps(self, name: str, cells: Iterable[str]) -> set[str]:
        """Return the stamps of the blocks that hold these cells, and of all that take from them."""
        folder = self.folder / "results" / name
        facts = json.loads((folder / "specs" / "flow.json").read_text())
        wanted, found = set(cells), set()
        inputs = {}
        for block in facts["blocks"]:
            stamp = f"results/{name}/blocks/{block['rule']}/{block['name']}.json"
            inputs[stamp] = set(block["inputs"])
            lines = (folder / "specs" / block["rule"] / f"{block['name']}.json").read_text()
            specs = [json.loads(line) for line in lines.splitlines()[1:]]
            if wanted & {f"{spec['cell']['stage']}/{spec['cell_id']}" for spec in specs}:
                found.add(stamp)
        while more := {stamp for stamp, taken in inputs.items() if taken & found} - found:
            found |= more
        return found


class Checkout(Place):
    """A copy of the repository in which a test may edit anything."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        for name in ("Snakefile", "workflow", "config", "envs", "profiles", "src", "tests/data"):
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
            else:
                shutil.copy2(source, folder / name)
        self._engine = Engine(folder / "src")

    @property
    def engine(self) -> Engine:
        """What runs transect with this checkout's sources."""
        return self._engine

    def command(self, *arguments: str) -> list[str]:
        """Return the argv of Snakemake in this checkout."""
        snakemake = Path(sys.executable).parent / "snakemake"
        return [str(snakemake), "--profile", "profiles/local", *arguments]

    def _run(self, command: list[str], timeout: float, **more: str) -> subprocess.CompletedProcess[str]:
        given = {"cwd": self.folder, "env": self.environment() | more, "timeout": timeout}
        return subprocess.run(command, capture_output=True, text=True, **given)

    def snakemake(self, *arguments: str, timeout: float = 3000) -> subprocess.CompletedProcess[str]:
        """Run Snakemake to its end."""
        return self._run(self.command(*arguments), timeout)

    def summary(self, *config: str) -> set[str]:
        """Return the outputs that Snakemake's own summary says would be made again."""
        run = self.snakemake("all", "--summary", "--config", *config)
        assert run.returncode == 0, run.stderr
        rows = [line.split("\t") for line in run.stdout.splitlines() if line.startswith("results/")]
        assert rows, run.stdout
        return {row[0] for row in rows if row[-1] != "no update"}


@contextlib.contextmanager
def edited(path: Path, old: str, new: str) -> Iterator[None]:
    """Replace text in a file, and put it back with its old time stamp.

    Byte code of the edit, which may be as long and of the same second, then does not pass for it.
    """
    before, times = path.read_text(), path.stat()
    assert old in before, f"{path} does not hold {old!r}"
    path.write_text(before.replace(old, new, 1))
    try:
        yield
    finally:
        path.write_text(before)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def environment_python(name: str, folder: Path) -> str:
    """Return the interpreter of an environment, which is built when the cache has none."""
    from transect.engine.build_environment import build

    facts = build(name, folder / f"{name}.log")
    assert facts["status"] == "ok", facts["message"]
    return str(facts["python"])
