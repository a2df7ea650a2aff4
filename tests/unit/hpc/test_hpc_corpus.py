"""Real logs of other people against what a person read in them. Skipped where they are not."""

from __future__ import annotations

import pytest

from checkouts import ROOT
from corpus import CORPORA, benchmarks, score

pytestmark = pytest.mark.skipif(not CORPORA, reason="no folder of real logs: TRANSECT_CORPUS")

KNOWN = ROOT / "tests" / "support" / "corpus_checks" / "known-misses.txt"


def known_misses(benchmark: str) -> list[str]:
    """Return what is known to be read wrongly, of logs that are here."""
    lines = [line for line in KNOWN.read_text().splitlines() if not line.startswith("#")]
    ours = [line for line in lines if line.startswith(f"{benchmark}/")]
    return [line for line in ours if any((at / line.split(": ")[0]).exists() for at in CORPORA)]


@pytest.mark.parametrize("benchmark", benchmarks() or ["none"])
def test_what_a_person_read_is_found(benchmark: str) -> None:
    total = score(benchmark)
    assert total.files and total.values
    # A parser that is mended takes its lines out of the list.
    assert sorted(total.misses) == sorted(known_misses(benchmark))
