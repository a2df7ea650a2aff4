"""A folder for the studies of one test module, and the study that the files test_shared_*.py read.

Those files belong to one worker: each that runs one of them runs the shared study once. Where nobody reads more than
the rows of frameworks, no more of it runs.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from string import Template
from typing import Any

import pytest

from checkouts import ROOT, Checkout, Place
from doc_examples import write_examples
from docking_parts import small, write_deck
from framework_rows import EVERY, ON_ONE_MACHINE, SKIPPED

STUDY = ROOT / "tests" / "workflow" / "shared.yaml"
ROW = "    - {{workloads: [test-resnet8], frameworks: [{}], strategies: [{}], ranks: [{}]}}"
PEOPLE = ("Anna Schmidt", "Bernd Gröner", "chloé.durand@example.org")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A folder in which a module's studies run with the repository's own sources."""
    return Place(tmp_path_factory.mktemp("place") / "studies")


def _tickets() -> list[dict[str, Any]]:
    """Return real tickets, dressed up with people, addresses, quotes, markup and text that is no word."""
    with (ROOT / "src/transect/text/data/tickets-sample.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))[:240]
    made = []
    for number, row in enumerate(rows):
        text, queue = row["Document"], row["Topic_group"]
        person, colleague = PEOPLE[number % 3], PEOPLE[(number + 1) % 3]
        asked = f"Hallo {colleague}, 日本\u0301 {text} <b>Gru\u0308ße</b>\n-- \n{person}, +49 551 1234567"
        answer = f"Dear {person}, mail me at a{number}@example.org\n\n> {text}\n> {text}"
        made.append(
            {
                "id": f"ticket {number}",
                "queue": queue,
                "messages": [
                    {"role": "customer", "author": person, "text": asked},
                    {"role": "agent", "author": colleague, "text": answer},
                ],
            }
        )
    return made


def _write_decks(folder: Path) -> None:
    """Write a deck whose reference energies are wrong, and one that is cut."""
    from transect.hpc.probes._docking_deck import ENERGIES

    for name in ("wrong", "cut"):
        (folder / name).mkdir(parents=True)
        write_deck(small(), folder / name)
    (folder / "wrong" / ENERGIES).write_text("12345.0\n" * 20)
    protein = folder / "cut" / "protein.in"
    protein.write_bytes(protein.read_bytes()[:-3])


def _write_study(folder: Path, rows: Iterable[tuple[str, str]], *, rows_only: bool = False) -> Path:
    """Write the study and what it takes into a folder; return its file. `rows`: frameworks and strategies."""
    _write_decks(folder / "decks")
    (folder / "own.jsonl").write_text("".join(json.dumps(ticket) + "\n" for ticket in _tickets()))
    (folder / "logs").mkdir()
    (folder / "logs" / "extra.log").write_text("noise\nEXTRA BENCH: 12.5 GB/s\n")
    text = STUDY.read_text(encoding="utf-8")
    if rows_only:
        text, after, _ = text.partition("    # Single-file plug-ins.\n")
        assert after, f"{STUDY}: nothing says where the rows end"
    text = Template(text).substitute(
        plugins=ROOT / "tests" / "plugins",
        examples=write_examples(folder / "examples"),
        decks=folder / "decks",
        rows="\n".join(ROW.format(*row, 1 if row[1] == "single" else 2) for row in [*rows, *SKIPPED]),
    )
    (folder / STUDY.name).write_text(text)
    return folder / STUDY.name


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Checkout:
    """A checkout in which the shared study has run; who edits anything puts it back."""
    checkout = Checkout(tmp_path_factory.mktemp("shared") / "transect")
    rows = EVERY if request.config.getoption("--exhaustive") else ON_ONE_MACHINE
    readers = {
        item.path.stem
        for item in request.session.items
        if isinstance(item, pytest.Function) and "shared" in item.fixturenames
    }
    rows_only = readers == {"test_shared_framework_rows"}
    study = _write_study(checkout.folder, rows, rows_only=rows_only)
    # The first run compiles Horovod three times.
    run = checkout.make(study.name)
    assert run.returncode == 0, run.stdout + run.stderr
    # Snakemake reads a rule for each of its stages, and finds nothing left to do.
    assert checkout.summary(f"study={study.name}") == set()
    return checkout
