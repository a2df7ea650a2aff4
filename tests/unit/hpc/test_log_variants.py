"""What terminals, launchers and file systems do to a log changes nothing of what is read in it."""

from __future__ import annotations

import random

import pytest
from log_scan import scan
from log_variants import DECORATIONS, SEED, own_logs, variants

from checkouts import ROOT
from transect.hpc.base import PARSERS, Run

LOGS = own_logs()


def facts(runs: list[Run]) -> list[object]:
    return [
        (
            run.benchmark,
            run.variant,
            run.status,
            run.version,
            run.suspicions,
            [(m.name, m.phase, m.size, m.printed, m.unit, m.normalised) for m in run.metrics],
        )
        for run in runs
    ]


@pytest.mark.parametrize("kind", ["colours", "crlf", "stamps", "rank 0", "tags"])
def test_what_surrounds_the_lines_changes_no_result(kind):
    changes = 0
    for name, text in LOGS.items():
        text = text if text.endswith("\n") else text + "\n"
        changed = DECORATIONS[kind](random.Random(name), text)
        changes += changed != text
        assert facts(scan(changed.encode())) == facts(scan(text.encode())), name
    assert changes > 40


@pytest.mark.parametrize(
    ("step", "mixtures"), [(6, 60), pytest.param(1, 3000, marks=pytest.mark.exhaustive)], ids=["some", "all"]
)
def test_cut_mixed_and_damaged_logs_break_no_parser(step: int, mixtures: int):
    logs = {name: LOGS[name] for name in sorted(LOGS)[::step]}
    made = list(variants(logs, mixtures=mixtures))
    assert [name for name, _ in made] == [name for name, _ in variants(logs, SEED, mixtures=mixtures)]
    assert {run.status.value for _, raw in made for run in scan(raw)} == {
        "ok",
        "failed",
        "invalid",
        "truncated",
        "no-result",
    }


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
    text = LOGS["hpc_logs.HPL"].split("End of Tests")[0] + "Column=0001 Fraction=0.1% Gflo"
    (run,) = scan(text.encode())
    assert run.benchmark == "hpl" and run.metrics


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("learning_logs.TF", "images/sec: 601.95", "images/sec: 1,601.95"),
        ("learning_logs.TF", "images/sec: 601.95", "images/sec: 601,95"),
        ("learning_logs.HOROVOD", "): 1204.0 +-6.4", "): 1,204.0 +-6.4"),
    ],
)
def test_a_part_of_a_number_is_no_value(name, old, new):
    (before,) = scan(LOGS[name].encode())
    assert before.status == "ok" and old in LOGS[name]
    (run,) = scan(LOGS[name].replace(old, new).encode())
    assert (run.benchmark, run.status) == (before.benchmark, "truncated")
