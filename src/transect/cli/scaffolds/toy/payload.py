"""A norm of trained weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.cell import Cell


def norm(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Return the norm of one cell's weights."""
    cell = Cell.of(**spec["cell"])
    with np.load(folders["weights"] / "weights.npz") as file:
        flat = np.concatenate([file[name].ravel() for name in sorted(file.files)])
    value = float(np.linalg.norm(flat, cell.get("order"))) + spec["offset"]
    return {"metrics": [{"name": "toy_norm", "value": value}], "details": {"weights": flat.size}}
