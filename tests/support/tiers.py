"""Which tier a test belongs to, in which order files run, and how workers share them (docs/testing.md).

A test is in exactly one tier. `cluster` and `study` follow from its folder, `browser` and `env` from the fixtures that
it takes, or from a mark of its own; all others are `fast`, and fail when they start a process. What is marked
`exhaustive` runs with `--exhaustive` only (`make test-all`).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from checkouts import ROOT

TIERS = ("fast", "env", "study", "cluster", "browser")
DURATIONS = ROOT / "tests" / "durations.json"
_FOLDERS = {"cluster": "cluster", "workflow": "study"}
# A test that takes one of these needs a process that is not this one.
_FIXTURES = {"browser": "browser", "checkout": "study"}
_ENVIRONMENTS = ("_python", "_programs")
# Fixtures that start something when they are first asked.
_FOR_ALL = ("programs_asked", "drawn")
_PROCESSES = (
    "subprocess.Popen",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.exec",
    "os.system",
    "transect.warm",  # A process that is there already is asked: support/warm.py, support/engine.py.
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--exhaustive`."""
    parser.addoption("--exhaustive", action="store_true", help="run what is marked exhaustive too")


def pytest_configure(config: pytest.Config) -> None:
    """Have XLA compile without optimising: most of the time of a small model on JAX is LLVM's."""
    if not config.getoption("--exhaustive"):
        os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")


def tier_of(item: pytest.Item) -> str:
    """Return a test's tier."""
    marked = list(dict.fromkeys(mark.name for mark in item.iter_markers() if mark.name in TIERS))
    if len(marked) > 1:
        raise pytest.UsageError(f"{item.nodeid} is in one tier, not in {' and '.join(marked)}")
    if marked:
        return marked[0]
    if (folder := item.path.parent.name) in _FOLDERS:
        return _FOLDERS[folder]
    names: list[str] = getattr(item, "fixturenames", [])
    for name in names:
        if name in _FIXTURES:
            return _FIXTURES[name]
    return "env" if any(name.endswith(_ENVIRONMENTS) for name in names) else "fast"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test with its tier, leave out what is exhaustive, and put the longest files first."""
    for item in items:
        tier = tier_of(item)
        if item.get_closest_marker(tier) is None:
            item.add_marker(tier)
        item.user_properties.append(("tier", tier))
    if not config.getoption("--exhaustive"):
        exhaustive = [item for item in items if item.get_closest_marker("exhaustive")]
        config.hook.pytest_deselected(items=exhaustive)
        items[:] = [item for item in items if not item.get_closest_marker("exhaustive")]
    durations = json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}
    file = {item: item.nodeid.split("::", 1)[0] for item in items}
    items.sort(key=lambda item: (_turn(item.path), -durations.get(file[item], 0.0), file[item]))


def _turn(path: Path) -> int:
    """What mostly waits for Slurm begins first, so that other workers compute beside it; then what is shared."""
    if path.parent.name == "cluster":
        return 0
    return 1 if path.name.startswith("test_shared_") else 2


class Scheduler(LoadScopeScheduling):
    """A worker takes whole files; those that share a cluster or a study go to one."""

    SHARED = ("tests/cluster/", "tests/workflow/test_shared_")

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", 1)[0]
        return next((shared for shared in self.SHARED if file.startswith(shared)), file)

    def _reschedule(self, node: Any) -> None:
        """Give a worker its next files; one that stands in for another has to read the tests first."""
        if node in self.registered_collections:
            super()._reschedule(node)

    def remove_node(self, node: Any) -> str | None:
        """Return the test that ended a worker, which is not begun again; what was to follow it is."""
        work = self.assigned_work[node]
        left = [(unit, test) for unit in work.values() for test, done in unit.items() if not done]
        if not left:
            found: str | None = super().remove_node(node)
            return found
        del self.assigned_work[node]
        unit, crashed = left[0]
        unit[crashed] = True
        again = {name: unit for name, unit in work.items() if not all(unit.values())}
        self.workqueue.update(again)
        for worker in self.assigned_work:
            self._reschedule(worker)
        return str(crashed)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduler:
    """Let workers of `-n 2` share files as `Scheduler` says."""
    config.option.loadscopereorder = False
    return Scheduler(config, log)


class _Watch:
    """Notes which programs this process starts; an audit hook cannot be taken away again."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.by_fixtures: dict[pytest.FixtureDef[Any], list[str]] = {}
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _PROCESSES:
            self.started.append(f"{event} {arguments[:2]}"[:200])


_watch = _Watch()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a `fast` test that starts a process: fast is what needs this one only."""
    for name, found in item._fixtureinfo.name2fixturedefs.items():  # type: ignore[attr-defined]
        _nothing_started(item, _watch.by_fixtures.get(found[-1], []), f"'s fixture {name}")
    _watch.started.clear()
    yield
    _nothing_started(item, _watch.started, "")


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
    """Note which fixtures start a process; what one starts for all tests of this process is not one test's."""
    before = len(_watch.started)
    # Of a parametrized one each is another.
    _watch.by_fixtures.pop(fixturedef, None)
    made = yield
    if fixturedef.scope == "session" or fixturedef.argname in _FOR_ALL:
        del _watch.started[before:]
    elif len(_watch.started) > before:
        _watch.by_fixtures[fixturedef] = _watch.started[before:]
    return made


def _nothing_started(item: pytest.Item, started: list[str], whose: str) -> None:
    if started and item.get_closest_marker("fast"):
        pytest.fail(f"a fast test{whose} started {started[0]}: mark it `env` (docs/testing.md)", pytrace=False)
