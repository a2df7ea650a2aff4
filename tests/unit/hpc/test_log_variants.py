"""What terminals, launchers and file systems do to a log changes nothing of what is read in it."""

from __future__ import annotations

import pytest
from hpc_logs import HPL
from learning_logs import HOROVOD, TF
from log_scan import scan

from checkouts import ROOT
from transect.hpc.base import PARSERS


@pytest.mark.parametrize("name", PARSERS.names())
def test_each_parser_says_what_it_takes_as_proof(name):
    proof = PARSERS.get(name).validity_notes
    assert proof is not None and min(map(len, (proof.identity, proof.success, proof.failure))) > 10
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    assert proof.failure.split("|")[0] in page


def test_the_last_whole_line_counts_when_the_next_one_is_cut():
    (run,) = scan(b"BabelStream\nVers")
    assert (run.benchmark, run.status) == ("babelstream", "truncated")


def test_a_cut_start_line_behind_a_result_is_no_run_of_its_own():
    text = HPL.split("End of Tests")[0] + "Column=0001 Fraction=0.1% Gflo"
    (run,) = scan(text.encode())
    assert run.benchmark == "hpl" and run.metrics


@pytest.mark.parametrize(
    ("log", "old", "new"),
    [
        (TF, "images/sec: 601.95", "images/sec: 1,601.95"),
        (TF, "images/sec: 601.95", "images/sec: 601,95"),
        (HOROVOD, "): 1204.0 +-6.4", "): 1,204.0 +-6.4"),
    ],
)
def test_a_part_of_a_number_is_no_value(log, old, new):
    (before,) = scan(log)
    assert before.status == "ok" and old in log
    (run,) = scan(log.replace(old, new))
    assert (run.benchmark, run.status) == (before.benchmark, "truncated")
