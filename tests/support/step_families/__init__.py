"""Families of networks that people train, and whether the portable step takes them and agrees with PyTorch."""

from __future__ import annotations

from step_families import classification, language, layers, timm_families
from step_families.case import CASES, Case, Example

__all__ = ["CASES", "Case", "Example", "classification", "language", "layers", "timm_families"]
