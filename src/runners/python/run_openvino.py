"""ONNX Runtime from Python with OpenVINO's execution provider, under the runner contract."""

from __future__ import annotations

import sys

from contract import run_program
from run import open_engine

if __name__ == "__main__":
    sys.exit(run_program("python-openvino", open_engine, modes=("latency", "load", "cases")))
