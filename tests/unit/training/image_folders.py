"""Runs code on folders of images, made in the environment that reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from warm import warm

# Pillow is in the training environments only, so these parts run there. `answer` is printed.
PRELUDE = """
import json, os, struct, sys, threading, warnings, zlib
warnings.simplefilter("error", DeprecationWarning)
from pathlib import Path
import numpy as np
from PIL import Image
from transect.domain.errors import BadInput
from transect.training.images import FileReader
from transect.training.inputs import load_arrays
from transect.payloads.dataset import prepare

out = Path(sys.argv[1])
root = out / "pictures"

def noise(*shape):
    return np.random.default_rng(shape).integers(0, 256, shape, np.uint8)

def folder(classes=6, images=8, size=40, suffix="png"):
    for label in range(classes):
        home = root / f"class-{label}"
        home.mkdir(parents=True)
        for number in range(images):
            picture = noise(size, size + number, 3) // 2 + 20 * label
            Image.fromarray(picture.astype(np.uint8)).save(home / f"{number}.{suffix}")
    return root

def prepared(name="data", **options):
    spec = {"workload": "images-resnet20", "seed": 3, "repeats": 1,
            "parameters": {"batch": 8, "epochs": 1, "dataset_options": options}}
    return prepare(spec, out / name)

def refused(make):
    try:
        make()
    except BadInput as error:
        return str(error)
    return "nothing was raised"
"""


def run(python: str, folder: Path, code: str) -> Any:
    """Run code after PRELUDE with another interpreter; return its `answer`."""
    done = warm(python).run("-c", f"{PRELUDE}{code}\nprint(json.dumps(answer))", folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
