"""A small deck and its runs, for the tests of docking."""

from __future__ import annotations

import io
from functools import partial

from factories import bench_cell
from transect.hpc.base import Run
from transect.hpc.probes import _docking_deck as decks
from transect.hpc.scan import Scanner

docking_cell = partial(bench_cell, "docking-probe")

SMALL = {"ligand_atoms": 5, "protein_atoms": 40, "kinds": 9}


def small(poses: int = 20, seed: int = 3) -> decks.Deck:
    return decks.synthetic_deck(poses, seed=seed, **SMALL)


def scan(text: str) -> list[Run]:
    return list(Scanner().scan(io.BytesIO(text.encode()), "log"))
