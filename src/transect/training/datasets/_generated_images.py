"""Images that can be had without a download: procedural textures as JPEG files.

A class is a direction and a spacing of stripes and a pair of hues, all of which scatter so far from
image to image that neighbouring classes overlap in each of them; brightness, contrast, position,
a spot in front and pixel noise tell nothing. So colour alone or texture alone does not suffice.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

# As large as the files of the Intel natural-scenes set.
SIZE = 150
QUALITY = 90
# Not the study's seed: it is the same dataset in every study.
SEED = 20_261_120

_SPACINGS = (3.0, 6.0)


def _colour(hue: float) -> np.ndarray:
    return np.asarray(0.5 + 0.5 * np.cos(2 * np.pi * (hue - np.arange(3) / 3)))


def texture(label: int, classes: int, number: int) -> np.ndarray:
    """Return image `number` of class `label`: uint8 (SIZE, SIZE, 3), whatever else is generated."""
    draw = np.random.default_rng([SEED, label, number])
    down, right = np.mgrid[0:SIZE, 0:SIZE] / SIZE
    angle = np.pi * (label + draw.normal(0, 0.25)) / classes
    waves = _SPACINGS[label % len(_SPACINGS)] * np.exp(draw.normal(0, 0.2))
    bend = draw.uniform(0, 0.06) * np.sin(2 * np.pi * (2 * right + draw.random()))
    along = np.cos(angle) * right + np.sin(angle) * down + bend
    stripes = 0.5 + 0.5 * np.sin(2 * np.pi * (waves * along + draw.random()))
    hue = (label + draw.normal(0, 0.35)) / classes
    first, second = _colour(hue), _colour(hue + 0.3 + draw.normal(0, 0.1))
    image = stripes[..., None] * first + (1 - stripes[..., None]) * second
    centre, radii = draw.random(2), draw.uniform(0.08, 0.25, 2)
    spot = ((down - centre[0]) / radii[0]) ** 2 + ((right - centre[1]) / radii[1]) ** 2 < 1
    image[spot] = draw.random(3)
    image = 0.5 + draw.uniform(0.5, 1.0) * (image - 0.5) + draw.uniform(-0.15, 0.15)
    image += draw.normal(0, 0.1, image.shape)
    return np.asarray(255 * np.clip(image, 0, 1), np.uint8)


def generate(folder: Path, *, classes: int, per_class: int) -> None:
    """Write `folder/CLASS/NNNN.jpg`, the same bytes for the same numbers and libraries."""
    from PIL import Image

    digits = max(4, len(str(per_class - 1)))
    for label in range(classes):
        home = folder / f"texture-{label:0{len(str(classes - 1))}d}"
        home.mkdir(parents=True)
        for number in range(per_class):
            image = Image.fromarray(texture(label, classes, number))
            image.save(home / f"{number:0{digits}d}.jpg", quality=QUALITY)
