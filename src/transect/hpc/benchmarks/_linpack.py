"""What HPL and HPC Challenge share: the process grid and the input file."""

from __future__ import annotations

import math

# Lines count, not names: HPL_pdinfo.c reads the first word of each, in this order.
_INPUT = """\
HPLinpack benchmark input file
written by transect
HPL.out      output file name (if any)
{device:<13}device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
{n:<13}Ns
1            # of NBs
{nb:<13}NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
{p:<13}Ps
{q:<13}Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
"""


def near_square(ranks: int) -> tuple[int, int]:
    """Return (P, Q) with P Q = `ranks`, P <= Q and P as large as that allows.

    HPL's guide (TUNING) wants P and Q about equal, Q slightly larger than P.
    """
    p = next(p for p in range(math.isqrt(ranks), 0, -1) if ranks % p == 0)
    return p, ranks // p


def linpack_input(*, n: int, nb: int, p: int, q: int, device: int) -> str:
    """Return the 31 lines of HPL.dat for one test; `device` 6 prints to standard output."""
    return _INPUT.format(n=n, nb=nb, p=p, q=q, device=device)
