"""Rows of a table: CSV, Parquet, or what Hugging Face's `datasets` saves, with a column for the target."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.errors import BadInput, unknown_name
from transect.training.datasets import DATASETS, Samples
from transect.training.datasets.arrays import Arrays, samples_of

# What `Dataset.save_to_disk` and `DatasetDict.save_to_disk` leave.
SAVED = ("dataset_info.json", "dataset_dict.json")


@DATASETS.register("table")
class Table(Arrays):
    """`target` names the column of classes, `features` those of the sample, otherwise all others.

    Several columns of numbers are a sample together. One column may hold lists, which are arrays, or images.
    """

    option_names = ("path", "target", "features")
    environment = "torch"

    def load(self, options: dict[str, Any]) -> Samples:
        """Read all rows. Raises BadInput naming file and column."""
        path = Path(options["path"])
        parts = {name: _read(part) for name, part in _parts(path).items()}
        arrays: dict[str, np.ndarray] = {}
        names: dict[str, int] = {}
        for name, table in parts.items():
            x, y = _columns(table, options, path)
            arrays[f"x{name}"], arrays[f"y{name}"] = x, y
            names |= dict.fromkeys(sorted(set(y.tolist()))) if y.dtype.kind == "U" else {}
        if names:
            names = {name: number for number, name in enumerate(sorted(names))}
            arrays |= {key: np.array([names[n] for n in y.tolist()]) for key, y in arrays.items() if key[0] == "y"}
            arrays["classes"] = np.array(list(names))
        return samples_of(arrays, path, path.name)


def _parts(path: Path) -> dict[str, Path]:
    """Return the file or folder of each part: of a whole one by an empty name."""
    if not (path / "dataset_dict.json").is_file():
        return {"": path}
    found = {part.name: part for part in sorted(path.iterdir()) if part.is_dir()}
    if found.keys() != {"train", "test"}:
        raise BadInput(f"{path}: holds the parts {', '.join(found) or 'nothing'}: expected train and test")
    return {f"_{name}": part for name, part in found.items()}


def _read(path: Path) -> Any:
    """Return a pyarrow table. Raises BadInput where it is none."""
    import pyarrow as pa
    from pyarrow import csv, ipc, parquet

    try:
        if path.is_dir():
            return pa.concat_tables([ipc.open_stream(pa.memory_map(str(file))).read_all() for file in _shards(path)])
        return parquet.read_table(path) if path.suffix == ".parquet" else csv.read_csv(path)
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"{path}: cannot be read as a table: {error}") from None


def _shards(folder: Path) -> list[Path]:
    """Return the files that a saved dataset says are its own: others are left of what was saved there before."""
    try:
        return [folder / each["filename"] for each in json.loads((folder / "state.json").read_bytes())["_data_files"]]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise BadInput(f"{folder}: `save_to_disk` leaves a state.json that names data files: {error!r}") from None


def _columns(table: Any, options: dict[str, Any], path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return x and y. Raises BadInput naming the column that cannot be used."""
    target, features = options.get("target"), options.get("features")
    known = table.column_names
    if target is None:
        raise BadInput(f"{path}: data_options.target: expected the column of classes, one of {', '.join(known)}")
    if isinstance(features, str):
        features = [features]
    features = features or [name for name in known if name != target]
    if not isinstance(features, list) or target in features:
        raise BadInput(f"{path}: data_options.features: expected columns besides the target {target}, got {features}")
    for name in map(str, (target, *features)):
        if known.count(name) != 1:
            raise unknown_name("column" if name not in known else "column that is there once", name, known, str(path))
    if not features:
        raise BadInput(f"{path}: has no column but {target}: expected features")
    columns = [_column(table.column(name), f"{path}: column {name}") for name in features]
    if len(columns) > 1 and any(column.ndim != 1 for column in columns):
        raise BadInput(f"{path}: columns {', '.join(features)}: expected numbers in each, or one column of lists")
    x = columns[0] if len(columns) == 1 and columns[0].ndim > 1 else np.stack(columns, axis=1).astype(np.float64)
    return x, _column(table.column(target), f"{path}: column {target}", text=True)


def _column(column: Any, where: str, *, text: bool = False) -> np.ndarray:
    """Return a column as an array. Raises BadInput for gaps, ragged lists and text, unless it may be text."""
    values = column.to_pylist()
    if any(value is None for value in values):
        raise BadInput(f"{where}: row {values.index(None)} is empty: expected a value in each")
    if values and isinstance(values[0], dict) and "bytes" in values[0]:
        values = [_pixels(value, where) for value in values]
    try:
        array = np.array(values)
    except ValueError:
        raise BadInput(f"{where}: its rows have different lengths or sizes") from None
    if array.dtype.kind == "U" and text and "" in values:
        raise BadInput(f"{where}: row {values.index('')} is empty: expected a value in each")
    if text and array.dtype.kind == "b":
        array = array.astype(np.int64)
    if array.dtype.kind not in ("iufbU" if text else "iufb"):
        kind = "text" if array.dtype.kind == "U" else str(column.type)
        raise BadInput(f"{where}: holds {kind}: expected numbers; name the others by data_options.features")
    return array


def _pixels(value: dict[str, Any], where: str) -> np.ndarray:
    """Decode an image as `datasets` keeps it: uint8 (channels, height, width)."""
    from PIL import Image

    try:
        pixels = np.asarray(Image.open(io.BytesIO(value["bytes"])))
    except (OSError, TypeError) as error:
        raise BadInput(f"{where}: an image cannot be decoded: {error}") from None
    return pixels[None] if pixels.ndim == 2 else np.moveaxis(pixels, 2, 0)
