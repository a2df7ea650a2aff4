"""Which layout an image folder has, and its files by class.

`class-folders`: FOLDER/CLASS/FILE, whose test part is drawn. `intel-scenes`: the Intel natural scenes as Kaggle packs them.
`imagenet`: ILSVRC 2012 as its archives unpack, with the validation part flat or in folders. `openimages`: flat folders of
`IMAGE_ID.jpg` with labels in CSV files (https://storage.googleapis.com/openimages/web/download_v7.html#data-formats).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transect.domain.errors import BadInput
from transect.training.datasets import _open_images
from transect.training.datasets._scan import (
    Choice,
    Files,
    Found,
    choose,
    class_folders,
    entries,
    image_files,
    is_folder,
    joined,
    printable,
)

EXPECTED = {
    "class-folders": "FOLDER/CLASS/*.jpg, a folder for each class",
    "intel-scenes": "seg_train/seg_train/CLASS/*.jpg and seg_test/seg_test/CLASS/*.jpg",
    "imagenet": "train/nNNNNNNNN/*.JPEG, and val/nNNNNNNNN/*.JPEG or val/*.JPEG beside the devkit",
    "openimages": "IMAGE_ID.jpg in train, validation or test, beside CSV files with ImageID, LabelName and Confidence",
}
_SYNSET = re.compile(r"n\d{8}")
_VALIDATION = re.compile(r"ILSVRC2012_val_(\d{8})\.JPEG", re.IGNORECASE)
_DEVKITS = ("ILSVRC2012_devkit_t12/data", "devkit/data")
_TRUTH, _META = "ILSVRC2012_validation_ground_truth.txt", "meta.mat"


def scan(folder: Path, layout: str | None = None, classes: Choice = None) -> Found:
    """List the folder's classes and files. Raises BadInput when there are fewer than two classes, or for another layout.

    Links are followed, but no folders inside a class are: they cannot lead round in circles.
    """
    found = Found(folder=folder)
    top = {entry.name: is_folder(entry) for entry in entries(found)}
    seen = [name for name, sees in _SEES.items() if sees(folder, top)]
    where = printable(str(folder))
    if layout is None:
        if len(seen) > 1:
            raise BadInput(
                f"{where}: looks like {' and like '.join(seen)}: name one by the option 'layout', or part the folder"
            )
        layout = seen[0] if seen else "class-folders"
    elif layout in _SEES and layout not in seen:
        raise BadInput(f"{where}: no {layout} there: expected {EXPECTED[layout]}")
    found.layout = layout
    _READS[layout](found, classes)
    if len(found.train) < 2:
        what = "class folders" if layout == "class-folders" else "classes"
        raise BadInput(f"{where}: {len(found.train)} {what}, at least 2 are needed: expected {EXPECTED[layout]}")
    return found


def _parts(found: Found, train: str, test: str, classes: list[str]) -> None:
    """Take both parts' files of those classes. Raises BadInput where the test part lacks one."""
    there = class_folders(found, test)
    if missing := [name for name in classes if name not in there]:
        shown = ", ".join(map(printable, missing[:3]))
        raise BadInput(
            f"{printable(str(found.folder))}: {len(missing)} classes of {train} are not in {test}, such as {shown}"
        )
    found.train = {name: image_files(found, joined(train, name)) for name in classes}
    found.test = {name: image_files(found, joined(test, name)) for name in classes}


def _class_folders(found: Found, classes: Choice) -> None:
    names = choose(found, class_folders(found), classes)
    found.train = {name: image_files(found, name) for name in names}


def _scenes(found: Found, classes: Choice) -> None:
    places = {}
    for entry in entries(found):
        if entry.name not in ("seg_train", "seg_test"):
            unlabelled = entry.name == "seg_pred"
            found.leave_out(entry.name, "without labels" if unlabelled else "beside the class folders")
            continue
        # Kaggle's archive has each of them twice; it is often unpacked without the second.
        inner = {inside.name: is_folder(inside) for inside in entries(found, entry.name)}
        nested = inner.get(entry.name, False)
        if nested and sum(inner.values()) > 1:
            where = printable(str(found.folder / entry.name))
            raise BadInput(f"{where}: has {entry.name} and class folders beside it: expected one of the two")
        places[entry.name] = joined(entry.name, entry.name if nested else "")
    if len(places) < 2:
        raise BadInput(f"{printable(str(found.folder))}: only {next(iter(places))} is there: {_NEEDS_BOTH}")
    train, test = places["seg_train"], places["seg_test"]
    _parts(found, train, test, choose(found, class_folders(found, train), classes))


