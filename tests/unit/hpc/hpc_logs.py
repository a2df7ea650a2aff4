"""Logs of HPL, HPCC, STREAM and our probes as the tests of their parsers need them."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / "data" / "hpc"


HPL = (DATA / "hpl-2.0-netlib.txt").read_text()


HPCC = (DATA / "hpcc-1.5.0-two-ranks.txt").read_text()


MEMORY = (DATA / "memory-bandwidth-probe.txt").read_text()


MATRIX = (DATA / "matrix-multiply-probe.txt").read_text()


# The form of stream.c 5.10: 8 bytes, 10^7 elements; 2 x 80 MB in 8 ms are 20 GB/s.
STREAM = """\
-------------------------------------------------------------
STREAM version $Revision: 5.10 $
-------------------------------------------------------------
This system uses 8 bytes per array element.
-------------------------------------------------------------
Array size = 10000000 (elements), Offset = 0 (elements)
Each kernel will be executed 10 times.
Number of Threads requested = 2
Number of Threads counted = 2
-------------------------------------------------------------
Function    Best Rate MB/s  Avg time     Min time     Max time
Copy:           20000.0     0.008100     0.008000     0.009000
Scale:          16000.0     0.010100     0.010000     0.011000
Add:            24000.0     0.010100     0.010000     0.011000
Triad:          24000.0     0.010100     0.010000     0.011000
-------------------------------------------------------------
Solution Validates: avg error less than 1.000000e-13 on all three arrays
-------------------------------------------------------------
"""


LOGS = {"hpl": HPL, "stream": STREAM, "hpcc": HPCC, "memory-bandwidth-probe": MEMORY, "matrix-multiply-probe": MATRIX}
