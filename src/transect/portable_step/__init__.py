"""A training step as one ordinary ONNX file: docs/portable-training-step.md."""

from __future__ import annotations

from transect.portable_step.export import Step, export_step
from transect.portable_step.manifest import Manifest, read_manifest
from transect.portable_step.state import read_state, transfer, write_state

__all__ = ["Manifest", "Step", "export_step", "read_manifest", "read_state", "transfer", "write_state"]
