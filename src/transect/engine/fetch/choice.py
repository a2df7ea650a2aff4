"""Which images of a set too large to fetch: those of a list, or the first of each class."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from transect.domain.errors import BadInput
from transect.engine.fetch.definition import Slice
from transect.training.datasets._open_images import names_of, shown_names, verified
from transect.training.datasets._scan import unknown_class

_IMAGE = re.compile(r"(train|validation|test)/([0-9a-f]{16})(?:\.jpg)?")


def listed(file: Path, part: Slice) -> list[str]:
    """Return `SUBSET/ID` of each line of a list, as the publisher's own downloader takes them. Raises BadInput naming the line."""
    try:
        lines = file.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{file}: no readable list: {getattr(error, 'strerror', None) or error}") from None
    chosen: dict[str, None] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        image = _IMAGE.fullmatch(line.strip())
        if image is None or image[1] not in part.labels:
            subsets = " or ".join(part.labels)
            raise BadInput(f"{file}: line {number}: expected SUBSET/ID with {subsets} and 16 digits, found {line!r}")
        chosen[f"{image[1]}/{image[2]}"] = None
    if not chosen:
        raise BadInput(f"{file}: no images in it, expected a line SUBSET/ID for each")
    return list(chosen)


def by_class(
    folder: Path, part: Slice, classes: Sequence[str], per_class: int, gone: Collection[str] = ()
) -> list[str]:
    """Return `SUBSET/ID` of the first images, by id, that show exactly one of the classes, as a person verified.

    Without those that are `gone`.

    Raises BadInput for a class that is not there, or that too few images show.
    """
    names = names_of(folder / part.names)
    # As the dataset calls them: of two that are called the same neither by its name alone.
    labels = {name: label for label, name in shown_names(names, names).items()}
    for name in classes:
        if name not in labels:
            raise unknown_class(name, labels, part.names)
    wanted = {labels[name]: name for name in classes}
    seen: dict[str, set[str]] = {}
    for image, label in verified(folder / part.labels[part.subset]):
        if label in wanted and f"{part.subset}/{image}" not in gone:
            seen.setdefault(image, set()).add(label)
    found: dict[str, list[str]] = {label: [] for label in wanted}
    for image in sorted(seen):
        if len(seen[image]) == 1 and len(mine := found[next(iter(seen[image]))]) < per_class:
            mine.append(image)
    for label, images in found.items():
        if len(images) < per_class:
            raise BadInput(
                f"{part.subset} has {len(images)} images that show {wanted[label]} and no other of the classes, "
                f"expected {per_class}"
            )
    return [f"{part.subset}/{image}" for images in found.values() for image in images]
