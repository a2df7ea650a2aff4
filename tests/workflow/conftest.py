"""A folder for the studies of one test module, and the study that the files test_shared_*.py read.

Those files belong to one worker: each that runs one of them runs the shared study once.
"""

from __future__ import annotations

import pytest

from checkouts import Checkout, Place
from framework_rows import EVERY, ON_ONE_MACHINE
from shared_parts import write_shared_study


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A folder in which a module's studies run with the repository's own sources."""
    return Place(tmp_path_factory.mktemp("place") / "studies")


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Checkout:
    """A checkout in which Snakemake has run the shared study; who edits anything puts it back."""
    checkout = Checkout(tmp_path_factory.mktemp("shared") / "transect")
    rows = EVERY if pytestconfig.getoption("--exhaustive") else ON_ONE_MACHINE
    study = write_shared_study(checkout.folder, rows)
    # The first run compiles Horovod three times.
    run = checkout.snakemake("--config", f"study={study.name}", timeout=7000)
    assert run.returncode == 0, run.stdout + run.stderr
    return checkout
