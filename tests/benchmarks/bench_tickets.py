"""One million tickets from a CSV to encoded rows: tickets per second and the most memory.

Run by hand: `python tests/benchmarks/bench_tickets.py [--tickets FILE] [--count 1000000] [--runs 2]`.
FILE is a CSV with the columns `Document, Topic_group`, or a ZIP with one, such as the data set of
docs/tickets.md; else the sample of the package. Its rows are repeated until there are `--count`. Builds
the environment `text` when the cache has none, and one for the contenders in a temporary folder unless
`--python` names an interpreter with them.

Contenders in turn, `--runs` times: the stages corpus, extract-text, tokens, split, embeddings (random: Word2Vec is
gensim's in any case) and encode of transect, each a process of its own, redaction and normalisation
with them; pandas with gensim; Hugging Face datasets (ticket_contenders.py). Memory is the peak of the
resident set of the largest process, mapped files included, as the kernel tells when it has ended.
Prints JSON; asserts only that all found the same words.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain, islice, repeat
from pathlib import Path
from typing import IO, Any, NamedTuple

from transect.domain.cell import Cell
from transect.domain.record import Record, Status, write_record
from transect.engine.build_environment import build
from transect.planning.stage import STAGES
from transect.stages.corpus.stage import CorpusRule, EmbeddingsRule, LengthRule, SplitRule

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SAMPLE = ROOT / "src" / "transect" / "text" / "data" / "tickets-sample.csv"
PINS = ("pandas==3.1.1", "gensim==4.4.0", "datasets==5.2.0", "stopwordsiso==0.7.1")
SEED = 20261122
PARTITION = SplitRule(train=0.4, validation=0.1, inference=0.1, on_device=0.4)


class Spent(NamedTuple):
    """What processes cost: wall time and CPU time in s, and peak memory in bytes."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


