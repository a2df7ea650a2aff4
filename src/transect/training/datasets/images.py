"""A folder of JPEG and PNG files, `FOLDER/CLASS/FILE`, or a generated one in the same layout.

The layout is that of the Intel natural-scenes set (14,034 files of 150 x 150 pixels in its
training folder, 6 classes) and of most others.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from transect.domain.errors import BadInput
from transect.training.datasets import DATASETS, Division, Stored, StoredDataset
from transect.training.datasets._generated_images import SEED, generate
from transect.training.datasets._image_folder import printable, scan, store
from transect.training.layers import Shape

# The generated folder, inside the data stage's own.
GENERATED = "images"


class ImageOptions(BaseModel):
    """`dataset_options` of a workload on images."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    folder: str | None = Field(default=None, description="holds one folder per class; null: generate")
    size: int | None = Field(
        default=None, ge=1, le=4096, description="height and width in pixels; null: the workload's"
    )
    per_class: int | None = Field(default=None, ge=2, description="use the first so many usable files of each class")
    generate: int = Field(default=40, ge=2, le=100_000, description="images per class when no folder is given")
    otherwise: Literal["refuse", "generate"] = Field(
        default="refuse", description="where the folder is not there: an error, or a generated one"
    )
    classes: int = Field(default=6, ge=2, le=100, description="number of classes when no folder is given")


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
    return options, size


@DATASETS.register("images")
class ImageFolder(StoredDataset):
    """RGB samples of shape (3, size, size), classes by folder name."""

    files = True
    paths = ("folder",)
    option_names = tuple(ImageOptions.model_fields)

    def check(self, options: dict[str, Any], sample: Shape) -> None:
        """Raise BadInput for an unknown option or one out of its range."""
        _options(options, sample)

    def without(self, options: dict[str, Any], name: str) -> dict[str, Any] | None:
        """Return options to go on with when what `name` leads to is not there; None: it is needed."""
        return {**options, name: None} if options.get("otherwise") == "generate" else None

    def store(self, options: dict[str, Any], sample: Shape, divide: Division, out: Path) -> Stored:
        """Generate files where no folder is given, then read, check and convert all of them."""
        used, size = _options(options, sample)
        if used.folder is not None:
            folder = Path(used.folder).expanduser().absolute()
            return store(
                scan(folder),
                size=size,
                limit=used.per_class,
                divide=divide,
                out=out,
                named=str(folder),
                source=f"image folder {printable(str(folder))}",
            )
        folder = out / GENERATED
        shutil.rmtree(folder, ignore_errors=True)
        generate(folder, classes=used.classes, per_class=used.generate)
        return store(
            scan(folder),
            size=size,
            limit=used.per_class,
            divide=divide,
            out=out,
            named=GENERATED,
            source=f"generated: {used.classes} procedural textures, {used.generate} JPEG files each",
            details={"generated": True, "generated_seed": SEED},
        )
