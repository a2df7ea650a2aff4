"""What the datasets bundled with scikit-learn share."""

from __future__ import annotations

from pathlib import Path


def bundled_file(name: str) -> Path:
    """Return the path of a data file inside scikit-learn."""
    from sklearn import datasets

    return Path(datasets.__file__).parent / "data" / name
