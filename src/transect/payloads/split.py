"""One split of a corpus.

Leaves `parts.npz`: sorted int64 rows of `train`, `validation`, `test`, `inference` and `on_device`, empty where
the rule gives no share, and of `client-0` …, into which `on_device` is cut; and `result.json`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.errors import BadInput
from transect.onnx_models.results import result, versions
from transect.text.lines import write_arrays
from transect.text.splitters import SPLITTERS, Rows

PARTS = ("train", "validation", "test", "inference", "on_device")


def run(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Deal the tickets of one cell out; return its result."""
    return result(details=deal(spec, folders, out), libraries=versions("numpy"))


def deal(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Write the parts of one cell into `out`; return the details of its record.

    Raises BadInput for a share that holds no ticket, and for what the splitter misses.
    """
    rule = spec["rule"]
    rows = Rows(*(np.load(folders["corpus"] / f"{name}.npy") for name in ("labels", "times", "owners")))
    shares = {part: rule[part] for part in PARTS if rule[part]}
    generator = np.random.default_rng(spec["seed"])
    found = SPLITTERS.get(rule["by"]).parts(rows, shares, generator)
    taken = np.concatenate([*found.values()])
    if len(np.unique(taken)) != len(taken) or (len(taken) and not 0 <= taken.min() <= taken.max() < len(rows.labels)):
        # A ticket that trains and tests would make every accuracy wrong.
        raise BadInput(f"splitter '{rule['by']}' gives a ticket twice, or one that is not there")
    parts = {part: found.get(part, np.empty(0, np.int64)) for part in PARTS}
    if empty := [part for part in shares if not len(parts[part])]:
        raise BadInput(
            f"tickets.splits: of {len(rows.labels)} tickets, {shares[empty[0]]:g} for "
            f"{empty[0]} is none: expected at least one"
        )
    if rule["clients"] > len(parts["on_device"]):
        raise BadInput(
            f"tickets.splits: {rule['clients']} clients, and {len(parts['on_device'])} tickets "
            "for devices: expected at least one each"
        )
    if rule["clients"]:
        # In the splitter's order: what lies together there comes to the same client.
        pieces = np.array_split(parts["on_device"], rule["clients"])
        parts |= {f"client-{number}": piece for number, piece in enumerate(pieces)}
    parts = {part: np.sort(taken).astype(np.int64) for part, taken in parts.items()}
    write_arrays(out / "parts.npz", parts)
    return facts(rows, parts)


def facts(rows: Rows, parts: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return what can be said of each part that is not empty.

    `balance`: the total variation distance of its classes to those of all tickets. `unseen`: the
    share of its tickets whose class does not train. `owners`: how many it has. `times`: its first
    and last second since 1970, where all are known.
    """
    labels, owners, times = rows.labels, rows.owners, rows.times
    classes = int(labels.max(initial=-1)) + 1
    whole = np.bincount(labels, minlength=classes) / max(1, len(labels))
    trained = np.unique(labels[parts["train"]])
    found: dict[str, dict[str, Any]] = {key: {} for key in ("sizes", "balance", "unseen", "owners", "times")}
    for part, taken in parts.items():
        found["sizes"][part] = len(taken)
        if not len(taken):
            continue
        shares = np.bincount(labels[taken], minlength=classes) / len(taken)
        found["balance"][part] = float(np.abs(shares - whole).sum() / 2)
        found["unseen"][part] = float(1 - np.isin(labels[taken], trained).mean())
        found["owners"][part] = len(np.unique(owners[taken][owners[taken] >= 0]))
        if not np.isnan(times[taken]).any():
            found["times"][part] = [float(times[taken].min()), float(times[taken].max())]
    return {**found, "tickets": len(labels), "left_over": len(labels) - sum(len(parts[p]) for p in PARTS)}
