"""What a training takes from storage and would leave there: the samples of an epoch, the state of a checkpoint."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.domain.precisions import find_precision
from transect.training.images import FILE_LIST
from transect.training.models import Model
from transect.training.optimisers import arrays_kept
from transect.training.raw_arrays import describe_npz
from transect.training.workloads import Parameters


def storage_facts(data: Path, cell: TrainCell, model: Model, parameters: Parameters) -> dict[str, int]:
    """Return `epoch_bytes`, the training samples as they lie in the data stage's folder `data`, and `state_bytes`.

    Of image files that are read in each epoch the files count, else the arrays; of synthetic input, and of data that are gone, there are none. A
    state is the weights, what the optimiser keeps for each and their average, in the cell's precision, of all
    ranks together.
    """
    weights = model.costs(parameters).parameters * (1 + arrays_kept(parameters))
    facts = {"state_bytes": weights * find_precision(cell.precision).bytes_per_number}
    if cell.input == "synthetic":
        return facts
    if cell.input == "files" and (data / FILE_LIST).is_file():
        table = json.loads((data / FILE_LIST).read_text(encoding="ascii"))
        return facts | {"epoch_bytes": sum(entry["bytes"] for entry in table["train"])}
    stored = data / "x_train.npy"
    if stored.is_file():
        return facts | {"epoch_bytes": stored.stat().st_size}
    # A training that ended well is not lost because its data are gone by now.
    packed = data / "data.npz"
    entry = describe_npz(packed, lambda name: name == "x_train").get("x_train") if packed.is_file() else None
    if entry is None:
        return facts
    return facts | {"epoch_bytes": math.prod(entry["shape"]) * np.dtype(entry["dtype"]).itemsize}
