"""The cache below malloc: blocks are nobody else's, are used again, and give way to a limit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from transect.domain.paths import ROOT
from transect.training.memory._block_cache import BLOCK_CACHE

pytestmark = pytest.mark.env


def run(case: str, **variables: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", BLOCK_CACHE, "block_cache_cases", case],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{Path(__file__).parent}"} | variables,
    )
    assert done.returncode == 0 and done.stdout == f"{case} ended\n", done.stdout + done.stderr


@pytest.mark.parametrize("case", ["again", "limited", "peak", "children"])
def test_cache(case):
    run(case)


def test_in_the_end_all_is_free():
    # Python's own allocator keeps 128 KiB for each 16 GiB of addresses in which it has memory: now and then a second.
    run("many", PYTHONMALLOC="malloc")


def test_without_a_compiler_there_is_none():
    run("without", CC="no-such-compiler")


@pytest.mark.parametrize("compiler", ["false", "true"])
def test_a_compiler_that_makes_nothing_costs_the_cache_only(compiler):
    run("without", CC=compiler)


def test_nothing_is_put_over_somebody_elses_allocator():
    run("without", LD_PRELOAD="libm.so.6")
