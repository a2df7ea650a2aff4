"""Logs of HPL, HPCC, STREAM and our probes as the tests of their parsers need them."""

from __future__ import annotations

from pathlib import Path

from log_scan import made

DATA = Path(__file__).resolve().parents[3] / "config/studies/quick-logs"


HPL = (DATA / "hpl-2.0-netlib.txt").read_text()


HPCC = (DATA / "hpcc-1.5.0-two-ranks.txt").read_text()


MEMORY = (DATA / "memory-bandwidth-probe.txt").read_text()


MATRIX = (DATA / "matrix-multiply-probe.txt").read_text()


# The form of stream.c 5.10: 8 bytes, 10^7 elements; 2 x 80 MB in 8 ms are 20 GB/s.
STREAM = made("stream")


NETWORK = (DATA / "network-probe.txt").read_text()
# Of a real run some phases.
FILES = made("file-probe")
LOGS = {
    "hpl": HPL,
    "stream": STREAM,
    "hpcc": HPCC,
    "memory-bandwidth-probe": MEMORY,
    "matrix-multiply-probe": MATRIX,
    "network-probe": NETWORK,
    "lu-probe": made("lu-probe"),
    "cg-probe": made("cg-probe"),
}
