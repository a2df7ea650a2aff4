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

FACTS = "facts.json"


def write_facts(
    out: Path,
    *,
    tolerance: float | dict[str, float],
    batched: bool,
    costs: dict[str, Any] | None,
    mean_tolerance: dict[str, float] | None = None,
    by_batch: bool = False,
) -> None:
    """Write the file: the same content whenever the same model is made.

    `tolerance`: the largest absolute difference, or one per output, of integers and texts the share
    of elements. `batched`: whether the first axis of all ends counts rows. `costs`: as counted from
    the graph, None where they cannot be. `mean_tolerance`: the mean absolute difference by output,
    where that counts too. `by_batch`: outputs depend on the size of the batch, and those of each have
    a folder (`of_batch`). Raises ValueError for NaN or infinity, which JSON lacks.
    """
    facts: dict[str, Any] = {"tolerance": tolerance, "batched": batched, "costs": costs}
    facts |= {"mean_tolerance": mean_tolerance} if mean_tolerance else {}
    facts |= {"by_batch": True} if by_batch else {}
    write_atomic(out / FACTS, json.dumps(facts, indent=1, sort_keys=True, allow_nan=False) + "\n")


def batch_folder(batch: int) -> str:
    """Return the name of the folder with `expected` and facts of one size of batch."""
    return f"batch-{batch}"


def of_batch(model: Path, batch: int) -> Path:
    """Return the folder that holds the expected outputs and the tolerance for a size of batch.

    The model's own, unless its outputs depend on that size. Raises BadInput as `facts_of_model`
    does, and when the outputs for this size were not computed.
    """
    if not facts_of_model(model).get("by_batch"):
        return model
    folder = model / batch_folder(batch)
    if not folder.is_dir():
        there = sorted(path.name for path in model.glob("batch-*"))
        raise BadInput(
            f"{folder}: not there; the outputs of this model depend on the size of the batch, and were "
            f"computed for {', '.join(there) or 'none'}"
        )
    return folder


def facts_of_model(model: Path) -> dict[str, Any]:
    """Return `tolerance`, `batched` and `costs` of a model's folder, and what else it has.

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
