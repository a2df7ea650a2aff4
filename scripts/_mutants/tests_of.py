"""Which tests execute the line of a mutant: each file of tests once, in a process of its own, under coverage."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _mutants.edits import Mutant, find
from _mutants.forked import append, in_child, pytest_here, share

_FOLDERS = ("tests/unit", "tests/report")
# A test that takes longer is not run against mutants, nor are those after this time in one file.
_MAX_S, _MAX_FILE_S = 60, 300


@dataclass(kw_only=True)
class TestFile:
    """A file of tests that pass without a process of their own."""

    path: str
    seconds: dict[str, float]
    # For each mutant's id, the tests that execute its line.
    met: dict[str, list[str]] = field(default_factory=dict)


def read_map(path: Path) -> dict[str, TestFile]:
    """Return what was mapped, by file."""
    entries = (json.loads(line) for line in path.read_text().splitlines())
    return {
        entry["path"]: TestFile(path=entry["path"], seconds=entry["seconds"], met=entry["met"]) for entry in entries
    }


def state_of(path: Path) -> str:
    """Return what tells a map of these tests and sources from any other."""
    entries = (json.loads(line) for line in path.read_text().splitlines())
    states = sorted((entry["path"], entry["state"]) for entry in entries)
    return hashlib.sha256(json.dumps(states).encode()).hexdigest()[:16]


def make_map(mutants: list[Mutant], checkout: Path, path: Path, jobs: int) -> None:
    """Map the files of tests that are not in the map, or that changed since: they or the source."""
    lines: dict[str, dict[str, frozenset[int]]] = defaultdict(dict)
    for mutant in mutants:
        if (candidate := find(mutant, checkout / "src")) is not None:
            lines[mutant.path][mutant.id] = candidate.lines
    state = hashlib.sha256(json.dumps(sorted(mutant.id for mutant in mutants)).encode())
    for module in sorted((checkout / "src" / "transect").rglob("*.py")):
        state.update(module.read_bytes())
    for helper in sorted((checkout / "tests").rglob("*.py")):
        if not helper.name.startswith("test_"):
            state.update(helper.read_bytes())
    known = {}
    if path.exists():
        known = {e["path"]: (e["state"], line) for line in path.read_text().splitlines() if (e := json.loads(line))}
    files = [file for folder in _FOLDERS for file in sorted((checkout / folder).rglob("test_*.py"))]
    kept = []
    todo = []
    for file in files:
        name = file.relative_to(checkout).as_posix()
        key = hashlib.sha256(state.digest() + file.read_bytes()).hexdigest()[:16]
        if known.get(name, ("",))[0] == key:
            kept.append(known[name][1] + "\n")
        else:
            todo.append((name, key))
    path.write_text("".join(kept))

    def work(file: tuple[str, str]) -> None:
        name, key = file
        end, told = in_child(lambda: _measure(checkout, name, lines), 2 * _MAX_FILE_S)
        told = told if end == "done" else {"seconds": {}, "met": {}, "end": [end, told]}
        # What did not end, could not be read or failed is measured again by the next run.
        bad = {what: told[what] for what in ("end", "uncollected", "failed") if told.get(what)}
        append(path, {"path": name, "state": "" if bad else key, **told})
        said = f"{name}: {len(told['seconds'])} tests, {len(told['met'])} mutants {end}"
        print(said, *(f"{what}: {one}" for what, one in bad.items()), flush=True)

    share(todo, jobs, work)


def _measure(checkout: Path, name: str, lines: dict[str, dict[str, frozenset[int]]]) -> dict[str, Any]:
    import coverage

    source = checkout / "src"
    measured = coverage.Coverage(
        data_file=None, config_file=False, messages=False, include=[str(source / path) for path in lines]
    )
    measured.start()
    run = pytest_here(checkout, [name], stop=False, each=_MAX_S, seconds=_MAX_FILE_S, entered=measured.switch_context)
    measured.stop()
    data = measured.get_data()
    # What is executed while the file is read is executed for all of its tests.
    contexts = {test: {"", test, *(f"fixture {name}" for name in run.fixtures[test])} for test in run.seconds}
    met: dict[str, list[str]] = {}
    for path, mutants in lines.items():
        by_line = data.contexts_by_lineno(str(source / path))
        for mutant, where in mutants.items():
            entered = {context for line in where for context in by_line.get(line, ())}
            if tests := [test for test, of_test in contexts.items() if of_test & entered]:
                met[mutant] = tests
    return {
        "seconds": {test: round(took, 3) for test, took in run.seconds.items()},
        "met": met,
        "failed": run.failed[:50],
        "process": len(run.alone),
        "uncollected": run.uncollected,
    }
