"""A folder of JPEG and PNG files, in `FOLDER/CLASS/FILE` or as a published set unpacks, or a generated one.

Layouts: `_layouts.py`. The Intel natural-scenes set has 14,034 files of 150 x 150 pixels in its training folder, 6 classes.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from transect.domain.errors import BadInput
from transect.domain.folder_manifest import check_manifest
from transect.training.datasets import DATASETS, Division, Samples, Stored, StoredDataset
from transect.training.datasets._image_folder import store
from transect.training.datasets._layouts import scan
from transect.training.datasets._scan import printable
from transect.training.decoding import Unusable, decode, read_bytes
from transect.training.layers import Shape

# The generated folder, inside the data stage's own.
GENERATED = "images"
GENERATED_CLASSES = 6


def _classes(given: object) -> object:
    if isinstance(given, list):
        fits = all(isinstance(name, str) for name in given) and len(set(given)) == len(given) >= 2
    else:
        fits = given is None or (type(given) is int and 2 <= given <= 10_000)
    if not fits:
        raise ValueError("expected how many, 2 to 10,000, or a list of two different names or more")
    return given


# The message of a union would be that of one of its types alone.
Classes = Annotated[int | list[str] | None, BeforeValidator(_classes)]


class ImageOptions(BaseModel):
    """`dataset_options` of a workload on images."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    folder: str | None = Field(default=None, min_length=1, description="holds one folder per class; null: generate")
    size: int | None = Field(
        default=None, ge=1, le=4096, description="height and width in pixels; null: the workload's"
    )
    layout: Literal["class-folders", "intel-scenes", "imagenet", "openimages"] | None = Field(
        default=None, description="how the folder is laid out; null: as it looks"
    )
    manifest: str | None = Field(
        default=None,
        min_length=1,
        description="a file of `transect manifest`, which the folder is held to; null: any files",
    )
    per_class: int | None = Field(
        default=None,
        ge=2,
        description="use the first so many usable files of each class, and of each part that the set has",
    )
    generate: int = Field(default=40, ge=2, le=100_000, description="images per class when no folder is given")
    otherwise: Literal["refuse", "generate"] = Field(
        default="refuse", description="where the folder is not there: an error, or a generated one"
    )
    classes: Classes = Field(
        default=None,
        description="how many classes, the first by name, or a list of their names; null: all, or 6 that are generated",
    )


def _options(given: dict[str, Any], sample: Shape) -> tuple[ImageOptions, int]:
    try:
        options = ImageOptions.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, ("dataset_options", *first["loc"])))
        known = ", ".join(ImageOptions.model_fields)
        raise BadInput(f"key '{key}': {first['msg']}, given {first['input']!r}. Known options: {known}") from None
    if len(sample) != 3 or sample[0] != 3 or sample[1] != sample[2]:
        raise BadInput(f"dataset 'images' gives samples (3, size, size), the workload takes {sample}")
    size = options.size or sample[1]
    if size != sample[1]:
        raise BadInput(
            f"key 'dataset_options.size': the workload takes images of {sample[1]} x {sample[1]} pixels, given {size}"
        )
    if options.manifest is not None and options.folder is None:
        raise BadInput("key 'dataset_options.manifest': expected a folder beside it: what is generated has none")
    return options, size


@DATASETS.register("images")
class ImageFolder(StoredDataset):
    """RGB samples of shape (3, size, size), classes by folder name or by the set's own labels."""

    files = True
    paths = ("folder", "manifest")
    option_names = tuple(ImageOptions.model_fields)

    def check(self, options: dict[str, Any], sample: Shape) -> None:
        if not sample and not options.get("size"):
            # A module of the user's says nothing of its own.
            raise BadInput("expected data_options.size, the height and width in pixels")
        _options(options, sample or (3, options["size"], options["size"]))

    def without(self, options: dict[str, Any], name: str) -> dict[str, Any] | None:
        """Return options to go on with when what `name` leads to is not there; None: it is needed."""
        # A manifest that is not there is no reason to take any files.
        generate = name == "folder" and options.get("otherwise") == "generate"
        return {**options, "folder": None, "manifest": None} if generate else None

    def few(self, options: dict[str, Any]) -> Samples:
        """Return one sample of each of two classes. Raises BadInput where there are none, or no size is given."""
        used = ImageOptions.model_validate(options)
        assert used.folder is not None and used.size is not None, "as `check` found"
        folder = Path(used.folder)
        classes = scan(folder, used.layout, used.classes).train
        usable = (some for files in classes.values() if (some := _first(folder, files, used.size)) is not None)
        x = list(islice(usable, 2))
        if len(x) < 2:
            raise BadInput(f"{folder}: fewer than two classes with an image that can be used")
        return Samples(x=np.stack(x) / 255, y=np.arange(2), classes=tuple(classes), source=str(folder), file=folder)

    def store(self, options: dict[str, Any], sample: Shape, divide: Division, out: Path) -> Stored:
        """Generate files where no folder is given, then read, check and convert all of them."""
        used, size = _options(options, sample)
        if used.folder is not None:
            folder = Path(used.folder).expanduser().absolute()
            held = (
                {}
                if used.manifest is None
                else {"manifest_sha256": check_manifest(folder, Path(used.manifest).absolute())}
            )
            return store(
                scan(folder, used.layout, used.classes),
                size=size,
                limit=used.per_class,
                divide=divide,
                out=out,
                named=str(folder),
                source=f"image folder {printable(str(folder))}",
                details=held,
            )
        folder = out / GENERATED
        shutil.rmtree(folder, ignore_errors=True)
        classes = len(used.classes) if isinstance(used.classes, list) else used.classes or GENERATED_CLASSES
        generate(folder, classes=classes, per_class=used.generate)
        return store(
            scan(folder),
            size=size,
            limit=used.per_class,
            divide=divide,
            out=out,
            named=GENERATED,
            source=f"generated: {classes} procedural textures, {used.generate} JPEG files each",
            details={"generated": True, "generated_seed": SEED},
        )


def _first(folder: Path, files: list[str], size: int) -> np.ndarray | None:
    """Return the pixels of the first file that can be used, uint8 (3, size, size), or None."""
    for file in files:
        with suppress(Unusable):
            return decode(read_bytes(folder / file), size)
    return None


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
