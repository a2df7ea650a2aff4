"""One view of a corpus.

Leaves `texts.jsonl`, one JSON string for each ticket in the order of `tickets.jsonl`, "" where there
is nothing to read, and `result.json`. A few tickets are in memory at a time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transect.domain.axes.text import ExtractTextCell
from transect.onnx_models.results import result
from transect.text.dialogue import dialogue
from transect.text.lines import read_lines, writing_lines


def extract(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Write the texts of one cell into `out`; return its result."""
    cell = ExtractTextCell.of(**spec["cell"])
    if cell.names == "kept" and spec["redacted"]:
        return result(skipped=f"tickets.corpora.{cell.corpus} has redact: true: no names are left to be kept")
    tickets = empty = characters = people = with_people = 0
    with writing_lines(out / "texts.jsonl") as write:
        for ticket in read_lines(folders["corpus"] / "tickets.jsonl"):
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
