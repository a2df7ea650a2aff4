"""One place of a search: `python -m transect.stages.search.worker --spec … --encode … --vectors … --out …`.

`--from` is the folder of the cell of the rung before whose point goes on here. Leaves what a classify
cell leaves; the record's details say the point, and whence it comes. Exit code 0 when the result
stands there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from transect.domain.axes.text import SearchCell
from transect.domain.cell import Cell
from transect.domain.errors import FAULTS
from transect.domain.record import read_record
from transect.onnx_models.results import write_fault, write_result
from transect.stages.classify.worker import classify, parser


def search(spec: dict[str, Any], folders: dict[str, Path], out: Path, keep_every_s: float) -> dict[str, Any]:
    """Train the point of one place; return its result. `folders` has `shorter` in later rungs."""
    cell = Cell.of(**spec["cell"])
    assert isinstance(cell, SearchCell)
    point, earlier = spec["point"], None
    if cell.rung:
        record = read_record(folders["shorter"] / "record.json")
        point, earlier = record.details["point"], record.cell_id
    made = classify(spec, point | spec["knobs"], folders, out, keep_every_s)
    made["details"] |= {
        "point": point,
        "rung": cell.rung,
        "place": cell.place,
        "from": earlier,
        "went_on_from": earlier,
    }
    return made


def main(arguments: list[str] | None = None) -> int:
    """Run one search cell."""
    asked = parser()
    asked.add_argument("--from", dest="shorter", type=Path, help="folder of the rung before")
    given = asked.parse_args(arguments)
    folders = {role: getattr(given, role) for role in ("encode", "vectors")}
    folders |= {"shorter": given.shorter} if given.shorter else {}
    try:
        spec = json.loads(given.spec.read_text(encoding="utf-8"))
        write_result(given.out, search(spec, folders, given.out, given.keep_every))
    except FAULTS as error:
        return write_fault(given.out, error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
