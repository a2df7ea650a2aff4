"""Reduces integers by every hierarchy on the ranks of one start: `mpiexec -n RANKS python collective_runs.py`.

Rank 0 prints how many of how many buffers were not exactly what numpy says, over all ranks.
"""

from itertools import product

import numpy as np
from mpi4py import MPI

from transect.training.collectives import Hierarchy


def main() -> None:
    """Go through sizes, groups and chunks; the last chunk is often shorter, the last group smaller."""
    comm = MPI.COMM_WORLD.Dup()
    wrong = count = 0
    for size, group, inner, upper, chunk in product(
        (0, 1, 7, 1000), (1, 2, 3, 8, 99), ("chain", "shared"), ("tree", "chain"), (8, 96, 10**6)
    ):
        # Many chunks in few cases: on shared cores each costs a turn of every rank.
        if (size == 1000 and chunk == 8) or (inner == "shared" and size * 8 > 40 * chunk):
            continue
        dtype = np.float32 if group % 2 else np.float64
        hierarchy = Hierarchy(comm, group=group, chunk_bytes=chunk, upper=upper, inner=inner)
        arrays = [(rank + 1) * np.arange(size, dtype=dtype) + rank for rank in range(comm.size)]
        total = np.sum(arrays, axis=0)
        reduced, everywhere, spread = (arrays[comm.rank].copy() for _ in range(3))
        hierarchy.reduce(reduced)
        hierarchy.all_reduce(everywhere)
        hierarchy.broadcast(spread)
        if comm.rank == 0:
            wrong += not np.array_equal(reduced, total)
        wrong += not np.array_equal(everywhere, total)
        wrong += not np.array_equal(spread, arrays[0])
        # Of roundings: every rank has the same bits, whatever the order was.
        noise = np.random.default_rng(comm.rank).standard_normal(size).astype(dtype)
        hierarchy.all_reduce(noise)
        wrong += len(set(comm.allgather(noise.tobytes()))) != 1
        hierarchy.free()
        count += 4
    total_wrong = comm.reduce(wrong)
    if comm.rank == 0:
        print(total_wrong, "of", count)
    comm.Barrier()
    MPI.Finalize()


if __name__ == "__main__":
    main()
