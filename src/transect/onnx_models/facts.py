"""`facts.json`: what other cells take from a model's folder beside the file and its tensors.

It is apart from the result, whose times differ from run to run, so that its checksum says whether
anything that a verdict rests on has changed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transect.domain.errors import BadInput
from transect.domain.files import write_atomic

__all__ = ["FACTS", "facts_of_model", "write_facts"]

FACTS = "facts.json"


def write_facts(
    out: Path,
    *,
    tolerance: float | dict[str, float],
    batched: bool,
    costs: dict[str, Any] | None,
) -> None:
    """Write the file: the same content whenever the same model is made.

    `tolerance`: the largest absolute difference, or one per output, of integers and texts the share
    of elements. `batched`: whether the first axis of all ends counts rows. `costs`: as counted from
    the graph, None where they cannot be. Raises ValueError for NaN or infinity, which JSON lacks.
    """
    facts = {"tolerance": tolerance, "batched": batched, "costs": costs}
    write_atomic(out / FACTS, json.dumps(facts, indent=1, sort_keys=True, allow_nan=False) + "\n")


def facts_of_model(model: Path) -> dict[str, Any]:
    """Return `tolerance`, `batched` and `costs` of a model's folder.

    Raises BadInput when it is not the folder of a finished cell that makes models.
    """
    path = model / FACTS
    try:
        facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        tolerance, batched, _ = (facts[key] for key in ("tolerance", "batched", "costs"))
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise BadInput(
            f"{path}: holds no tolerance, batched and costs ({type(error).__name__}: {error}); "
            f"{model} must be the folder of a finished export, model or convert cell"
        ) from None
    if not isinstance(tolerance, (int, float, dict)) or not isinstance(batched, bool):
        raise BadInput(
            f"{path}: tolerance is {tolerance!r:.100}, expected a number or one per output; "
            f"batched is {batched!r:.100}, expected true or false"
        )
    return facts
