"""ONNX Runtime training 1.19.2 under the runner contract; artefacts from the TorchScript exporter."""

from __future__ import annotations

import sys

from run import run_exporter

if __name__ == "__main__":
    sys.exit(run_exporter("ort-training-torchscript", "torchscript"))
