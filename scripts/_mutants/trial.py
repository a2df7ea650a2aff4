"""One mutant against the tests that execute it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from _mutants.edits import Mutant, find
from _mutants.forked import in_child, pytest_here
from _mutants.tests_of import TestFile

OUTCOMES = ("caught", "survived", "uncovered", "gone", "not tried")
# The files that are most about the mutant, and of their tests the fastest: up to these many, for so long.
_FILES, _FIRST, _TESTS, _SECONDS = 12, 2, 200, 40.0


class Trial:
    """Tries mutants in one checkout."""

    def __init__(self, checkout: Path, tests: dict[str, TestFile], seconds: float) -> None:
        self._checkout, self._tests, self._seconds_at_least = checkout, tests, seconds
        # Tests that failed under a mutant, and whether they pass without one when run like that.
        self._sound: dict[str, bool] = {}

    def of(self, mutant: Mutant) -> dict[str, Any]:
        """Return the outcome, the test that caught it, how many were chosen and how long it took."""
        began = time.monotonic()
        candidate = find(mutant, self._checkout / "src")
        told: dict[str, Any] = {"outcome": "gone"}
        if candidate is not None:
            path = self._checkout / "src" / mutant.path
            name = mutant.path.removesuffix(".py").replace("/", ".")
            served = (name, path, candidate.apply(path.read_bytes()))
            told = self._try(mutant, served)
        return {**told, "seconds": round(time.monotonic() - began, 1)}

    def _try(self, mutant: Mutant, served: tuple[str, Path, bytes]) -> dict[str, Any]:
        chosen = self._chosen(mutant.id)
        count = sum(map(len, chosen.values()))
        files = list(chosen)
        for part in (files[:_FIRST], files[_FIRST:]):
            left = {file: chosen[file] for file in part}
            while left:
                how, by, ran = self._run(left, served)
                if by is None:
                    break
                # Who fails without the edit too, alone or after the tests that ran before, tells nothing of it.
                spoilt: str | None = by
                if how != "failed" or self._passes(by):
                    company = {file: [test for test in left[file] if test in ran] for file in left}
                    spoilt = self._run({f: tests for f, tests in company.items() if tests}, None)[1]
                if spoilt is None:
                    return {"outcome": "caught", "how": how, "by": by, "tests": count}
                file = spoilt.split("::", 1)[0]
                if spoilt not in left.get(file, ()):
                    return {"outcome": "not tried", "how": how, "by": by, "tests": count}
                left[file] = [test for test in left[file] if test != spoilt]
        return {"outcome": "survived" if chosen else "uncovered", "tests": count}

    def _run(self, chosen: dict[str, list[str]], served: Any) -> tuple[str, str | None, set[str]]:
        """Return how a mutant was caught, by which test (or file; None when it was not), and what ran by then."""
        recorded = sum(self._tests[file].seconds[test] for file in chosen for test in chosen[file])
        tests = {test for names in chosen.values() for test in names}

        def work() -> dict[str, Any]:
            return pytest_here(self._checkout, [*chosen], chosen=tests, served=served).told()

        end, told = in_child(work, self._seconds_at_least + 10 * recorded)
        if end != "done":
            return end, next(iter(chosen)), tests
        if told["uncollected"]:
            return "import", told["uncollected"][0], tests
        return ("failed", told["failed"][0] if told["failed"] else None, {*told["seconds"], *told["failed"]})

    def _passes(self, test: str) -> bool:
        if test not in self._sound:
            self._sound[test] = self._run({test.split("::", 1)[0]: [test]}, None)[1] is None
        return self._sound[test]

    def _chosen(self, mutant: str) -> dict[str, list[str]]:
        """Return tests by file: first the files most of whose tests execute the mutant, and little else."""

        def about(file: TestFile) -> tuple[float, int]:
            return (-len(file.met[mutant]) / len(file.seconds) / len(file.met) ** 0.5, len(file.met))

        files = sorted((file for file in self._tests.values() if mutant in file.met), key=about)[:_FILES]
        fastest = {file.path: sorted(file.met[mutant], key=file.seconds.__getitem__) for file in files}
        chosen: dict[str, set[str]] = {path: set() for path in fastest}
        seconds, count = 0.0, 0
        for turn in range(max(map(len, fastest.values()), default=0)):
            for file in files:
                if turn < len(fastest[file.path]) and count < _TESTS and (seconds < _SECONDS or not turn):
                    test = fastest[file.path][turn]
                    chosen[file.path].add(test)
                    seconds, count = seconds + file.seconds[test], count + 1
        return {
            file.path: [test for test in file.met[mutant] if test in chosen[file.path]]
            for file in files
            if chosen[file.path]
        }
