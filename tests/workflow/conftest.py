"""A folder for the studies of one test module."""

from __future__ import annotations

import pytest

from checkouts import Place


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A folder in which a module's studies run with the repository's own sources."""
    return Place(tmp_path_factory.mktemp("place") / "studies")
