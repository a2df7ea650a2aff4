"""A small deck and its runs, for the tests of docking."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from factories import bench_cell
from transect.hpc.probes import _docking_deck as decks

docking_cell = partial(bench_cell, "docking-probe")

SMALL = {"ligand_atoms": 5, "protein_atoms": 40, "kinds": 9}


def small(poses: int = 20, seed: int = 3) -> decks.Deck:
    return decks.synthetic_deck(poses, seed=seed, **SMALL)


def write_deck(deck: decks.Deck, folder: Path) -> None:
    """Write the files of a deck into an existing folder; energies with four decimals."""
    arrays = (deck.ligand, deck.protein, deck.kinds, deck.poses)
    for name, array in zip(decks.FILES, arrays, strict=True):
        (folder / name).write_bytes(array.tobytes())
    if deck.energies is not None:
        (folder / decks.ENERGIES).write_text("".join(f"{value:.4f}\n" for value in deck.energies))
