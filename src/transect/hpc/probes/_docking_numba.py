"""The docking kernel in numba: blocks of poses in parallel, vectors over the poses of a block."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np

from transect.hpc.probes._docking_deck import Deck
from transect.hpc.probes._docking_energy import BLOCK, constants, positions

numba: Any = importlib.import_module("numba")

# Plain literals would be float64 and take the whole expression with them.
_ZERO, _ONE, _HALF, _STERIC = np.float32(0), np.float32(1), np.float32(0.5), np.float32(76)


def _energies(
    poses: Any, ligand: Any, ligand_kinds: Any, protein: Any, protein_kinds: Any, table: Any, out: Any
) -> None:
    count = poses.shape[1]
    for block in numba.prange((count + BLOCK - 1) // BLOCK):
        begin = block * BLOCK
        size = min(BLOCK, count - begin)
        turn = np.empty((9, BLOCK), np.float32)
        for i in range(size):
            a, b, c = poses[0, begin + i], poses[1, begin + i], poses[2, begin + i]
            sx, sy, sz = math.sin(a), math.sin(b), math.sin(c)
            cx, cy, cz = math.cos(a), math.cos(b), math.cos(c)
            turn[0, i], turn[1, i], turn[2, i] = (cy * cz, sx * sy * cz - cx * sz, cx * sy * cz + sx * sz)
            turn[3, i], turn[4, i], turn[5, i] = (cy * sz, sx * sy * sz + cx * cz, cx * sy * sz - sx * cz)
            turn[6, i], turn[7, i], turn[8, i] = -sy, sx * cy, cx * cy
        # Arrays of their own: rows of one array keep the compiler from telling them apart.
        x, y, z = (np.empty(BLOCK, np.float32), np.empty(BLOCK, np.float32), np.empty(BLOCK, np.float32))
        total = np.zeros(BLOCK, np.float32)
        for atom in range(ligand.shape[1]):
            u, v, w = ligand[0, atom], ligand[1, atom], ligand[2, atom]
            for i in range(size):
                x[i] = poses[3, begin + i] + turn[0, i] * u + turn[1, i] * v + turn[2, i] * w
                y[i] = poses[4, begin + i] + turn[3, i] * u + turn[4, i] * v + turn[5, i] * w
                z[i] = poses[5, begin + i] + turn[6, i] * u + turn[7, i] * v + turn[8, i] * w
            for protein_atom in range(protein.shape[1]):
                px, py, pz = protein[0, protein_atom], protein[1, protein_atom], protein[2, protein_atom]
                pair = table[ligand_kinds[atom], protein_kinds[protein_atom]]
                per_radii = pair[0]
                charge, charge_top, charge_slope = pair[1], pair[2], pair[3]
                solvation, solvation_top, solvation_slope = pair[4], pair[5], pair[6]
                for i in range(size):
                    dx, dy, dz = x[i] - px, y[i] - py, z[i] - pz
                    d = math.sqrt(dx * dx + dy * dy + dz * dz)
                    total[i] += (
                        _STERIC * max(_ZERO, _ONE - d * per_radii)
                        + charge * min(_ONE, max(_ZERO, charge_top - d * charge_slope))
                        + solvation * min(_ONE, max(_ZERO, solvation_top - d * solvation_slope))
                    )
        for i in range(size):
            out[begin + i] = _HALF * total[i]


class NumbaKernel:
    """Computes all energies of a deck in float32. The threads are OpenMP's where numba has it."""

    def __init__(self, deck: Deck, threads: int) -> None:
        """Set the number of threads; the caller has put NUMBA_NUM_THREADS in place.

        fastmath lets the compiler reorder sums and assume finite numbers: a deck holds no others.
        """
        numba.set_num_threads(threads)
        self._compiled = numba.njit(parallel=True, fastmath=True)(_energies)
        self.energies = np.full(deck.poses.shape[1], np.nan, np.float32)
        self._arguments = (
            np.ascontiguousarray(deck.poses),
            positions(deck.ligand, np.float32),
            np.ascontiguousarray(deck.ligand["kind"]),
            positions(deck.protein, np.float32),
            np.ascontiguousarray(deck.protein["kind"]),
            constants(deck.kinds).astype(np.float32),
        )
        self.name = f"numba {numba.__version__}"
        self.threading = "not started"

    def run(self) -> None:
        """Compute `energies` anew; the first call compiles."""
        self._compiled(*self._arguments, self.energies)
        self.threading = str(numba.threading_layer())

    def close(self) -> None:
        """Nothing to end."""
