"""LAMB for PyTorch, which has none: what a step with LAMB is exported of."""

from __future__ import annotations

from transect.training.frameworks._torch_lamb import lamb_class

Lamb = lamb_class()
