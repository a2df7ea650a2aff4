"""Real logs of other people, and how much of what a person read in them the parsers find."""

from __future__ import annotations

import csv
import importlib.util
import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from checkouts import ROOT
from transect.hpc.base import PARSERS, UNKNOWN, Run
from transect.hpc.ingest import ingest


def _corpora() -> list[Path]:
    """Return the folders that TRANSECT_CORPUS names (parted as PATH is), else those beside the project."""
    given = os.environ.get("TRANSECT_CORPUS")
    if given:
        return [Path(folder) for folder in given.split(os.pathsep) if folder]
    return sorted((ROOT.parent / "shared" / "data").glob("hpc-logs*"))


CORPORA = _corpora()
Check = Callable[[dict[str, str], str, list[Run]], list[tuple[str, bool]]]


@dataclass
class Score:
    """Counts over the files of one benchmark; `misses` says what is wrong where."""

    files: int = 0
    recognised: int = 0
    values: int = 0
    values_right: int = 0
    statuses: int = 0
    statuses_right: int = 0
    misses: list[str] = field(default_factory=list)


def _index() -> list[tuple[Path, dict[str, str]]]:
    """Return the rows of all corpora, each with its folder. Raises FileNotFoundError for one without an index."""
    rows = []
    for folder in CORPORA:
        with (folder / "INDEX.csv").open(encoding="utf-8", newline="") as stream:
            rows += [(folder, row) for row in csv.DictReader(stream)]
    return rows


def benchmarks() -> list[str]:
    """Return the names of the benchmarks in the corpora, as their indices spell them."""
    return sorted({row["benchmark"] for _, row in _index()})


def checks() -> dict[str, Check]:
    """Return the check of each benchmark, from the files under tests/support/corpus_checks."""
    found: dict[str, Check] = {}
    for path in sorted((ROOT / "tests" / "support" / "corpus_checks").glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"corpus_checks_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found |= module.CHECKS
    return found


def noted(truth: dict[str, str], text: str, runs: list[Run]) -> list[tuple[str, bool]]:
    """Check a row that says `note_runs=ok:1,truncated:2` and values by any name: each is printed by a run.

    Notes in brackets are no values, nor are words.
    """
    wanted = sorted(
        status
        for part in truth["note_runs"].split(",")
        for status, _, count in (part.partition(":"),)
        for _ in range(int(count or 0))
    )
    found = sorted(str(run.status) for run in runs if run.benchmark != UNKNOWN)
    facts = [("status", found == wanted)]
    printed = [m.value for run in runs for m in run.metrics]
    # Of what is said step by step a metric has the median and the last.
    printed += [value for run in runs for series in run.samples.values() for value in series.values]
    printed += [float(v) for r in runs for v in r.parameters.values() if isinstance(v, (int, float))]
    for key, words in truth.items():
        if key.startswith(("note_runs", "status", "valid", "result")):
            continue
        for value in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?:e[-+]?\d+)?", words.partition("(")[0]):
            facts.append((f"value {key} {value}", any(math.isclose(float(value), v) for v in printed)))
    return facts


def _slug(benchmark: str) -> str:
    known = {name.replace("-", "_"): name for name in PARSERS}
    wanted = benchmark.lower().replace("-", "_")
    return known.get(wanted, wanted)


def score(benchmark: str) -> Score:
    """Read every file of one benchmark and compare."""
    check = checks().get(benchmark)
    total, slug = Score(), _slug(benchmark)
    for folder, row in _index():
        if row["benchmark"] != benchmark:
            continue
        total.files += 1
        runs = ingest([folder / row["path"]])
        seen = {run.benchmark for run in runs}
        text = row["hand_read_truth"]
        truth = dict(pair.split("=", 1) for pair in text.split(";") if "=" in pair)
        none = truth.get("note_runs") == "none"
        if seen == {UNKNOWN if none else slug}:
            total.recognised += 1
        else:
            total.misses.append(f"{row['path']}: seen as {', '.join(sorted(seen))}")
        if check is None:
            total.misses.append(f"{row['path']}: no check of {benchmark}")
            continue
        try:
            facts = (noted if "note_runs" in truth else check)(truth, text, runs)
        except Exception as error:  # a check that meets what it did not expect is a miss
            facts = [(f"check: {type(error).__name__}: {error}", False)]
        for name, right in facts:
            if name.startswith("status"):
                total.statuses += 1
                total.statuses_right += right
            elif name != "recognised":
                total.values += 1
                total.values_right += right
            if not right:
                total.misses.append(f"{row['path']}: {name}")
    return total