def spend(command: list[str], log: Path, **variables: str) -> Spent:
    begin = time.monotonic()
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command,
            stdout=stream,
            stderr=stream if log.suffix == ".log" else None,
            env=os.environ | {"PYTHONPATH": str(ROOT / "src")} | variables,
        )
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)}: exit code {process.returncode}: {log.read_text()[-2000:]}")
    # Linux counts in KiB.
    return Spent(time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def rows_of(path: Path) -> Iterator[list[str]]:
    """Yield the header and the rows of a CSV, or of the one in a ZIP."""
    with ExitStack() as stack:
        if path.suffix == ".zip":
            archive = stack.enter_context(zipfile.ZipFile(path))
            raw: IO[bytes] = stack.enter_context(archive.open(archive.namelist()[0]))
        else:
            raw = stack.enter_context(path.open("rb"))
        yield from csv.reader(io.TextIOWrapper(raw, encoding="utf-8", newline=""))


def multiply(source: Path, count: int, file: Path) -> None:
    """Write a CSV with `count` tickets, and hold none: what a child starts with counts as its own."""
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(next(rows_of(source)))
        again = (islice(rows_of(source), 1, None) for _ in repeat(None))
        writer.writerows(islice(chain.from_iterable(again), count))


class Stages:
    """Transect's own contender: one process a stage, what it leaves on disk."""

    def __init__(self, python: str, file: Path, folder: Path) -> None:
        self.python, self.file, self.folder = python, file, folder
        self.spent: dict[str, Spent] = {}

    def run(self) -> dict[str, Any]:
        """Run all stages; return what they found."""
        corpus = CorpusRule(format="flat-csv", path=str(self.file)).model_dump()
        vectors = EmbeddingsRule(method="random").model_dump()
        self._stage("corpus", {"rule": corpus, "seed": SEED}, (), {})
        self._stage("extract-text", {"redacted": True}, ("corpus",), {})
        self._stage("tokens", {}, ("texts",), {})
        self._stage("split", {"rule": PARTITION.model_dump(), "seed": SEED}, ("corpus",), {"split": "p"})
        self._stage(
            "embeddings", {"rule": vectors, "seed": SEED}, ("tokens", "split"), {"split": "p", "embeddings": "v"}
        )
        self._stage(
            "encode",
            {"rule": LengthRule().model_dump()},
            ("corpus", "tokens", "split", "embeddings"),
            {"split": "p", "embeddings": "v", "words": "w"},
        )
        tokens, encoded = self._details("tokens"), self._details("encode")
        return {
            "tickets": tokens["tickets"],
            "words": tokens["tokens"],
            "vocabulary": encoded["vocabulary"],
            "length": encoded["length"],
        }

    def _stage(self, stage: str, spec: dict[str, Any], roles: tuple[str, ...], axes: dict[str, str]) -> None:
        out = self.folder / stage
        out.mkdir()
        cell = Cell.of(stage=stage, corpus="c", **axes)
        (out / "spec.json").write_text(json.dumps({"cell": cell.model_dump(), **spec}))
        command = [self.python, "-m", "transect.payloads", STAGES.get(stage).payload]
        command += ["--spec", str(out / "spec.json"), "--out", str(out)]
        for role in roles:
            command += ["--take", f"{role}={self.folder / {'texts': 'extract-text'}.get(role, role)}"]
        if stage == "corpus":
            command += ["--run", json.dumps({"salt": str(self.folder / "salt")})]
        self.spent[stage] = spend(command, out / "output.log")
        write_record(
            out / "record.json",
            Record(
                study="bench",
                stage=stage,
                cell=cell,
                cell_id=cell.id,
                status=Status.OK,
                fingerprint="",
                started="",
                ended="",
                details=self._details(stage),
            ),
        )

    def _details(self, stage: str) -> dict[str, Any]:
        told: dict[str, Any] = json.loads((self.folder / stage / "result.json").read_text())
        return told["details"]

    def total(self) -> Spent:
        walls, cpus, peaks = zip(*self.spent.values(), strict=True)
        return Spent(sum(walls), sum(cpus), max(peaks))


def contenders_python(folder: Path) -> str:
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", *PINS], check=True)
    return str(python)


def one_turn(name: str, pythons: dict[str, str], file: Path, folder: Path) -> dict[str, Any]:
    if name == "transect":
        stages = Stages(pythons["text"], file, folder)
        found, spent = stages.run(), stages.total()
        more = {"stages": {stage: each._asdict() for stage, each in stages.spent.items()}}
    else:
        command = [pythons["others"], str(HERE / "ticket_contenders.py"), name, str(file)]
        spent = spend([*command, str(folder)], folder / "found.json", HF_HOME=str(folder / "home"), HF_HUB_OFFLINE="1")
        found, more = json.loads((folder / "found.json").read_text()), {}
    told = {"contender": name, **spent._asdict(), "found": found, **more}
    told["tickets_per_s"] = found["tickets"] / spent.wall_s
    print(json.dumps(told), flush=True)
    return told


def summary(turns: list[dict[str, Any]]) -> dict[str, Any]:
    """Return medians by contender, and transect beside the faster of the others."""
    kinds: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys(turn["contender"] for turn in turns):
        own = [turn for turn in turns if turn["contender"] == name]
        kinds[name] = {
            key: statistics.median(turn[key] for turn in own)
            for key in ("tickets_per_s", "wall_s", "cpu_s", "peak_bytes")
        }
    others = {name: kind for name, kind in kinds.items() if name != "transect"}
    faster = max(others, key=lambda name: others[name]["tickets_per_s"])
    own, other = kinds["transect"], kinds[faster]
    return {
        "contenders": kinds,
        "faster_of_the_others": faster,
        "speed_ratio": own["tickets_per_s"] / other["tickets_per_s"],
        "cpu_ratio": other["cpu_s"] / own["cpu_s"],
        "memory_ratio": own["peak_bytes"] / other["peak_bytes"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="tickets per second, and the most memory")
    parser.add_argument("--tickets", type=Path, default=SAMPLE)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--python", help="interpreter with pandas, gensim, datasets, stopwordsiso")
    given = parser.parse_args()
    turns = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        pythons = {
            "text": str(build("text", folder / "text.log")["python"]),
            "others": given.python or contenders_python(folder / "others"),
        }
        multiply(given.tickets, given.count, folder / "tickets.csv")
        for run in range(given.runs):
            for name in ("transect", "pandas", "datasets"):
                with tempfile.TemporaryDirectory(dir=folder, prefix=f"{name}-{run}-") as own:
                    turns.append(one_turn(name, pythons, folder / "tickets.csv", Path(own)))
    words = {turn["found"]["words"] for turn in turns}
    assert len(words) == 1, f"they found different words: {words}"
    print(json.dumps(summary(turns), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
