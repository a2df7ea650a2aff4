"""Real logs of other people, and how much of what a person read in them the parsers find."""

from __future__ import annotations

import csv
import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from checkouts import ROOT
from transect.hpc.base import PARSERS, UNKNOWN, Run
from transect.hpc.ingest import ingest

__all__ = ["CORPORA", "Score", "benchmarks", "score"]


def _corpora() -> list[Path]:
    """Return the folders that TRANSECT_CORPUS names (parted as PATH is), else those beside the project."""
    given = os.environ.get("TRANSECT_CORPUS")
    if given:
        return [Path(one) for one in given.split(os.pathsep) if one]
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
        if slug in seen and UNKNOWN not in seen:
            total.recognised += 1
        else:
            total.misses.append(f"{row['path']}: seen as {', '.join(sorted(seen))}")
        if check is None:
            total.misses.append(f"{row['path']}: no check of {benchmark}")
            continue
        text = row["hand_read_truth"]
        truth = dict(pair.split("=", 1) for pair in text.split(";") if "=" in pair)
        try:
            facts = check(truth, text, runs)
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
