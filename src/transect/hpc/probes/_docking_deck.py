"""Decks of the docking kernel: a ligand, a protein, a force field and poses, read or drawn.

The files are those of miniBUDE (Poenaru, Lin and McIntosh-Smith, "A performance analysis of modern
parallel programming models using a compute-bound application", ISC High Performance 2021): packed
little-endian records of four 4-byte numbers, and poses as six rows of float32.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

ATOM = np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("kind", "<i4")])
KIND = np.dtype([("bond", "<i4"), ("radius", "<f4"), ("hydrophobic", "<f4"), ("charge", "<f4")])
POSE_ROWS = 6  # three angles in radians about x, y and z, then a shift in the unit of the atoms
FILES = ("ligand.in", "protein.in", "forcefield.in", "poses.in")
ENERGIES = "ref_energies.out"
SEED = 20260101
# What the published deck `bm1` holds, so that a synthetic one is as much work per pose.
_LIGAND_ATOMS, _PROTEIN_ATOMS, _KINDS = 26, 938, 34
# Atoms of ligand and protein: next to no work, what fits the nearest cache, what the published deck holds, and sixteen
# times as many pairs.
SIZES = {"tiny": (1, 4), "small": (8, 128), "medium": (_LIGAND_ATOMS, _PROTEIN_ATOMS), "large": (104, 3752)}
MAGIC = b"TDECK 1\n"
ROW = 8  # constants of a pair, and a pad to 32 bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Deck:
    """One problem. `poses` has the shape (6, n) and float32, `energies` (n,) or is None."""

    name: str
    ligand: np.ndarray
    protein: np.ndarray
    kinds: np.ndarray
    poses: np.ndarray
    energies: np.ndarray | None
    checksum: str

    def first(self, count: int) -> Deck:
        """Return the deck with its first `count` poses. Raises ValueError when it has fewer."""
        have = self.poses.shape[1]
        if not 1 <= count <= have:
            raise ValueError(f"{count} poses were asked for, the deck '{self.name}' holds {have}")
        return Deck(
            name=self.name,
            ligand=self.ligand,
            protein=self.protein,
            kinds=self.kinds,
            poses=np.ascontiguousarray(self.poses[:, :count]),
            energies=None if self.energies is None else self.energies[:count],
            checksum=self.checksum,
        )


def _records(path: Path, dtype: np.dtype[Any]) -> np.ndarray:
    size = path.stat().st_size
    if size == 0 or size % dtype.itemsize:
        raise ValueError(f"{path.name} has {size} bytes, expected a multiple of {dtype.itemsize} and not none")
    return np.fromfile(path, dtype)


def _energies(path: Path) -> np.ndarray | None:
    if not path.is_file():
        return None
    try:
        return np.array([float(line) for line in path.read_text("ascii").split()])
    except ValueError as error:
        raise ValueError(f"{path.name}: every line has to be one number: {error}") from None


def read_deck(folder: Path) -> Deck:
    """Read a deck; `ref_energies.out` may be missing.

    Raises FileNotFoundError when a file is missing, ValueError when one is cut, when an atom names
    a kind that the force field does not hold, when a number is not finite or a radius not positive.
    """
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise FileNotFoundError(f"the deck {folder} lacks {', '.join(missing)}")
    poses = _records(folder / "poses.in", np.dtype("<f4"))
    if poses.size % POSE_ROWS:
        raise ValueError(f"poses.in holds {poses.size} numbers, expected a multiple of {POSE_ROWS}")
    rows = poses.reshape(POSE_ROWS, -1)
    energies = _energies(folder / ENERGIES)
    if energies is not None and energies.size != rows.shape[1]:
        raise ValueError(f"{ENERGIES} holds {energies.size} energies for {rows.shape[1]} poses")
    # So that a log tells which deck it was, wherever that lay.
    whole = hashlib.sha256(b"".join((folder / name).read_bytes() for name in FILES))
    deck = Deck(
        name=folder.name,
        ligand=_records(folder / "ligand.in", ATOM),
        protein=_records(folder / "protein.in", ATOM),
        kinds=_records(folder / "forcefield.in", KIND),
        poses=rows,
        energies=energies,
        checksum=whole.hexdigest()[:16],
    )
    _check(deck)
    return deck


def _check(deck: Deck) -> None:
    for name, atoms in (("ligand.in", deck.ligand), ("protein.in", deck.protein)):
        low, high = int(atoms["kind"].min()), int(atoms["kind"].max())
        if low < 0 or high >= len(deck.kinds):
            raise ValueError(f"{name} names the kinds {low} to {high}, forcefield.in has {len(deck.kinds)}")
        if not all(np.isfinite(atoms[axis]).all() for axis in "xyz"):
            raise ValueError(f"{name} holds a position that is not finite")
    for key in ("radius", "hydrophobic", "charge"):
        if not np.isfinite(deck.kinds[key]).all():
            raise ValueError(f"forcefield.in holds a {key} that is not finite")
    if not (deck.kinds["radius"] > 0).all():
        raise ValueError("forcefield.in holds a radius that is not positive")
    if not np.isfinite(deck.poses).all():
        raise ValueError("poses.in holds a number that is not finite")
    if deck.energies is not None and not np.isfinite(deck.energies).all():
        raise ValueError(f"{ENERGIES} holds an energy that is not finite")


def synthetic_deck(
    poses: int,
    *,
    ligand_atoms: int = _LIGAND_ATOMS,
    protein_atoms: int = _PROTEIN_ATOMS,
    kinds: int = _KINDS,
    seed: int = SEED,
) -> Deck:
    """Draw a deck with the ranges of the published one and no reference energies.

    Equal seeds give equal decks, and more poses begin with the same ones.
    """
    rng = np.random.default_rng(seed)
    ligand, protein = (np.zeros(n, ATOM) for n in (ligand_atoms, protein_atoms))
    for atoms, reach in ((ligand, 6.0), (protein, 20.0)):
        for axis in "xyz":
            atoms[axis] = rng.uniform(-reach, reach, len(atoms))
        atoms["kind"] = rng.integers(0, kinds, len(atoms))
    field = np.zeros(kinds, KIND)
    field["bond"] = rng.choice([45, 68, 69, 70], kinds)
    field["radius"] = rng.uniform(1.4, 2.1, kinds)
    field["hydrophobic"] = rng.uniform(-0.8, 2.6, kinds) * (rng.random(kinds) < 0.85)
    field["charge"] = rng.uniform(-1.0, 1.0, kinds) * (rng.random(kinds) < 0.7)
    # Pose by pose, so that a larger deck holds the smaller one.
    drawn = rng.uniform(-1.0, 1.0, (poses, POSE_ROWS)) * ([np.pi] * 3 + [7.0] * 3)
    deck = Deck(
        name="synthetic",
        ligand=ligand,
        protein=protein,
        kinds=field,
        poses=np.ascontiguousarray(drawn.T.astype(np.float32)),
        energies=None,
        checksum=f"seed {seed}",
    )
    _check(deck)
    return deck


def sized_deck(size: str, poses: int) -> Deck:
    """Draw the deck of that name in SIZES."""
    ligand, protein = SIZES[size]
    return replace(synthetic_deck(poses, ligand_atoms=ligand, protein_atoms=protein), name=size)


def write_prepared(deck: Deck, table: np.ndarray, path: Path) -> None:
    """Write what the programs read: docs/docking.md. `table` is (kinds, kinds, 7), of any float."""
    padded = np.zeros((*table.shape[:2], ROW), "<f4")
    padded[..., : table.shape[2]] = table
    counts = (len(deck.ligand), len(deck.protein), len(deck.kinds), deck.poses.shape[1])
    parts = [MAGIC, np.array(counts, "<i4").tobytes()]
    for atoms in (deck.ligand, deck.protein):
        parts += [np.array([atoms[axis] for axis in "xyz"], "<f4").tobytes()]
        parts += [atoms["kind"].astype("<i4").tobytes()]
    path.write_bytes(b"".join([*parts, padded.tobytes(), deck.poses.astype("<f4").tobytes()]))
