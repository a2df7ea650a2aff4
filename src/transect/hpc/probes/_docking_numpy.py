"""The docking kernel in numpy: arrays of poses by protein atoms, one thread per chunk of poses."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from transect.hpc.probes._docking_deck import Deck
from transect.hpc.probes._docking_energy import constants, positions, rotation

CHUNK = 64  # poses: three float32 arrays of 64 by 938 fit into a cache of 1 MiB


class NumpyKernel:
    """Computes all energies of a deck with `threads` threads; numpy lets go of Python's lock."""

    def __init__(self, deck: Deck, threads: int, cpus: Sequence[int] | None, dtype: Any = np.float32) -> None:
        """Pin thread i to the i-th of `cpus`, unless that is None."""
        self._dtype = dtype
        self._poses: np.ndarray = deck.poses.astype(dtype)
        self._ligand, self._protein = positions(deck.ligand, dtype), positions(deck.protein, dtype)
        table: np.ndarray = constants(deck.kinds).astype(dtype)
        # (ligand atoms, 7, protein atoms): one row for each constant of one ligand atom.
        rows = table[deck.ligand["kind"]][:, deck.protein["kind"]]
        self._table = np.ascontiguousarray(rows.transpose(0, 2, 1))
        self.energies: np.ndarray = np.full(deck.poses.shape[1], np.nan, dtype)
        free = list(cpus or ())
        self._pool = ThreadPoolExecutor(
            threads, initializer=lambda: os.sched_setaffinity(0, {free.pop()}) if free else None
        )
        self.name = f"numpy {np.__version__}"
        self.threading = "one Python thread for each chunk in turn"

    def run(self) -> None:
        starts = range(0, self._poses.shape[1], CHUNK)
        for _ in self._pool.map(self._chunk, starts):
            pass

    def close(self) -> None:
        self._pool.shutdown()

    def _chunk(self, start: int) -> None:
        poses = self._poses[:, start : start + CHUNK]
        turn, shift = rotation(poses[:3]), poses[3:]
        shape = (poses.shape[1], self._protein.shape[1])
        distance: np.ndarray = np.empty(shape, self._dtype)
        scratch: np.ndarray = np.empty_like(distance)
        total: np.ndarray = np.zeros(shape[0], self._dtype)
        for atom, rows in zip(self._ligand.T, self._table, strict=True):
            place = np.einsum("ijk,j->ik", turn, atom) + shift
            np.subtract(place[0][:, None], self._protein[0], out=distance)
            np.square(distance, out=distance)
            for axis in (1, 2):
                np.subtract(place[axis][:, None], self._protein[axis], out=scratch)
                np.square(scratch, out=scratch)
                distance += scratch
            np.sqrt(distance, out=distance)
            np.multiply(distance, rows[0], out=scratch)
            np.subtract(1, scratch, out=scratch)
            np.maximum(scratch, 0, out=scratch)
            total += 76 * scratch.sum(axis=1)
            for strength, offset, slope in (rows[1:4], rows[4:7]):
                np.multiply(distance, slope, out=scratch)
                np.subtract(offset, scratch, out=scratch)
                np.clip(scratch, 0, 1, out=scratch)
                total += scratch @ strength
        self.energies[start : start + CHUNK] = total / 2
