"""ONNX Runtime from Python with OpenVINO's execution provider, under the runner contract."""

from __future__ import annotations

import sys

from main import run_program
from run import Plain

if __name__ == "__main__":
    sys.exit(run_program("python-openvino", Plain))
