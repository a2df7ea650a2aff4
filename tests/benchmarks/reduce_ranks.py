"""One rank of bench_reduce.py: `mpiexec -n RANKS python reduce_ranks.py KIBIBYTES…`.

The library's own reduction and ours by turns, on the same buffers; every sum is checked. Rank 0 prints
for each size a line of JSON with the slowest rank's seconds of each turn.
"""

from __future__ import annotations

import json
import sys
import time

# Group, bytes of a chunk, tree or chain above, inside of a group.
OURS = {
    "chain": {"group": 8, "chunk_bytes": 2**19, "upper": "tree", "inner": "chain"},
    "shared": {"group": 16, "chunk_bytes": 2**19, "upper": "tree", "inner": "shared"},
}
# A size is repeated so often, or so long.
MAX_COUNT, MAX_S = 30, 1.5


def main(kibibytes: list[int]) -> None:
    """Go through the sizes."""
    import numpy as np
    from mpi4py import MPI

    from transect.training.collectives import Hierarchy

    comm = MPI.COMM_WORLD
    # MPICH is a rival only: what ranks that never yield do to ours is not the question.
    ours = (
        {}
        if "MPICH" in MPI.Get_library_version()
        else {
            name: Hierarchy(comm.Dup(), **given)
            for name, given in OURS.items()  # type: ignore[arg-type]
        }
    )
    for size in kibibytes:
        flat = np.empty(size * 256, np.float32)

        def library(flat: np.ndarray = flat) -> None:
            sides = (MPI.IN_PLACE, flat) if comm.rank == 0 else (flat, None)
            comm.Reduce(*sides, op=MPI.SUM, root=0)

        runs = {"library": library} | {
            name: (lambda flat=flat, one=one: one.reduce(flat)) for name, one in ours.items()
        }
        times: dict[str, list[float]] = {name: [] for name in runs}
        begin = time.perf_counter()
        for turn in range(MAX_COUNT + 1):
            for name, run in runs.items():
                flat.fill(comm.rank + 1)
                comm.Barrier()
                started = time.perf_counter()
                run()
                seconds = comm.allreduce(time.perf_counter() - started, op=MPI.MAX)
                if comm.rank == 0 and not (flat == comm.size * (comm.size + 1) / 2).all():
                    raise RuntimeError(f"{name}: a wrong sum of {size} KiB")
                # The first turn maps memory and opens connections.
                if turn:
                    times[name].append(seconds)
            # All ranks must agree that it is enough.
            enough = turn > 1 and time.perf_counter() - begin > MAX_S
            if comm.bcast(enough):
                break
        if comm.rank == 0:
            print(json.dumps({"kibibytes": size, "times": times}), flush=True)
    comm.Barrier()
    for one in ours.values():
        one.free()
    MPI.Finalize()


if __name__ == "__main__":
    main([int(one) for one in sys.argv[1:]])
