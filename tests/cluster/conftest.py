"""One cluster for a whole session, checkouts on it, and what runs there side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clustered import ClusterCheckout
from clusters import VirtualCluster, why_not
from side_by_side import SideBySide

# Whoever submits leaves the exact arguments behind; what Slurm refuses is asked again.
_SHIM = """#!/bin/sh
/usr/bin/sbatch "$@" || exit
for argument in "$@"; do printf '%s\\n' "$argument"; done >> {record}
printf -- '----\\n' >> {record}
"""
# Enough for all that runs side by side: no job waits for the nodes of another.
_NODES = 12
# What waits longest is asked for last: the rest runs meanwhile. Nodes are broken at the very end.
_LAST = ("test_cluster_runs", "test_cluster_frameworks", "test_cluster_faults")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks by which tests tell what has to have run (side_by_side.py)."""
    config.addinivalue_line("markers", "beside(body): takes what `body` returns on the cluster")
    config.addinivalue_line("markers", "alone(body): the same, when nothing else runs there")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put this folder's files into their order, in the places that they have together.

    One of them may wait for all that runs beside it, environments that are built first included.
    """
    places = [place for place, item in enumerate(items) if item.path.parent == Path(__file__).parent]
    ours = [items[place] for place in places]
    ours.sort(key=lambda item: item.path.stem in _LAST and _LAST.index(item.path.stem) + 1)
    for place, item in zip(places, ours, strict=True):
        items[place] = item
        item.add_marker(pytest.mark.timeout(7200))


@pytest.fixture(scope="session")
def cluster() -> Iterator[VirtualCluster]:
    """Twelve nodes and one with two fake GPUs; with accounting, and a slow link beside the fast one."""
    reason = why_not(accounting=True)
    if reason:
        pytest.skip(reason)
    with VirtualCluster("study", nodes=_NODES, gpu_nodes=1, accounting=True, link="slow=100mbit") as up:
        yield up


@pytest.fixture(scope="session")
def make_checkout(
    cluster: VirtualCluster, base_python: str, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], ClusterCheckout]:
    """Return a maker of checkouts. The base environment is there: nodes have no internet."""

    def make() -> ClusterCheckout:
        folder: Path = tmp_path_factory.mktemp("cluster") / "transect"
        checkout = ClusterCheckout(folder, cluster)
        shim = folder / "shims" / "sbatch"
        shim.parent.mkdir()
        shim.write_text(_SHIM.format(record=folder / "submissions.txt"))
        shim.chmod(0o755)
        return checkout

    return make


@pytest.fixture(scope="session")
def side_by_side(request: pytest.FixtureRequest, make_checkout: Callable[[], ClusterCheckout]) -> Iterator[SideBySide]:
    """What the selected tests need to have run, begun together and ended before the cluster is."""
    made = SideBySide(request.session.items, make_checkout)
    made.begin("beside")
    yield made
    made.end()


@pytest.fixture
def ran(request: pytest.FixtureRequest, side_by_side: SideBySide) -> Any:
    """Return what the body of this test's `beside` mark returned, which ran once for all tests."""
    return side_by_side.result(request.node.get_closest_marker("beside").args[0])
