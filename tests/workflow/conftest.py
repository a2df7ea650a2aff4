"""A folder for the studies of one test module, and the study that the files test_shared_*.py read.

Those files belong to one worker: each that runs one of them runs the shared study once. Where nobody reads more than
the rows of frameworks, no more of it runs.
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
def shared(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Checkout:
    """A checkout in which Snakemake has run the shared study; who edits anything puts it back."""
    checkout = Checkout(tmp_path_factory.mktemp("shared") / "transect")
    rows = EVERY if request.config.getoption("--exhaustive") else ON_ONE_MACHINE
    readers = {
        item.path.stem
        for item in request.session.items
        if isinstance(item, pytest.Function) and "shared" in item.fixturenames
    }
    rows_only = readers == {"test_shared_framework_rows"}
    study = write_shared_study(checkout.folder, rows, rows_only=rows_only)
    # The first run compiles Horovod three times.
    run = checkout.snakemake("--config", f"study={study.name}", timeout=7000)
    assert run.returncode == 0, run.stdout + run.stderr
    return checkout
