"""Two ranks that pass arrays through lanes, rightly and wrongly; rank 1 prints what it saw as JSON."""

from __future__ import annotations

import json

import numpy as np
from mpi4py import MPI

from transect.training.strategies._lanes import Lane, Outbox
from transect.training.strategies._progress import Progress

WORLD = MPI.COMM_WORLD
KINDS = [(kind, sleeps) for kind in ("none", "test", "thread") for sleeps in (False, True)]


def right(kind: str, sleeps: bool) -> list[bool]:
    """Five micro-batches of uneven sizes through two buffers, twice; large ones do not go at once."""
    progress, sizes = Progress(kind, sleeps=sleeps), [3, 3, 2, 2, 2]
    fine = []
    for step in range(2):
        if WORLD.rank == 0:
            out = Outbox(progress, WORLD, 1, 0)
            for i, size in enumerate(sizes):
                out.send(i, np.full((size, 50_000), 10 * step + i, np.float32))
            for i in range(5):
                out.sent(i)
        else:
            lane = Lane(progress, WORLD, 0, 0, 2, (50_000,), np.dtype(np.float32))
            lane.open(sizes)
            for i, size in enumerate(sizes):
                array = lane.take(i)
                fine.append(array.shape == (size, 50_000) and bool((array == 10 * step + i).all()))
                lane.release(i)
        progress.finish_step()
    progress.close()
    return fine


def wrong(width: int) -> str:
    """One array of another width than the lane's 4."""
    progress, message = Progress("none"), ""
    if WORLD.rank == 0:
        WORLD.Isend(np.zeros((3, width)), dest=1, tag=1).Wait()
    else:
        lane = Lane(progress, WORLD, 0, 1, 1, (4,), np.dtype(np.float64))
        lane.open([3])
        try:
            lane.take(0)
        except RuntimeError as error:
            message = str(error)
    WORLD.Barrier()
    return message


found = {"right": [right(*kind) for kind in KINDS], "wrong": [wrong(3), wrong(5)]}
if WORLD.rank == 1:
    print(json.dumps(found))
