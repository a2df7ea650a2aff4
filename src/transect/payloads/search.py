"""One place of a search.

It takes the role `shorter` from the cell of the rung before whose point goes on here. Leaves what a classify
cell leaves; the record's details say the point, and whence it comes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transect.domain.axes.text import SearchCell
from transect.domain.record import read_record
from transect.payloads.classify import fit


def search(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Train the point of one place; return its result. `folders` has `shorter` in later rungs."""
    cell = SearchCell.of(**spec["cell"])
    point, earlier = spec["point"], None
    if cell.rung:
        record = read_record(folders["shorter"] / "record.json")
        point, earlier = record.details["point"], record.cell_id
    made = fit(spec, point | spec["hyperparameters"], folders, out)
    made["details"] |= {
        "point": point,
        "rung": cell.rung,
        "place": cell.place,
        "from": earlier,
        "went_on_from": earlier,
    }
    return made
