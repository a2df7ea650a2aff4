"""What ends ranks on their way is a record that says so, and leaves nothing."""

from __future__ import annotations

import re
from datetime import datetime

import pytest

from checkouts import ROOT

pytestmark = pytest.mark.study

ENDS = """
name: ends
plugins: [{plugins}]
limits: {{seconds: 600, repeats_if_disturbed: 0}}
workloads:
  digits-cnn: {{batch: 32, epochs: 1, reference_steps: 0}}
train:
  repeats: 1
  grids:
    - {{workloads: [digits-cnn], frameworks: [numpy], ranks: [3],
       strategies: [seeded-nan, seeded-short, seeded-killed],
       options: [{{stages: 3, micro_batches: 5, cut: 2-5}}]}}
"""
# Those who wait for ever are ended by the cell's limit; they have none of their own. Data and reference are
# the first run's while they took less.
STOPS = ENDS.replace("600", "60").replace("seeded-nan, seeded-short, seeded-killed", "seeded-stops")
CAUSES = {
    # Cause, and what the message says.
    "seeded-nan": ("diverged", "step 3"),
    "seeded-short": ("crash", "rank 1, stage 1 (layers 2 to 4): "),
    "seeded-killed": ("killed", "rank 1, stage 1 (layers 2 to 4)"),
    "seeded-stops": ("timeout", "60 s"),
}


def study(place, text):
    """Run it; return the training records by strategy."""
    plugins = ROOT / "tests" / "plugins" / "seeded"
    (place.folder / "ends.yaml").write_text(text.format(plugins=plugins))
    run = place.make("ends.yaml", report=False)
    assert run.returncode == 0, run.stderr
    return {one["cell"]["strategy"]: one for one in place.records("ends", "train").values()}


def test_what_ends_a_pipeline_is_named(place):
    found = study(place, ENDS) | study(place, STOPS)
    assert {name: one["cause"] for name, one in found.items()} == {n: c for n, (c, _) in CAUSES.items()}
    for name, (_, said) in CAUSES.items():
        assert said in found[name]["message"], found[name]["message"]
    short = found["seeded-short"]["message"]
    # 6 x 16 x 8 x 8 numbers of 4 bytes were expected, of one sample less came.
    assert "of micro-batch 2 from stage 0, 24576 bytes, got 20480 bytes" in short
    killed = found["seeded-killed"]
    at = float(re.search(r"killed at ([0-9.]+)", killed["log_tail"])[1])
    # The others wait for its results, and nobody sends them: they are ended with it, in two seconds on
    # an idle machine.
    assert datetime.fromisoformat(killed["ended"]).timestamp() - at < 200
    assert "nothing goes on from here" in found["seeded-stops"]["log_tail"]
    assert place.payloads() == []
