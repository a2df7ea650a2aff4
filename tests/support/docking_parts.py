"""A small deck and its runs, for the tests of docking."""

from __future__ import annotations

import io

from transect.domain.cell import Cell
from transect.hpc.base import Run
from transect.hpc.probes import _docking_deck as decks
from transect.hpc.scan import Scanner

SMALL = {"ligand_atoms": 5, "protein_atoms": 40, "kinds": 9}


def small(poses: int = 20, seed: int = 3) -> decks.Deck:
    return decks.synthetic_deck(poses, seed=seed, **SMALL)


def scan(text: str) -> list[Run]:
    return list(Scanner().scan(io.BytesIO(text.encode()), "log"))


def cell(**axes: object) -> Cell:
    return Cell.of(stage="bench", benchmark="docking-probe", **axes)  # type: ignore[arg-type]