_NEEDS_BOTH = f"expected {EXPECTED['intel-scenes']}; for one part alone name the folder of its classes"


def _imagenet(found: Found, classes: Choice) -> None:
    where = printable(str(found.folder))
    top = {entry.name for entry in entries(found) if is_folder(entry)}
    if "val" not in top:
        raise BadInput(f"{where}: train is there, and no val: expected {EXPECTED['imagenet']}; or name {where}/train")
    if "test" in top:
        found.leave_out("test", "without labels")
    synsets = class_folders(found, "train")
    if odd := [name for name in synsets if not _SYNSET.fullmatch(name)]:
        raise BadInput(f"{where}/train: {printable(odd[0])}: expected folders named as synsets, such as n01440764")
    devkit = next((found.folder / kit for kit in _DEVKITS if (found.folder / kit / _META).is_file()), None)
    numbers, words = _synsets(devkit / _META) if devkit is not None else ({}, {})
    shown = {name: f"{name} {words[name]}" if name in words else name for name in synsets}
    others = {shown[name]: [name, words.get(name, name)] for name in synsets}
    chosen = set(choose(found, sorted(shown.values()), classes, others))
    synsets = [name for name in synsets if shown[name] in chosen]
    val = {entry.name: is_folder(entry) for entry in entries(found, "val")}
    if any(val.values()):
        if loose := next((name for name, folder in val.items() if not folder and _VALIDATION.fullmatch(name)), None):
            raise BadInput(f"{where}/val: has folders and files such as {loose}: expected one of the two")
        _parts(found, "train", "val", synsets)
        assert found.test is not None
    else:
        if devkit is None:
            kits = " or ".join(_DEVKITS)
            raise BadInput(f"{where}: val has no folders: expected {_TRUTH} and {_META} in {kits}")
        found.train = {name: image_files(found, f"train/{name}") for name in synsets}
        found.test = _validation(found, devkit / _TRUTH, numbers, synsets)
    found.train = {shown[name]: files for name, files in found.train.items()}
    found.test = {shown[name]: files for name, files in found.test.items()}


def _synsets(path: Path) -> tuple[dict[int, str], dict[str, str]]:
    """Return the synset of each ILSVRC2012_ID, and the first word of each synset, which others may have too."""
    from scipy.io import loadmat

    try:
        rows: Any = loadmat(path, squeeze_me=True)["synsets"]
        numbers = {int(row["ILSVRC2012_ID"]): str(row["WNID"]) for row in rows}
        words = {str(row["WNID"]): str(row["words"]).split(",")[0].strip() for row in rows}
    # scipy raises whatever it stumbles over.
    except Exception as error:
        raise BadInput(f"{printable(str(path))}: no table of synsets: {type(error).__name__}: {error}") from None
    return numbers, words


def _validation(found: Found, truth: Path, numbers: dict[int, str], synsets: list[str]) -> Files:
    """Return the flat validation files of those synsets, by the devkit's ground truth: a line for each, in their order."""
    try:
        lines = [int(line) for line in truth.read_text(encoding="ascii").split()]
    except (OSError, ValueError) as error:
        raise BadInput(f"{printable(str(truth))}: no numbers of synsets, one a line: {error}") from None
    files: Files = {name: [] for name in synsets}
    for path in image_files(found, "val"):
        named = _VALIDATION.fullmatch(path.removeprefix("val/"))
        if named is None:
            found.leave_out(path, "not named ILSVRC2012_val_NNNNNNNN.JPEG")
            continue
        number = int(named[1])
        synset = numbers.get(lines[number - 1]) if 0 < number <= len(lines) else None
        if synset is None:
            raise BadInput(
                f"{printable(str(found.folder / path))}: {truth.name} of {len(lines)} lines has no synset for it"
            )
        if synset in files:
            files[synset].append(path)
    return files


def _sees_imagenet(folder: Path, top: dict[str, bool]) -> bool:
    return top.get("train", False) and any(
        _SYNSET.fullmatch(entry.name) for entry in entries(Found(folder=folder), "train")
    )


# Whether a folder with these entries, of which True are folders, looks like a layout; what is none of these has class folders.
_SEES: dict[str, Callable[[Path, dict[str, bool]], bool]] = {
    "intel-scenes": lambda folder, top: top.get("seg_train", False) or top.get("seg_test", False),
    "imagenet": _sees_imagenet,
    "openimages": _open_images.sees,
}
_READS: dict[str, Callable[[Found, Choice], None]] = {
    "class-folders": _class_folders,
    "intel-scenes": _scenes,
    "imagenet": _imagenet,
    "openimages": _open_images.read,
}
