"""Writes the digits of the page: run by the environment `base`.

`python digits_data.py FOLDER` makes `train` and `held-out`, split and scaled as in a study.
"""

import sys
from pathlib import Path

import numpy as np

from transect.onnx_models.tensors import write_tensors
from transect.payloads.dataset import split
from transect.training.datasets import DATASETS

HELD_OUT, SEED = 0.25, 0


def main(folder: Path) -> None:
    """Write both parts, x float32 (n, 1, 8, 8) and y int64 (n,)."""
    digits = DATASETS.get("digits")
    samples = digits.load({})
    train, held_out = split(samples.y, HELD_OUT, SEED)
    # In the order of the classes they would show one class first.
    held_out = np.random.default_rng(SEED).permutation(held_out)
    x = digits.normalise(samples.x[train], samples.x[held_out])
    for name, images, rows in zip(("train", "held-out"), x, (train, held_out), strict=True):
        write_tensors(folder / name, {"x": images.astype(np.float32), "y": samples.y[rows]})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
