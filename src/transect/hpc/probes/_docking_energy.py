"""The docking energy of the BUDE force field: its definition, its constants, its count of work.

The energy of a pose is half the sum over all pairs of a ligand and a protein atom of a steric, a
charge and a desolvation term (McIntosh-Smith, Price, Sessions and Ibarra, "High performance in
silico virtual drug screening on many-core processors", IJHPCA 29, 2015). `definition` follows the
cases of that text. The kernels use that each case is a line in the distance, cut off at 0 and 1:
with d the distance, r the sum of the radii, c the reach of a term and s its strength

    steric  76 max(0, 1 - d/r)         other  s min(1, max(0, 1 - (d - r)/c))

so a pair of kinds has seven constants, and no case remains in the inner loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.hpc.probes._docking_deck import Deck

BLOCK = 256  # poses that share the constants of a pair: miniBUDE's "poses per work-item"
CONSTANTS = 7
_HARDNESS, _CHARGE = 38.0, 45.0
_REACH_FORMAL, _REACH_NEAR = 4.0, 2.0  # of charges
_REACH_NONPOLAR, _REACH_POLAR = 5.5, 1.0  # of desolvation
_BOND_FORMAL, _BOND_EITHER = 70, 69


def operations(poses: int, ligand_atoms: int, protein_atoms: int, per_item: int) -> float:
    """Count floating-point operations as miniBUDE 2 does, with `per_item` poses per work-item.

    >>> operations(1, 1, 1, 1)
    88.0
    """
    pair = 10 + 30 * per_item
    atom = 2 + 18 * per_item + protein_atoms * pair
    return (27 * per_item + ligand_atoms * atom + per_item) * poses / per_item


def rotation(angles: np.ndarray) -> np.ndarray:
    """Return (3, 3, n) matrices that turn about x, then y, then z; `angles` is (3, n)."""
    (sx, sy, sz), (cx, cy, cz) = np.sin(angles), np.cos(angles)
    return np.array(
        [
            [cy * cz, sx * sy * cz - cx * sz, cx * sy * cz + sx * sz],
            [cy * sz, sx * sy * sz + cx * cz, cx * sy * sz - sx * cz],
            [-sy, sx * cy, cx * cy],
        ]
    )


def positions(atoms: np.ndarray, dtype: Any) -> np.ndarray:
    return np.array([atoms[axis] for axis in "xyz"], dtype)


def definition(deck: Deck, which: np.ndarray) -> np.ndarray:
    """Return the energies of the poses `which`, in float64 and case by case: the oracle."""
    ligand, protein = deck.kinds[deck.ligand["kind"]], deck.kinds[deck.protein["kind"]]
    wide = {
        key: (ligand[key].astype(float)[:, None], protein[key].astype(float)[None, :])
        for key in ("radius", "hydrophobic", "charge")
    }
    lbond, pbond = ligand["bond"][:, None], protein["bond"][None, :]
    radii = wide["radius"][0] + wide["radius"][1]
    reach = np.where((lbond == _BOND_FORMAL) & (pbond == _BOND_FORMAL), _REACH_FORMAL, _REACH_NEAR)
    attracts = (lbond == _BOND_EITHER) | (pbond == _BOND_EITHER)
    lphobic, pphobic = wide["hydrophobic"]
    near = np.where(
        (lphobic < 0) & (pphobic < 0), _REACH_NONPOLAR, np.where((lphobic < 0) | (pphobic < 0), _REACH_POLAR, -np.inf)
    )
    # A nonpolar atom (negative) beside a polar one (positive) counts as repelled by it.
    strength = np.where((pphobic < 0) & (lphobic > 0), -pphobic, pphobic) + np.where(
        (pphobic > 0) & (lphobic < 0), -lphobic, lphobic
    )
    energies = np.empty(len(which))
    for index, pose in enumerate(which):
        transform = deck.poses[:, pose].astype(float)
        turned = rotation(transform[:3, None])[:, :, 0] @ positions(deck.ligand, float)
        apart = (turned + transform[3:, None])[:, :, None] - positions(deck.protein, float)[:, None, :]
        distance = np.sqrt((apart**2).sum(axis=0))
        beyond = distance - radii
        touching = beyond < 0
        steric = np.where(touching, (1 - distance / radii) * 2 * _HARDNESS, 0.0)
        charge = wide["charge"][0] * wide["charge"][1] * _CHARGE
        charge = charge * np.where(touching, 1.0, 1 - beyond / reach) * (beyond < reach)
        charge = np.where(attracts, -np.abs(charge), charge)
        solvation = strength * np.where(touching, 1.0, 1 - beyond / near)
        solvation = np.where((beyond < near) & (pphobic != 0), solvation, 0.0)
        energies[index] = 0.5 * (steric + charge + solvation).sum()
    return energies


def constants(kinds: np.ndarray) -> np.ndarray:
    """Return (kinds, kinds, 7) float64, by the kind of a ligand atom, then of a protein atom.

    In this order: 1/r of the steric term; strength, 1 + r/c and 1/c of the charge term; the same of
    the desolvation term, all zero where there is none.
    """
    left, right = kinds[:, None], kinds[None, :]
    radii = left["radius"].astype(float) + right["radius"]
    table = np.zeros((len(kinds), len(kinds), CONSTANTS))
    table[..., 0] = 1 / radii

    charge = _CHARGE * left["charge"].astype(float) * right["charge"]
    either = (left["bond"] == _BOND_EITHER) | (right["bond"] == _BOND_EITHER)
    formal = (left["bond"] == _BOND_FORMAL) & (right["bond"] == _BOND_FORMAL)
    reach = np.where(formal, _REACH_FORMAL, _REACH_NEAR)
    table[..., 1] = np.where(either, -np.abs(charge), charge)
    table[..., 2], table[..., 3] = 1 + radii / reach, 1 / reach

    a, b = (side["hydrophobic"].astype(float) for side in (left, right))
    reach = np.where((a < 0) & (b < 0), _REACH_NONPOLAR, _REACH_POLAR)
    # Opposite signs repel: the negative one counts as positive.
    strength = np.where(a * b < 0, np.abs(a) + np.abs(b), a + b)
    some = ((a < 0) | (b < 0)) & (b != 0)
    table[..., 4] = np.where(some, strength, 0.0)
    table[..., 5] = np.where(some, 1 + radii / reach, 0.0)
    table[..., 6] = np.where(some, 1 / reach, 0.0)
    return table


def largest_difference(energies: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest relative difference; infinite when an energy is not finite.

    As in miniBUDE, pairs with both below 1 are left out. miniBUDE divides by the signed energy,
    which passes anything whose reference is negative; here the sign does not matter.
    """
    if not np.isfinite(energies).all():
        return float("inf")
    large = (np.abs(energies) >= 1) | (np.abs(expected) >= 1)
    if not large.any():
        return 0.0
    scale = np.abs(expected[large])
    with np.errstate(divide="ignore"):
        return float((np.abs(energies[large].astype(float) - expected[large]) / scale).max())
