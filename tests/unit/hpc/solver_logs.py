"""Logs of HPL-MxP and HPCG as the tests of their parsers need them."""

from __future__ import annotations

import re

from log_scan import made

# N = 40960 is 45815.5 GFLOP; 0.5 s of factorisation and 1 s of refinement.
MXP = made("mxp")


MXP_REFERENCE = made("mxp-reference")


MXP_OLD_REFERENCE = made("mxp-old-reference")


MXP_RIKEN = made("mxp-riken")


MXP_AMD = made("mxp-amd")


# 128 x 64 x 64 rows, 3 sets of 52 iterations against 50 of the reference.
HPCG = made("hpcg")


def as_yaml(text: str) -> str:
    """Write a report as version 3.0 did."""
    text = text.replace("HPCG-Benchmark\nversion=3.1", "HPCG-Benchmark version: 3.0")
    text = text.replace("Final Summary=\n", "__________ Final Summary __________=\n")
    text = re.sub(r"(?m)^.*::([^:=]+)=", r"  \1: ", text)
    return re.sub(r"(?m)^(\S[^:\n]*)=(.*)$", r"\1: \2", text)


HPCG_YAML = as_yaml(HPCG)


HPCG_INTEL = "HPCG result is VALID with a GFLOP/s rating of 1.359321\n" + re.sub(
    r"(?m)^Final Summary", " Final Summary ", HPCG
).replace("HPCG-Benchmark\nversion=3.1", "n64-2p-4t\nversion=V3.1")


HPCG_2017 = made("hpcg-2017")


HPCG_AMD = made("hpcg-amd")
