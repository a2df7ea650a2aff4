"""A training step as one ordinary ONNX file: docs/portable-training-step.md."""
