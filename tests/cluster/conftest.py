"""One cluster for all tests of a module, and checkouts on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clustered import ClusterCheckout
from clusters import VirtualCluster, why_not

# Whoever submits leaves the exact arguments behind.
_SHIM = """#!/bin/sh
for argument in "$@"; do printf '%s\\n' "$argument"; done >> {record}
printf -- '----\\n' >> {record}
exec /usr/bin/sbatch "$@"
"""


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[VirtualCluster]:
    """Four nodes and one with two fake GPUs; with accounting where the module says so."""
    accounting = getattr(request.module, "ACCOUNTING", False)
    reason = why_not(accounting=accounting)
    if reason:
        pytest.skip(reason)
    with VirtualCluster("study", nodes=4, gpu_nodes=1, accounting=accounting) as up:
        yield up


@pytest.fixture(scope="module")
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
