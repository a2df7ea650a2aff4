"""ONNX models: exporters, and the numeric check that stands behind every exported file."""
