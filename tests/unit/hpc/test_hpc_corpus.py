"""Real logs of other people against what a person read in them. Skipped where they are not."""

from __future__ import annotations

import pytest

from corpus import CORPORA, benchmarks, score

pytestmark = pytest.mark.skipif(not CORPORA, reason="no folder of real logs: TRANSECT_CORPUS")


@pytest.mark.parametrize("benchmark", benchmarks() or ["none"])
def test_what_a_person_read_is_found(benchmark: str) -> None:
    total = score(benchmark)
    assert total.files and total.values
    assert not total.misses, "\n".join(total.misses)
