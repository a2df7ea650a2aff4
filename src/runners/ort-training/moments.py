"""AdamW's averages in a checkpoint file of ONNX Runtime training, which its API does not show.

The file is a flatbuffer whose reader comes with the package. It is read as it is, and written by
overwriting what a checkpoint of the same model already holds: numbers of the same size in the same
places.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
from onnxruntime.tools.ort_format_model.ort_flatbuffers_py.fbs.Checkpoint import Checkpoint

# The names that the optimiser operator's averages have in the file, and torch's.
KINDS = {"momentum0": "exp_avg", "momentum1": "exp_avg_sq"}
# Where a table of the schema keeps the offset of its field `step`, its second.
_STEP_FIELD = 6


def _arrays(buffer: bytearray) -> dict[tuple[str, str], np.ndarray]:
    """Return views of the averages, flat float32, by kind and parameter."""
    checkpoint = Checkpoint.GetRootAs(buffer, 0)
    found = {}
    for group in map(checkpoint.OptimizerGroups, range(checkpoint.OptimizerGroupsLength())):
        for state in map(group.OptimizerStates, range(group.OptimizerStatesLength())):
            parameter = state.ParamName().decode()
            for tensor in map(state.Momentums, range(state.MomentumsLength())):
                kind = KINDS[tensor.Name().decode()]
                found[kind, parameter] = tensor.RawDataAsNumpy().view("<f4")
    return found


def read_moments(path: Path) -> dict[tuple[str, str], np.ndarray]:
    """Return copies of the averages, flat float32, by kind and parameter; none before a step."""
    return {key: array.copy() for key, array in _arrays(bytearray(path.read_bytes())).items()}


def write_moments(path: Path, moments: dict[tuple[str, str], np.ndarray], step: int) -> None:
    """Overwrite the averages and the number of updates of a checkpoint that holds both.

    That of an optimiser before its first step holds neither: a flatbuffer has no place for a 0.
    """
    buffer = bytearray(path.read_bytes())
    for key, array in _arrays(buffer).items():
        array[:] = moments[key].reshape(-1)
    checkpoint = Checkpoint.GetRootAs(buffer, 0)
    for group in map(checkpoint.OptimizerGroups, range(checkpoint.OptimizerGroupsLength())):
        struct.pack_into("<q", buffer, group._tab.Pos + group._tab.Offset(_STEP_FIELD), step)
    path.write_bytes(buffer)
