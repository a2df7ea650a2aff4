"""One view of a corpus: `python -m transect.stages.dialogue.worker --spec … --corpus … --out …`.

Leaves `texts.jsonl`, one JSON string for each ticket in the order of `tickets.jsonl`, "" where there
is nothing to read, and `result.json`. A few tickets are in memory at a time.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from transect.domain.axes.text import DialogueCell
from transect.domain.cell import Cell
from transect.domain.errors import FAULTS
from transect.domain.record import Cause, Status
from transect.onnx_models.results import result, write_fault, write_result
from transect.text.dialogue import dialogue
from transect.text.lines import read_lines, writing_lines


def extract(cell: DialogueCell, spec: dict[str, Any], corpus: Path, out: Path) -> dict[str, Any]:
    """Write the texts of one cell into `out`; return its result."""
    if cell.names == "kept" and spec["redacted"]:
        return result(
            status=Status.SKIPPED,
            cause=Cause.UNSUPPORTED,
            message=f"tickets.corpora.{cell.corpus} has redact: true: no names are left to be kept",
        )
    tickets = empty = characters = people = with_people = 0
    with writing_lines(out / "texts.jsonl") as write:
        for ticket in read_lines(corpus / "tickets.jsonl"):
            text, replaced = dialogue(ticket, cell.view, cell.names)
            write(text)
            tickets += 1
            empty += not text.strip()
            characters += len(text)
            people += replaced
            with_people += bool(replaced)
    return result(
        details={
            "tickets": tickets,
            "empty": empty,
            "characters": characters,
            "people_replaced": people,
            "tickets_with_people_replaced": with_people,
        }
    )


def main(arguments: list[str] | None = None) -> int:
    """Run one dialogue cell."""
    parser = argparse.ArgumentParser(description="what is read of each ticket")
    parser.add_argument("--spec", type=Path, required=True)
    parser.add_argument("--corpus", type=Path, required=True, help="folder of a corpus cell")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    try:
        spec = json.loads(given.spec.read_text())
        cell = Cell.of(**spec["cell"])
        assert isinstance(cell, DialogueCell)
        write_result(given.out, extract(cell, spec, given.corpus, given.out))
    except FAULTS as error:
        return write_fault(given.out, error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
