"""The layout of Open Images: flat folders of `IMAGE_ID.jpg`, labels and names of classes in CSV files beside them.

Which label counts: one that a person verified (Confidence 1), whoever was asked. An image that shows exactly one of the chosen
classes is used; one that shows several or none of them is left out, and so is one without a verified label.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from transect.domain.errors import BadInput
from transect.training.datasets._scan import Choice, Files, Found, choose, entries, image_files, is_folder, printable

RULE = "the one of the chosen classes that a person verified; images that show several of them or none are left out"
SUBSETS = ("train", "validation", "test")
_COLUMNS = ("ImageID", "LabelName", "Confidence")


def _header(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            return next(csv.reader([stream.readline(4096)]), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        return []


def _has_labels(path: Path) -> bool:
    header = set(_header(path))
    return header.issuperset(_COLUMNS) and "XMin" not in header


def _has_names(path: Path) -> bool:
    header = _header(path)
    return header[:2] == ["LabelName", "DisplayName"] or (len(header) == 2 and header[0].startswith(("/m/", "/g/")))


def sees(folder: Path, top: dict[str, bool]) -> bool:
    """Whether a folder with these entries looks like it: a part of it, and a file of labels."""
    files = (folder / name for name, inside in top.items() if not inside and name.lower().endswith(".csv"))
    return any(top.get(part, False) for part in SUBSETS) and any(map(_has_labels, files))


def names_of(path: Path) -> dict[str, str]:
    """Return the name that is shown of each label, such as `Cat` of `/m/01yrx`. Raises BadInput for another file."""
    return {row[0]: row[1] for row in _rows(path) if len(row) > 1 and row[0] != "LabelName"}


def verified(path: Path) -> Iterator[tuple[str, str]]:
    """Yield ImageID and label of each row that says a person saw it. Raises BadInput naming the line that cannot be read."""
    if not _has_labels(path):
        raise BadInput(f"{printable(str(path))}: no labels of whole images: expected the columns {', '.join(_COLUMNS)}")
    rows = _rows(path)
    header = next(rows)
    image, label, sure = map(header.index, _COLUMNS)
    for number, row in enumerate(rows, 2):
        try:
            if float(row[sure]) == 1:
                yield row[image], row[label]
        except (ValueError, IndexError):
            raise BadInput(
                f"{printable(str(path))}: line {number}: expected {', '.join(header)}, found {row}"
            ) from None


def _rows(path: Path) -> Iterator[list[str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            yield from csv.reader(stream)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{printable(str(path))}: no readable CSV file: {error}") from None


def shown_names(labels: Iterable[str], names: dict[str, str]) -> dict[str, str]:
    """Return what each label is called; where two are called the same, the label stands behind the name."""
    called = {label: names.get(label, label) for label in sorted(labels)}
    several = Counter(called.values())
    return {label: name if several[name] == 1 else f"{name} {label}" for label, name in called.items()}


def read(found: Found, classes: Choice) -> None:
    """List the used files by class. Labels are kept of images that are there, of no others."""
    parts: Files = {}
    tables: list[Path] = []
    names: dict[str, str] = {}
    for entry in entries(found):
        path = found.folder / entry.name
        if is_folder(entry) and entry.name in SUBSETS:
            parts[entry.name] = image_files(found, entry.name)
        elif is_folder(entry) or not entry.name.lower().endswith(".csv"):
            found.leave_out(entry.name, "no part of Open Images")
        elif _has_labels(path):
            tables.append(path)
        elif _has_names(path):
            names |= names_of(path)
        else:
            found.leave_out(entry.name, "neither labels of whole images nor names of classes")
    labels: dict[str, set[str]] = {PurePosixPath(file).stem: set() for files in parts.values() for file in files}
    for table in tables:
        for image, label in verified(table):
            if image in labels:
                labels[image].add(label)
    shown = shown_names(set().union(*labels.values()), names)
    order = sorted(shown, key=lambda label: shown[label].encode())
    called = {shown[label]: [label] for label in order}
    chosen = set(choose(found, called, classes, called))
    wanted = {label for label in order if shown[label] in chosen}

    def by_class(files: list[str]) -> Files:
        taken: Files = {shown[label]: [] for label in order if label in wanted}
        for file in files:
            seen = labels[PurePosixPath(file).stem]
            mine = sorted(seen & wanted)
            if len(mine) == 1:
                taken[shown[mine[0]]].append(file)
            elif mine:
                found.leave_out(file, f"shows {len(mine)} of the chosen classes")
            else:
                found.leave_out(file, "shows none of the chosen classes" if seen else "without a verified label")
        return taken

    found.rule = RULE
    filled = [part for part in SUBSETS if parts.get(part)]
    if not filled:
        raise BadInput(f"{printable(str(found.folder))}: no images in {', '.join(SUBSETS)}")
    first, *others = filled
    found.train = by_class(parts[first])
    if others:
        # The last: `test`, or `validation` where that is all.
        found.test = by_class(parts[others[-1]])
        for part in others[:-1]:
            found.leave_out(part, f"{others[-1]} is the test part")
